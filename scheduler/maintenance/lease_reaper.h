// Takes back leases whose executors have stopped renewing them.
//
// After a start, and after the database was away or slow, executors first get
// one lease duration to be heard again: nothing is taken back while their
// heartbeats could not have been written.
#ifndef SCHEDULER_MAINTENANCE_LEASE_REAPER_H_
#define SCHEDULER_MAINTENANCE_LEASE_REAPER_H_

#include <atomic>
#include <functional>
#include <vector>

#include "absl/random/random.h"
#include "absl/status/status.h"
#include "common/time/clock.h"
#include "scheduler/engine/lane_directory.h"
#include "scheduler/engine/scheduler_metrics.h"
#include "scheduler/engine/task_changer.h"
#include "scheduler/store/task_store.h"

namespace leasehold::scheduler {

// RunOnce is for one thread; database_up is thread-safe.
class LeaseReaper {
 public:
  struct Config {
    int batch = 500;
    // A batch that took longer counts as an outage of the database; a longer
    // time between two rounds says that this process stood still.
    absl::Duration slow = absl::Seconds(2);
  };

  LeaseReaper(const Config& config, TaskStore& store, TaskChanger& changer,
              const LaneDirectory& lanes,
              std::function<bool(HolderId, int64_t since_us)> heard_since,
              SchedulerMetrics& metrics, const Clock& clock);

  // Takes back what is overdue, batch by batch.
  absl::Status RunOnce();

  bool database_up() const { return database_up_; }

 private:
  bool SlowSince(SteadyTime begin) const;
  // Whether executors have yet to be given the time to be heard again.
  bool Grace() const;
  // True if there may be more.
  absl::StatusOr<bool> ReapBatch(SteadyTime begin);

  const Config config_;
  TaskStore& store_;
  TaskChanger& changer_;
  const LaneDirectory& lanes_;
  const std::function<bool(HolderId, int64_t)> heard_since_;
  SchedulerMetrics& metrics_;
  const Clock& clock_;
  absl::InsecureBitGen random_;
  // The start, or the end of the latest outage.
  SteadyTime back_since_;
  SteadyTime round_end_;  // Of the latest round.
  std::atomic<bool> database_up_ = true;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_MAINTENANCE_LEASE_REAPER_H_
