// A fixed number of threads that run functions from a bounded queue.
//
//   ThreadPool pool("read", 4, 2'000);
//   if (!pool.TryRun([=] { ... })) return Full();
#ifndef COMMON_CONCURRENCY_THREAD_POOL_H_
#define COMMON_CONCURRENCY_THREAD_POOL_H_

#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "common/concurrency/bounded_queue.h"

namespace leasehold {

// Names the calling thread for debuggers and `top`; cut to 15 bytes.
void NameThisThread(const std::string& name);

// Thread-safe. Functions must not throw.
class ThreadPool {
 public:
  // `threads` is at least 1. `name` shows in debuggers.
  ThreadPool(const std::string& name, int threads, size_t max_queued);
  ~ThreadPool();  // Shutdown().
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Queues `run` for some thread. False, and `run` is never called, when the
  // queue is full or the pool is shutting down. May be called by a function
  // that runs in the pool.
  [[nodiscard]] bool TryRun(std::function<void()> run);

  // Takes nothing more, runs everything that is queued, and joins the threads;
  // so every accepted function has been called when this returns. Idempotent.
  // Not to be called by a function that runs in the pool, nor by two threads.
  void Shutdown();

  size_t queued() const { return queue_.size(); }

 private:
  void Work(const std::string& name);

  BoundedQueue<std::function<void()>> queue_;
  std::vector<std::thread> threads_;
};

}  // namespace leasehold

#endif  // COMMON_CONCURRENCY_THREAD_POOL_H_
