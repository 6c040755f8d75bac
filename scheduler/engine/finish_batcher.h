// Group commit for reports: results, errors and releases of many sessions in
// one transaction. Acknowledges each after the commit, never before.
#ifndef SCHEDULER_ENGINE_FINISH_BATCHER_H_
#define SCHEDULER_ENGINE_FINISH_BATCHER_H_

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/random/random.h"
#include "common/concurrency/bounded_queue.h"
#include "scheduler/domain/state_machine.h"
#include "scheduler/engine/loop_probe.h"
#include "scheduler/engine/options.h"
#include "scheduler/engine/scheduler_metrics.h"
#include "scheduler/engine/task_changer.h"

namespace leasehold::scheduler {

struct DecidedReport {
  LeaseRef lease;
  ReportDisposition disposition = ReportDisposition::kUnspecified;
};

// Who reported. Called on the batcher's thread; must not block.
class ReportSource {
 public:
  virtual ~ReportSource() = default;
  virtual void OnReportsDecided(std::vector<DecidedReport> decided) = 0;
};

// One thread writes; any thread reports.
class FinishBatcher {
 public:
  FinishBatcher(TaskChanger& changer, const EngineBounds& bounds,
                SchedulerMetrics& metrics, const Clock& clock);
  ~FinishBatcher() { Stop(); }

  // Every report is answered exactly once. What does not fit into the queue, or
  // comes after Stop, is answered TRY_AGAIN before this returns.
  void Report(std::vector<Report> reports,
              const std::shared_ptr<ReportSource>& source);

  // Refuses new reports, writes and answers those that wait, joins. Idempotent.
  void Stop();

  const LoopProbe& probe() const { return probe_; }

 private:
  struct Item {
    scheduler::Report report;
    std::shared_ptr<ReportSource> source;
    SteadyTime since;
  };

  void Run();
  // Writes what names distinct tasks; returns what has to come after it.
  std::vector<Item> WriteDistinct(std::vector<Item> items);
  void Write(std::vector<Item> items);
  absl::Status TryWrite(const std::vector<Item>& items,
                        std::vector<ReportDisposition>* dispositions);
  void Answer(const std::vector<Item>& items,
              const std::vector<ReportDisposition>& dispositions);
  void Count(ReportDisposition disposition);

  TaskChanger& changer_;
  const EngineBounds bounds_;
  SchedulerMetrics& metrics_;
  const Clock& clock_;
  absl::InsecureBitGen random_;  // Of the one thread.
  LoopProbe probe_;
  BoundedQueue<Item> queue_;
  std::thread thread_;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_ENGINE_FINISH_BATCHER_H_
