// TaskControl on one thread: what gathers while a transaction commits is the
// next one, as with submits and reports.
#ifndef SCHEDULER_ENGINE_CONTROL_BATCHER_H_
#define SCHEDULER_ENGINE_CONTROL_BATCHER_H_

#include <thread>
#include <unordered_map>
#include <vector>

#include "common/concurrency/bounded_queue.h"
#include "scheduler/engine/lane_directory.h"
#include "scheduler/engine/loop_probe.h"
#include "scheduler/engine/task_changer.h"
#include "scheduler/engine/task_control.h"

namespace leasehold::scheduler {

class ControlBatcher : public TaskControl {
 public:
  ControlBatcher(TaskStore& store, TaskChanger& changer, LaneDirectory& lanes,
                 const Clock& clock);
  ~ControlBatcher() override { Stop(); }

  void Control(ControlRequest request, Done done) override;

  // Refuses new requests, does and answers those that wait, joins. Idempotent.
  void Stop();

  const LoopProbe& probe() const { return probe_; }

 private:
  struct Call {
    ControlRequest request;
    Done done;
  };
  using Calls = std::vector<Call>;
  using Records = std::unordered_map<TaskId, TaskRecord>;

  void Run();
  // Does what names distinct tasks; returns what has to come after it.
  Calls DoDistinct(Calls calls);
  // `calls`: distinct tasks, ids ascending.
  void Do(Calls calls);
  static void FailAll(const Calls& calls, const absl::Status& status);
  // Answers and removes the calls whose task does not exist, or that only its
  // batch may change.
  void RefuseImpossible(const Records& records, Calls* calls);
  absl::StatusOr<Records> Read(const Calls& calls);
  absl::Status Change(const Calls& calls, const Records& records,
                      std::vector<absl::Status>* refusals);

  TaskStore& store_;
  TaskChanger& changer_;
  LaneDirectory& lanes_;
  LoopProbe probe_;
  BoundedQueue<Call> queue_;
  std::thread thread_;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_ENGINE_CONTROL_BATCHER_H_
