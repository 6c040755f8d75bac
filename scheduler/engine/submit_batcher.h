// Group commit for submits: while one transaction commits, the next batch
// gathers. No timer lingers; an idle scheduler commits a lone task at once.
#ifndef SCHEDULER_ENGINE_SUBMIT_BATCHER_H_
#define SCHEDULER_ENGINE_SUBMIT_BATCHER_H_

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/concurrency/bounded_queue.h"
#include "scheduler/engine/direct_leaser.h"
#include "scheduler/engine/id_allocator.h"
#include "scheduler/engine/lane_directory.h"
#include "scheduler/engine/loop_probe.h"
#include "scheduler/engine/options.h"
#include "scheduler/engine/ready_feed.h"
#include "scheduler/engine/scheduler_metrics.h"
#include "scheduler/engine/task_submitter.h"
#include "scheduler/store/task_store.h"

namespace leasehold::scheduler {

// One thread stores; any thread submits.
class SubmitBatcher : public TaskSubmitter {
 public:
  SubmitBatcher(TaskStore& store, LaneDirectory& lanes, ReadyFeed& feed,
                const EngineBounds& bounds, SchedulerMetrics& metrics,
                const Clock& clock, DirectLeaser* direct_leaser = nullptr);
  ~SubmitBatcher() override { Stop(); }

  void Submit(std::vector<TaskSpec> specs, SubmitDone done) override;

  // Refuses new calls, stores and answers those that wait, joins. Idempotent.
  void Stop();

  const LoopProbe& probe() const { return probe_; }

 private:
  struct Call {
    std::vector<TaskSpec> specs;
    SubmitDone done;
    SteadyTime since;
  };
  // Calls that have their lanes and ids, and those calls' tasks, in step.
  struct Batch {
    std::vector<Call> calls;
    std::vector<std::vector<NewTask>> tasks;
    std::vector<std::vector<std::optional<DirectLease>>> leases;
  };

  void Run();
  void StoreBatch(std::vector<Call> calls);
  // Lanes and ids for `call`, or why not.
  absl::StatusOr<std::vector<NewTask>> Prepare(std::vector<TaskSpec> specs);
  // `direct` may be null.
  void Commit(Batch batch, DirectLeaseBatch* direct);
  // Sends or offers what is new in the calls that succeeded.
  void PassOn(
      Batch& batch,
      const std::vector<absl::StatusOr<std::vector<SubmittedTask>>>& outcomes,
      DirectLeaseBatch* direct);
  static void CancelLeases(
      const std::vector<std::optional<DirectLease>>& leases,
      DirectLeaseBatch* direct);

  TaskStore& store_;
  LaneDirectory& lanes_;
  ReadyFeed& feed_;
  const EngineBounds bounds_;
  SchedulerMetrics& metrics_;
  const Clock& clock_;
  DirectLeaser* const direct_leaser_;
  IdAllocator ids_;
  LoopProbe probe_;
  BoundedQueue<Call> queue_;
  std::thread thread_;
};

// What makes two submits with one idempotency key the same: queue, type and
// payload. SHA-256.
std::string ContentHash(const TaskSpec& spec);

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_ENGINE_SUBMIT_BATCHER_H_
