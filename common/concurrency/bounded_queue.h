// A queue between threads that is full at a number of items or at a total
// weight, such as bytes; whatever comes first.
//
//   BoundedQueue<Call> queue(20'000, 64 << 20);
//   if (!queue.TryPush(std::move(call), bytes)) return Full();
//   while (queue.PopBatch(500, 8 << 20, &batch)) { ... }   // the consumer
#ifndef COMMON_CONCURRENCY_BOUNDED_QUEUE_H_
#define COMMON_CONCURRENCY_BOUNDED_QUEUE_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace leasehold {

// Thread-safe, for any number of producers and consumers. First in, first out.
template <typename T>
class BoundedQueue {
 public:
  BoundedQueue(size_t max_items, size_t max_weight)
      : max_items_(max_items), max_weight_(max_weight) {}
  BoundedQueue(const BoundedQueue&) = delete;
  BoundedQueue& operator=(const BoundedQueue&) = delete;

  // False when the queue is full or closed; `item` is then untouched. An item
  // that weighs more than the whole bound enters an empty queue, since it would
  // fit at no other time.
  [[nodiscard]] bool TryPush(T&& item, size_t weight = 0) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (closed_ || !Fits(weight)) return false;
      items_.push_back({std::move(item), weight});
      weight_ += weight;
    }
    changed_.notify_one();
    return true;
  }

  // Waits until something is there or the queue is closed, then moves up to
  // `max_items` items of at most `max_weight` together, but at least one, into
  // `batch`, which is cleared first. False once the queue is closed and empty.
  bool PopBatch(size_t max_items, size_t max_weight, std::vector<T>* batch) {
    batch->clear();
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return closed_ || !items_.empty(); });
    return TakeBatch(max_items, max_weight, batch);
  }

  // As PopBatch, but waits no longer than `timeout`. True with an empty batch
  // when the time is up.
  bool PopBatchFor(absl::Duration timeout, size_t max_items, size_t max_weight,
                   std::vector<T>* batch) {
    batch->clear();
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, absl::ToChronoNanoseconds(timeout),
                      [&] { return closed_ || !items_.empty(); });
    if (items_.empty() && !closed_) return true;
    return TakeBatch(max_items, max_weight, batch);
  }

  // The oldest item, if there is one. Does not wait.
  std::optional<T> TryPop() {
    std::vector<T> batch;
    const std::lock_guard<std::mutex> lock(mutex_);
    TakeBatch(1, max_weight_, &batch);
    if (batch.empty()) return std::nullopt;
    return std::move(batch.front());
  }

  // Nothing enters any more; what is inside can still be popped. Idempotent.
  void Close() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
  }

  size_t size() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return items_.size();
  }
  size_t weight() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return weight_;
  }
  bool closed() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return closed_;
  }

 private:
  struct Entry {
    T item;
    size_t weight;
  };

  bool Fits(size_t weight) const {
    if (items_.size() >= max_items_) return false;
    return items_.empty() ||
           (weight <= max_weight_ && weight_ <= max_weight_ - weight);
  }

  bool TakeBatch(size_t max_items, size_t max_weight, std::vector<T>* batch) {
    size_t taken = 0;
    while (!items_.empty() && batch->size() < max_items) {
      const size_t weight = items_.front().weight;
      if (!batch->empty() &&
          (weight > max_weight || taken > max_weight - weight)) {
        break;
      }
      taken += weight;
      batch->push_back(std::move(items_.front().item));
      items_.pop_front();
    }
    weight_ -= taken;
    // A wake-up of a push may have come here for an item that is left.
    if (!items_.empty()) changed_.notify_one();
    return !batch->empty();
  }

  const size_t max_items_;
  const size_t max_weight_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Entry> items_;
  size_t weight_ = 0;
  bool closed_ = false;
};

}  // namespace leasehold

#endif  // COMMON_CONCURRENCY_BOUNDED_QUEUE_H_
