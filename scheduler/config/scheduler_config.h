// What the scheduler runs with, once every flag has been checked.
#ifndef SCHEDULER_CONFIG_SCHEDULER_CONFIG_H_
#define SCHEDULER_CONFIG_SCHEDULER_CONFIG_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "scheduler/engine/options.h"
#include "scheduler/store/mysql/mysql_config.h"

namespace leasehold::scheduler {

struct SchedulerConfig {
  std::string listen;
  std::string http_listen;  // Empty means off.
  MySqlConfig mysql;        // Holds the password: never shown.
  bool migrate_only = false;
  absl::Duration drain_timeout;
  EngineOptions engine;
};

// From the flags as they are set now. Adds a line for each mistake; the result
// is only good if there is none.
//   --lease_duration=2s must be at least 3x --heartbeat_interval=5s
SchedulerConfig ConfigFromFlags(std::vector<std::string>* mistakes);

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_CONFIG_SCHEDULER_CONFIG_H_
