// Reads for clients, on a bounded pool of threads, so that no gRPC thread ever
// waits for the database.
#ifndef SCHEDULER_ENGINE_TASK_READER_H_
#define SCHEDULER_ENGINE_TASK_READER_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/engine/options.h"
#include "scheduler/store/task_store.h"

namespace leasehold::scheduler {

// Thread-safe. Every `done` is called exactly once, possibly before the call
// returns, and must not block. RESOURCE_EXHAUSTED: too many reads wait.
// UNAVAILABLE: the database is away, or the scheduler is shutting down.
class TaskReader {
 public:
  using TaskDone = std::function<void(absl::StatusOr<TaskRecord>)>;
  using TasksDone =
      std::function<void(absl::StatusOr<std::vector<TaskRecord>>)>;
  using PageDone = std::function<void(absl::StatusOr<ListPage>)>;

  virtual ~TaskReader() = default;

  // NOT_FOUND: `task 42: not found`.
  virtual void GetTask(TaskId id, ReadOptions options, TaskDone done) = 0;
  // Those that exist.
  virtual void GetTasks(std::vector<TaskId> ids, ReadOptions options,
                        TasksDone done) = 0;
  virtual void ListTasks(ListFilter filter, TaskId below, int page_size,
                         PageDone done) = 0;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_ENGINE_TASK_READER_H_
