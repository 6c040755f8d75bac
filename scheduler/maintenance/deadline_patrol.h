// Ends what has run out of time: tasks past their expire_time, and cancelled
// tasks whose executors have neither confirmed nor finished.
#ifndef SCHEDULER_MAINTENANCE_DEADLINE_PATROL_H_
#define SCHEDULER_MAINTENANCE_DEADLINE_PATROL_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "scheduler/engine/task_changer.h"
#include "scheduler/store/task_store.h"

namespace leasehold::scheduler {

// For one thread.
class DeadlinePatrol {
 public:
  struct Config {
    int batch = 500;
  };

  DeadlinePatrol(const Config& config, TaskStore& store, TaskChanger& changer)
      : config_(config), store_(store), changer_(changer) {}

  absl::Status RunOnce();

 private:
  absl::Status EndOverdue(
      const char* what,
      absl::FunctionRef<absl::StatusOr<std::vector<TaskId>>(int)> find,
      absl::FunctionRef<Change(const TaskView&)> decide);

  const Config config_;
  TaskStore& store_;
  TaskChanger& changer_;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_MAINTENANCE_DEADLINE_PATROL_H_
