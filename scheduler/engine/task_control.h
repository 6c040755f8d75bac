// What people do to single tasks: cancel, pause, resume, retry.
#ifndef SCHEDULER_ENGINE_TASK_CONTROL_H_
#define SCHEDULER_ENGINE_TASK_CONTROL_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "scheduler/store/task_store.h"

namespace leasehold::scheduler {

enum class ControlAction { kCancel, kPause, kResume, kRetry };

struct ControlRequest {
  ControlAction action = ControlAction::kCancel;
  TaskId id = 0;
  std::string reason;  // Of a cancel; may be empty.
};

// Thread-safe.
class TaskControl {
 public:
  // The task as it stands after the action, without payload and attempts.
  // NOT_FOUND, FAILED_PRECONDITION (the message says in which state the task
  // is), RESOURCE_EXHAUSTED (too many wait), UNAVAILABLE (the action may have
  // happened; all are safe to repeat).
  using Done = std::function<void(absl::StatusOr<TaskRecord>)>;

  virtual ~TaskControl() = default;
  // `done` is called exactly once, possibly before this returns, and must not
  // block.
  virtual void Control(ControlRequest request, Done done) = 0;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_ENGINE_TASK_CONTROL_H_
