// Turns claimed tasks into lease messages: the body from memory or from the
// database, and what the task leaves unset from its queue.
#ifndef SCHEDULER_DISPATCH_LEASE_BUILDER_H_
#define SCHEDULER_DISPATCH_LEASE_BUILDER_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/dispatch/ready_index.h"
#include "scheduler/engine/lane_directory.h"
#include "scheduler/session/messages.h"
#include "scheduler/store/task_store.h"

namespace leasehold::scheduler {

class LeaseBuilder {
 public:
  LeaseBuilder(TaskStore& store, const LaneDirectory& lanes)
      : store_(store), lanes_(lanes) {}

  // Parallel to `taken`; nullopt for a task without a body. Blocks when bodies
  // have to be read; an error means that none could be.
  absl::StatusOr<std::vector<std::optional<LeaseMessage>>> Build(
      std::vector<ReadyIndex::Taken>& taken);

  // Without reading anything.
  LeaseMessage MakeLease(const ReadyTask& task, TaskSpec spec,
                         std::string checkpoint) const;

 private:
  TaskStore& store_;
  const LaneDirectory& lanes_;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_DISPATCH_LEASE_BUILDER_H_
