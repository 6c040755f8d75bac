// A thread that does one thing over and over, with a pause in between.
#ifndef SCHEDULER_MAINTENANCE_PERIODIC_LOOP_H_
#define SCHEDULER_MAINTENANCE_PERIODIC_LOOP_H_

#include <functional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "common/concurrency/stop_signal.h"
#include "common/logging/rate_limited_log.h"
#include "common/time/clock.h"
#include "scheduler/engine/loop_probe.h"

namespace leasehold::scheduler {

// Errors are logged, at most one a second, and the loop goes on.
class PeriodicLoop {
 public:
  PeriodicLoop(const std::string& name, absl::Duration pause,
               std::function<absl::Status()> run_once, const Clock& clock);
  ~PeriodicLoop() { Stop(); }

  void Stop();

  const LoopProbe& probe() const { return probe_; }

 private:
  void Run();

  const std::string name_;
  const absl::Duration pause_;
  const std::function<absl::Status()> run_once_;
  LoopProbe probe_;
  RateLimitedLog log_;
  StopSignal stop_;
  std::thread thread_;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_MAINTENANCE_PERIODIC_LOOP_H_
