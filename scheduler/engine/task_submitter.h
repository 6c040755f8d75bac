// How services store tasks; submit_batcher.h is the implementation.
//
//   submitter.Submit({spec}, [](absl::StatusOr<std::vector<SubmittedTask>> r)
//   {..});
#ifndef SCHEDULER_ENGINE_TASK_SUBMITTER_H_
#define SCHEDULER_ENGINE_TASK_SUBMITTER_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/domain/task.h"
#include "scheduler/store/task_store.h"

namespace leasehold::scheduler {

using SubmitDone =
    std::function<void(absl::StatusOr<std::vector<SubmittedTask>>)>;

// Thread-safe.
class TaskSubmitter {
 public:
  virtual ~TaskSubmitter() = default;

  // Stores `specs`, all or none, in order. Never blocks on the database: `done`
  // is called exactly once, on another thread, or before this returns when the
  // call is refused:
  //   RESOURCE_EXHAUSTED: the queue in memory is full, or too many lanes.
  //   UNAVAILABLE: the database is away, or the scheduler is shutting down.
  //   ALREADY_EXISTS: an idempotency key is taken by different content.
  // `done` must not block.
  virtual void Submit(std::vector<TaskSpec> specs, SubmitDone done) = 0;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_ENGINE_TASK_SUBMITTER_H_
