#include "scheduler/maintenance/lease_reaper.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/logging/log.h"
#include "common/status/status_macros.h"

namespace leasehold::scheduler {
namespace {

const char* DecisionName(const Change& change) {
  if (change.end.has_value()) {
    return change.end->state == TaskState::kCancelled ? "cancelled" : "failed";
  }
  return change.update.has_value() ? "retry" : "none";
}

}  // namespace

LeaseReaper::LeaseReaper(const Config& config, TaskStore& store,
                         TaskChanger& changer, const LaneDirectory& lanes,
                         std::function<bool(HolderId, int64_t)> heard_since,
                         SchedulerMetrics& metrics, const Clock& clock)
    : config_(config),
      store_(store),
      changer_(changer),
      lanes_(lanes),
      heard_since_(std::move(heard_since)),
      metrics_(metrics),
      clock_(clock),
      back_since_(clock.SteadyNow()),
      round_end_(back_since_) {}

bool LeaseReaper::SlowSince(SteadyTime begin) const {
  return clock_.SteadyNow() - begin > absl::ToChronoNanoseconds(config_.slow);
}

bool LeaseReaper::Grace() const {
  return clock_.SteadyNow() <
         back_since_ + std::chrono::microseconds(lanes_.LongestLeaseUs());
}

absl::Status LeaseReaper::RunOnce() {
  // While it stood still it wrote no heartbeats.
  if (SlowSince(round_end_)) back_since_ = clock_.SteadyNow();
  absl::Status status;
  bool slow = false;
  for (bool more = true; more && !slow;) {
    const SteadyTime begin = clock_.SteadyNow();
    const absl::StatusOr<bool> reaped = ReapBatch(begin);
    status = reaped.status();
    more = reaped.ok() && *reaped;
    slow = SlowSince(begin);
  }
  round_end_ = clock_.SteadyNow();
  const bool was_up = database_up_.exchange(status.ok());
  if (was_up && !status.ok()) {
    LogError("database away", {{"error", status}});
  }
  if (!was_up && status.ok()) LogInfo("database is back");
  if (!status.ok() || slow) back_since_ = round_end_;
  return status;
}

absl::StatusOr<bool> LeaseReaper::ReapBatch(SteadyTime begin) {
  LEASEHOLD_ASSIGN_OR_RETURN(std::vector<LeasedTask> expired,
                             store_.FindExpiredLeases(config_.batch));
  // The read itself says whether the database is there, so it is not left out.
  if (expired.empty() || Grace() || SlowSince(begin)) return false;
  std::sort(expired.begin(), expired.end(),
            [](const LeasedTask& a, const LeasedTask& b) {
              return a.lease.task_id < b.lease.task_id;
            });
  std::vector<TaskId> ids;
  ids.reserve(expired.size());
  for (const LeasedTask& task : expired) ids.push_back(task.lease.task_id);

  std::vector<const char*> decisions(ids.size());
  std::vector<int64_t> overdue_us(ids.size());
  LEASEHOLD_RETURN_IF_ERROR(changer_.ChangeTasks(
      ids, /*reported=*/false, [&](size_t i, const TaskView& task) {
        // Heartbeats waited as long as this did.
        if (SlowSince(begin)) {
          decisions[i] = DecisionName({});
          return Change();
        }
        Change change =
            DecideExpiry(task, expired[i].lease,
                         heard_since_(expired[i].holder, expired[i].state_us),
                         absl::Uniform<double>(random_, 0.0, 1.0));
        decisions[i] = DecisionName(change);
        overdue_us[i] = task.now_us - expired[i].lease_expire_us;
        return change;
      }));
  bool any = false;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (absl::string_view(decisions[i]) == "none") continue;
    any = true;
    metrics_.leases_expired.Increment();
    LogWarning("lease expired", {{"task", ids[i]},
                                 {"lease", expired[i].lease.lease_number},
                                 {"holder", expired[i].holder},
                                 {"overdue_ms", overdue_us[i] / 1000},
                                 {"decision", decisions[i]}});
  }
  // A full batch in which nothing could be decided would come again and again.
  return any && static_cast<int>(ids.size()) == config_.batch;
}

}  // namespace leasehold::scheduler
