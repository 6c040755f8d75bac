#include "scheduler/engine/task_reader_pool.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/ids/ids.h"
#include "scheduler/domain/limits.h"
#include "scheduler/engine/shutting_down.h"

namespace leasehold::scheduler {

TaskReaderPool::TaskReaderPool(TaskStore& store, const EngineBounds& bounds,
                               SchedulerMetrics& metrics)
    : store_(store),
      metrics_(metrics),
      pool_("read", bounds.read_threads, bounds.read_queue_calls) {}

void TaskReaderPool::Stop() {
  stopped_ = true;
  pool_.Shutdown();
}

absl::Status TaskReaderPool::Run(std::function<void()> read) {
  if (stopped_) {
    return ShuttingDown();
  }
  if (pool_.TryRun(std::move(read))) return absl::OkStatus();
  metrics_.reads_refused.Increment();
  return absl::ResourceExhaustedError(
      "too many reads are waiting, try again later");
}

void TaskReaderPool::GetTask(TaskId id, ReadOptions options, TaskDone done) {
  const absl::Status status = Run([this, id, options, done] {
    absl::StatusOr<std::vector<TaskRecord>> tasks =
        store_.GetTasks({id}, options);
    if (!tasks.ok()) return done(std::move(tasks).status());
    if (tasks->empty()) {
      return done(absl::NotFoundError(
          absl::StrCat("task ", FormatTaskId(id), ": not found")));
    }
    done(std::move(tasks->front()));
  });
  if (!status.ok()) done(status);
}

void TaskReaderPool::GetTasks(std::vector<TaskId> ids, ReadOptions options,
                              TasksDone done) {
  const absl::Status status = Run([this, ids = std::move(ids), options, done] {
    done(store_.GetTasks(ids, options));
  });
  if (!status.ok()) done(status);
}

void TaskReaderPool::ListTasks(ListFilter filter, TaskId below, int page_size,
                               PageDone done) {
  const absl::Status status =
      Run([this, filter = std::move(filter), below, page_size, done] {
        done(store_.ListTasks(filter, below, page_size, kMaxPageBytes));
      });
  if (!status.ok()) done(status);
}

}  // namespace leasehold::scheduler
