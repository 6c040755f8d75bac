#include "common/concurrency/stop_signal.h"

#include <algorithm>
#include <chrono>

namespace leasehold {

void StopSignal::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

void StopSignal::Wake() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    woken_ = true;
  }
  changed_.notify_all();
}

bool StopSignal::stopped() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stopped_;
}

bool StopSignal::WaitFor(absl::Duration timeout) {
  // Far enough for any caller, and near enough not to overflow steady time.
  const absl::Duration bounded = std::min(timeout, absl::Hours(24 * 365));
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, absl::ToChronoNanoseconds(bounded),
                    [&] { return stopped_ || woken_; });
  woken_ = false;
  return stopped_;
}

void StopSignal::Wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return stopped_; });
}

}  // namespace leasehold
