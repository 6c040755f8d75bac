#include "executor/sdk/cancellation.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

namespace leasehold::executor {

struct CancellationToken::State {
  std::atomic<CancelReason> reason{CancelReason::kNone};
  std::mutex mutex;
  std::condition_variable cancelled;
  // Held while callbacks run, so that the end of a watch can wait for them. It
  // guards `callbacks`; taken before `mutex`.
  std::mutex callback_mutex;
  int next_id = 1;
  std::vector<std::pair<int, std::function<void()>>> callbacks;
};

absl::string_view CancelReasonName(CancelReason reason) {
  switch (reason) {
    case CancelReason::kNone:
      return "none";
    case CancelReason::kCancelled:
      return "cancelled";
    case CancelReason::kTimeout:
      return "timeout";
    case CancelReason::kLeaseLost:
      return "lease lost";
    case CancelReason::kDraining:
      return "draining";
  }
  return "unknown";
}

CancelReason CancellationToken::reason() const {
  return state_->reason.load(std::memory_order_acquire);
}

bool CancellationToken::WaitFor(absl::Duration timeout) const {
  std::unique_lock<std::mutex> lock(state_->mutex);
  const auto is_cancelled = [&] { return cancelled(); };
  // A year is as good as for ever, and keeps clock arithmetic from overflowing.
  return state_->cancelled.wait_for(
      lock, absl::ToChronoNanoseconds(std::min(timeout, absl::Hours(24 * 365))),
      is_cancelled);
}

CancellationToken::Watch CancellationToken::OnCancel(
    std::function<void()> callback) const {
  const std::lock_guard<std::mutex> lock(state_->callback_mutex);
  if (cancelled()) {
    callback();
    return Watch();
  }
  const int id = state_->next_id++;
  state_->callbacks.emplace_back(id, std::move(callback));
  return Watch(state_, id);
}

CancellationToken::Watch& CancellationToken::Watch::operator=(
    Watch&& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(id_, other.id_);
  return *this;
}

CancellationToken::Watch::~Watch() {
  if (state_ == nullptr) return;
  const std::lock_guard<std::mutex> lock(state_->callback_mutex);
  auto& callbacks = state_->callbacks;
  callbacks.erase(
      std::remove_if(callbacks.begin(), callbacks.end(),
                     [&](const auto& entry) { return entry.first == id_; }),
      callbacks.end());
}

CancellationSource::CancellationSource()
    : state_(std::make_shared<CancellationToken::State>()) {}

bool CancellationSource::Cancel(CancelReason reason) {
  const std::lock_guard<std::mutex> callback_lock(state_->callback_mutex);
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    if (state_->reason != CancelReason::kNone) return false;
    state_->reason.store(reason, std::memory_order_release);
  }
  state_->cancelled.notify_all();
  for (const auto& [id, callback] : state_->callbacks) callback();
  state_->callbacks.clear();
  return true;
}

}  // namespace leasehold::executor
