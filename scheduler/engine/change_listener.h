// Who wants to know of changes that have been committed: the ready index, the
// watchers, the sessions.
#ifndef SCHEDULER_ENGINE_CHANGE_LISTENER_H_
#define SCHEDULER_ENGINE_CHANGE_LISTENER_H_

#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "scheduler/domain/state_machine.h"
#include "scheduler/domain/task.h"

namespace leasehold::scheduler {

// A change as it was committed.
struct CommittedChange {
  TaskId id = 0;
  // The lease that was open before, and its holder; lease_number 0 if none was.
  int64_t lease_number = 0;
  HolderId holder = 0;
  TaskState state_before = TaskState::kUnspecified;
  bool reported = false;  // The change came from the lease's own report.
  std::optional<LiveTask> after;                 // Lives on like this, or
  TaskState ended_as = TaskState::kUnspecified;  // has ended.
};

// Called after the commit, on the committing thread; must not block.
class ChangeListener {
 public:
  virtual ~ChangeListener() = default;
  virtual void OnChanged(absl::Span<const CommittedChange> changes) = 0;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_ENGINE_CHANGE_LISTENER_H_
