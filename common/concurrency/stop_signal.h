// Tells a thread to stop, at once even while it waits.
//
//   while (!stop.WaitFor(absl::Seconds(1))) RunOnce();
#ifndef COMMON_CONCURRENCY_STOP_SIGNAL_H_
#define COMMON_CONCURRENCY_STOP_SIGNAL_H_

#include <condition_variable>
#include <mutex>

#include "absl/time/time.h"

namespace leasehold {

// Thread-safe. Waits use the steady clock.
class StopSignal {
 public:
  StopSignal() = default;
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // Wakes every waiter, now and later. Idempotent.
  void Stop();

  // Ends the wait of whoever waits now, or of the next one, without stopping
  // anything: "look for work". Several before one wait count as one.
  void Wake();

  bool stopped() const;

  // Waits until stopped, woken or `timeout` has passed. True when stopped.
  bool WaitFor(absl::Duration timeout);

  // Waits until stopped.
  void Wait();

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  bool woken_ = false;
};

}  // namespace leasehold

#endif  // COMMON_CONCURRENCY_STOP_SIGNAL_H_
