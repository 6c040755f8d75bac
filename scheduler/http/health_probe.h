// What /healthz and /readyz ask.
#ifndef SCHEDULER_HTTP_HEALTH_PROBE_H_
#define SCHEDULER_HTTP_HEALTH_PROBE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace leasehold::scheduler {

// How long a loop's current round has been running.
struct LoopHealth {
  std::string name;
  absl::Duration age;
  absl::Duration limit;  // Beyond it the loop counts as stuck.
};

// All three are called on HTTP threads, must not block, and outlive the server.
struct HealthProbe {
  std::function<std::vector<LoopHealth>()> loops;
  std::function<bool()> database_up;
  // Past its start and not draining.
  std::function<bool()> serving;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_HTTP_HEALTH_PROBE_H_
