// TaskReader on a bounded pool of threads, each with a database connection of
// the read role at hand.
#ifndef SCHEDULER_ENGINE_TASK_READER_POOL_H_
#define SCHEDULER_ENGINE_TASK_READER_POOL_H_

#include <atomic>
#include <functional>

#include "common/concurrency/thread_pool.h"
#include "scheduler/engine/options.h"
#include "scheduler/engine/scheduler_metrics.h"
#include "scheduler/engine/task_reader.h"

namespace leasehold::scheduler {

class TaskReaderPool : public TaskReader {
 public:
  TaskReaderPool(TaskStore& store, const EngineBounds& bounds,
                 SchedulerMetrics& metrics);
  ~TaskReaderPool() override { Stop(); }

  void GetTask(TaskId id, ReadOptions options, TaskDone done) override;
  void GetTasks(std::vector<TaskId> ids, ReadOptions options,
                TasksDone done) override;
  void ListTasks(ListFilter filter, TaskId below, int page_size,
                 PageDone done) override;

  // Refuses new reads, answers those that wait, joins. Idempotent.
  void Stop();

 private:
  // Runs `read` on the pool, or says why not.
  absl::Status Run(std::function<void()> read);

  TaskStore& store_;
  SchedulerMetrics& metrics_;
  std::atomic<bool> stopped_ = false;
  ThreadPool pool_;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_ENGINE_TASK_READER_POOL_H_
