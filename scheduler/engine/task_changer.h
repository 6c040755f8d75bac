// The one door through which live tasks change: decides under the row locks,
// and after the commit tells everybody who listens. Reports, expiries and
// control calls all come through here.
#ifndef SCHEDULER_ENGINE_TASK_CHANGER_H_
#define SCHEDULER_ENGINE_TASK_CHANGER_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "scheduler/engine/change_listener.h"
#include "scheduler/store/task_store.h"

namespace leasehold::scheduler {

// Thread-safe once all listeners have been added.
class TaskChanger {
 public:
  explicit TaskChanger(TaskStore& store) : store_(store) {}

  void AddListener(ChangeListener* listener) { listeners_.push_back(listener); }

  // As TaskStore::ChangeTasks. `reported` goes to the listeners.
  absl::Status ChangeTasks(
      absl::Span<const TaskId> ids, bool reported,
      absl::FunctionRef<Change(size_t, const TaskView&)> decide,
      Role role = Role::kFinish);

 private:
  TaskStore& store_;
  std::vector<ChangeListener*> listeners_;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_ENGINE_TASK_CHANGER_H_
