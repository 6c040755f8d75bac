// The scheduler's flags: names, defaults and help. What they must satisfy is
// checked in scheduler_config.cc; how they are read, in command_line.cc.
#ifndef SCHEDULER_CONFIG_FLAGS_H_
#define SCHEDULER_CONFIG_FLAGS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/time/time.h"
#include "common/flags/command_line.h"
#include "scheduler/config/byte_size.h"
#include "scheduler/engine/options.h"

ABSL_DECLARE_FLAG(std::string, listen);
ABSL_DECLARE_FLAG(std::string, http_listen);
ABSL_DECLARE_FLAG(std::string, mysql);
ABSL_DECLARE_FLAG(bool, migrate_only);
ABSL_DECLARE_FLAG(absl::Duration, lease_duration);
ABSL_DECLARE_FLAG(absl::Duration, heartbeat_interval);
ABSL_DECLARE_FLAG(absl::Duration, accept_timeout);
ABSL_DECLARE_FLAG(absl::Duration, drain_timeout);
ABSL_DECLARE_FLAG(std::string, log_level);
ABSL_DECLARE_FLAG(std::string, scheduler_id);
ABSL_DECLARE_FLAG(int, read_threads);

namespace leasehold::scheduler {

// A count or a size of EngineBounds.
struct BoundFlag {
  const char* name;
  size_t EngineBounds::*field;
  absl::Flag<int64_t>* count;  // One of the two.
  absl::Flag<ByteSize>* bytes;
  int64_t min;
  int64_t max;
};
const std::vector<BoundFlag>& BoundFlags();

// As --help shows them.
const std::vector<FlagGroup>& FlagGroups();

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_CONFIG_FLAGS_H_
