// Tells watchers when their task changes. Changes made by this replica arrive
// by notification; a poll each second, one statement for many tasks, finds
// those of other replicas.
#ifndef SCHEDULER_ENGINE_TASK_WATCH_HUB_H_
#define SCHEDULER_ENGINE_TASK_WATCH_HUB_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "scheduler/domain/task.h"
#include "scheduler/store/task_store.h"

namespace leasehold::scheduler {

// Thread-safe.
class TaskWatchHub {
 public:
  using WatchId = int64_t;
  // Called on the hub's thread, never two at a time for one watch; must not
  // block. An error ends the watch: NOT_FOUND, or UNAVAILABLE when the hub
  // shuts down. Records carry the result, not the payload and not the attempts.
  using OnUpdate = std::function<void(absl::StatusOr<TaskRecord>)>;

  virtual ~TaskWatchHub() = default;

  // The first update comes at once, then one after every change (changes within
  // 200 ms of an update may be merged into the next), the terminal one always;
  // no update follows a terminal one. RESOURCE_EXHAUSTED: too many watches.
  virtual absl::StatusOr<WatchId> Watch(TaskId id, OnUpdate on_update) = 0;

  // No update starts after this returns, except to a caller that is in
  // `on_update` itself. Unknown ids are fine.
  virtual void Unwatch(WatchId watch) = 0;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_ENGINE_TASK_WATCH_HUB_H_
