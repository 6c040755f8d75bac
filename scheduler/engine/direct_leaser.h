// Leases new tasks in the transaction that stores them, when an executor has a
// free slot and nothing waits ahead of them: that saves the claim, its commit
// and its way through the dispatcher. The dispatch folder implements it.
#ifndef SCHEDULER_ENGINE_DIRECT_LEASER_H_
#define SCHEDULER_ENGINE_DIRECT_LEASER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "scheduler/store/task_store.h"

namespace leasehold::scheduler {

struct DirectLease {
  HolderId holder = 0;
  int64_t lease_us = 0;
  size_t session = 0;  // Of the batch.
};

// The leases of one batch of submits. Every reservation ends in Cancel or
// Commit. For one thread.
class DirectLeaseBatch {
 public:
  virtual ~DirectLeaseBatch() = default;
  // Room for a task of that lane, or nullopt: it has to wait like others.
  virtual std::optional<DirectLease> Reserve(LaneId lane,
                                             const TaskSpec& spec) = 0;
  // The task was not stored, or had been before.
  virtual void Cancel(const DirectLease& lease) = 0;
  // The task is stored, and leased under lease_number 1.
  virtual void Commit(const DirectLease& lease, TaskId id, LaneId lane,
                      TaskSpec spec) = 0;
  // Sends what was committed. Does not block.
  virtual void Send() = 0;
};

// Thread-safe.
class DirectLeaser {
 public:
  virtual ~DirectLeaser() = default;
  // Null when no executor has a free slot.
  virtual std::unique_ptr<DirectLeaseBatch> Begin() = 0;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_ENGINE_DIRECT_LEASER_H_
