// Says how long a loop's current round has been running, so that a thread that
// hangs shows in /healthz instead of a process that merely lives.
#ifndef SCHEDULER_ENGINE_LOOP_PROBE_H_
#define SCHEDULER_ENGINE_LOOP_PROBE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "common/time/clock.h"

namespace leasehold::scheduler {

// Begin and End are for one thread; Age is thread-safe.
class LoopProbe {
 public:
  LoopProbe(std::string name, absl::Duration limit, const Clock& clock)
      : name_(std::move(name)), limit_(limit), clock_(clock) {}

  // A round of work: from its construction to its end.
  class Round {
   public:
    explicit Round(LoopProbe& probe) : probe_(probe) {
      probe_.since_.store(probe_.clock_.SteadyNow().time_since_epoch().count());
    }
    ~Round() { probe_.since_.store(kIdle); }
    Round(const Round&) = delete;
    Round& operator=(const Round&) = delete;

   private:
    LoopProbe& probe_;
  };

  const std::string& name() const { return name_; }
  absl::Duration limit() const { return limit_; }
  // Zero while the loop waits for work.
  absl::Duration Age() const {
    const int64_t since = since_.load();
    if (since == kIdle) return absl::ZeroDuration();
    return absl::FromChrono(clock_.SteadyNow() -
                            SteadyTime(SteadyTime::duration(since)));
  }

  // The round that runs now; 0 between rounds. A round that has begun before
  // this call is over once the value has changed.
  int64_t CurrentRound() const {
    const int64_t since = since_.load();
    return since == kIdle ? 0 : since;
  }

 private:
  static constexpr int64_t kIdle = -1;
  const std::string name_;
  const absl::Duration limit_;
  const Clock& clock_;
  std::atomic<int64_t> since_{kIdle};
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_ENGINE_LOOP_PROBE_H_
