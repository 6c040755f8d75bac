// The names behind lane ids and the settings of queues, in memory. Lanes never
// change once interned; queues are reread every second, so that a change made
// on another replica holds here within two.
#ifndef SCHEDULER_ENGINE_LANE_DIRECTORY_H_
#define SCHEDULER_ENGINE_LANE_DIRECTORY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "scheduler/domain/retry_policy.h"
#include "scheduler/engine/options.h"
#include "scheduler/store/task_store.h"

namespace leasehold::scheduler {

using LaneName = std::pair<std::string, std::string>;  // (queue, type)

// What holds for the tasks of a queue, with nothing left unset but the policy.
struct QueueSettings {
  bool paused = false;
  RetryPolicySpec retry_policy;
  int64_t attempt_timeout_us = 0;
  int64_t lease_duration_us = 0;
  int64_t first_lease_us = 0;  // min(lease_duration, accept_timeout)
};

// Thread-safe.
class LaneDirectory {
 public:
  LaneDirectory(TaskStore& store, const LeaseTimes& defaults);

  // Reads all lanes and queues.
  absl::Status Load();
  // Reads the queues again.
  absl::Status RefreshQueues();

  // The version of the queues' settings that hold here.
  int64_t version() const;
  // The queue as it is now, of a version that this replica may not have read
  // yet.
  void Note(const QueueRow& row);

  // Ids for `names`, in their order; asks the database only for those that are
  // new to this replica. Blocks then. RESOURCE_EXHAUSTED past 10,000 lanes.
  absl::StatusOr<std::vector<LaneId>> Intern(absl::Span<const LaneName> names);

  // Null for an id that this replica has not seen; Load finds it then.
  std::shared_ptr<const LaneName> Name(LaneId id) const;

  QueueSettings Settings(const std::string& queue) const;
  bool Paused(LaneId id) const;
  int64_t DefaultLeaseUs() const { return defaults_.lease_duration_us; }
  // The longest lease of any queue: how long an executor that cannot reach a
  // scheduler may rightly go unheard.
  int64_t LongestLeaseUs() const;

 private:
  std::optional<LaneId> Find(const LaneName& name) const;
  QueueSettings Resolve(const QueueRow& row) const;

  TaskStore& store_;
  const QueueSettings defaults_;
  const int64_t accept_timeout_us_;
  mutable std::mutex mutex_;
  absl::flat_hash_map<LaneName, LaneId> ids_;
  absl::flat_hash_map<LaneId, std::shared_ptr<const LaneName>> names_;
  absl::flat_hash_map<std::string, QueueSettings> queues_;
  int64_t longest_lease_us_;
  int64_t version_ = 0;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_ENGINE_LANE_DIRECTORY_H_
