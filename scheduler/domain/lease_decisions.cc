// What the end of a lease, or of a task's time, makes of the task when its
// executor has said nothing.
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/domain/limits.h"
#include "scheduler/domain/state_machine.h"
#include "scheduler/domain/task_changes.h"

namespace leasehold::scheduler {
namespace {

bool IsLeasedUnder(const TaskView& task, const LeaseRef& lease) {
  return task.live != nullptr && task.live->phase == Phase::kLeased &&
         task.live->lease_number == lease.lease_number;
}

TaskError ExpiryError(const LiveTask& live, int64_t now_us) {
  if (live.state != TaskState::kRunning) {
    return MakeError(ErrorClass::kLeaseExpired, kCodeNeverStarted,
                     "the executor did not start the task in time");
  }
  const bool timed_out =
      live.attempt_expire_us != 0 && live.attempt_expire_us <= now_us;
  return MakeError(ErrorClass::kLeaseExpired, kCodeLeaseExpired,
                   timed_out ? "the attempt ran past its timeout and the "
                               "executor did not report"
                             : "the executor's heartbeats stopped");
}

// The row after its lease has run out, before it is known where it goes.
LiveTask Expired(const LiveTask& live, bool counts) {
  const bool started = live.state == TaskState::kRunning;
  LiveTask next = started ? live : WithoutCharge(live);
  if (counts) ++next.expiry_count;
  // What never started says nothing about the provider's limit.
  if (started) next.rate_limited_count = 0;
  return next;
}

// Why an expired task will not run again; nullopt if it will.
std::optional<EndedTask> EndAfterExpiry(const TaskView& task,
                                        const LiveTask& next,
                                        const TaskError& error) {
  if (task.live->cancel_expire_us != 0) return CancelledEnd(task, next);
  if (next.expiry_count >= kMaxExpiries) {
    return FailedEnd(
        next, FailureReason::kPoisoned,
        MakeError(ErrorClass::kLeaseExpired, kCodePoisoned,
                  absl::StrCat(next.expiry_count,
                               " leases ended without a report: the task seems "
                               "to kill its executors")),
        task.now_us);
  }
  if (IsNonRetryableCode(task.policy, error.code)) {
    return FailedEnd(next, FailureReason::kNonRetryable, error, task.now_us);
  }
  if (next.attempt >= task.policy.max_attempts) {
    return FailedEnd(next, FailureReason::kAttemptsExhausted, error,
                     task.now_us);
  }
  return std::nullopt;
}

}  // namespace

Change DecideExpiry(const TaskView& task, const LeaseRef& lease,
                    bool spoke_again, double jitter) {
  if (!IsLeasedUnder(task, lease)) return {};
  const LiveTask& live = *task.live;
  if (live.lease_expire_us > task.now_us) return {};

  const bool started = live.state == TaskState::kRunning;
  const LiveTask next = Expired(live, started || !spoke_again);
  const TaskError error = ExpiryError(live, task.now_us);
  Change change;
  change.attempt = AttemptOf(live, StartOf(live), error, task.now_us);
  change.end = EndAfterExpiry(task, next, error);
  if (change.end.has_value()) return change;

  // The first time it is most likely the executor's fault, not the task's.
  const bool at_once = !started || next.expiry_count <= 1;
  const int64_t wait_us =
      at_once ? 0 : BackoffUs(task.policy, next.attempt, jitter);
  change.update = BackToWaiting(next, LeaseEnd::kExpired, task.now_us + wait_us,
                                task.now_us);
  return change;
}

Change DecideNotHeld(const TaskView& task, const LeaseRef& lease,
                     HolderId holder) {
  if (!IsLeasedUnder(task, lease) || task.live->holder != holder) return {};
  const LiveTask& live = *task.live;
  const LiveTask next = WithoutCharge(live);
  Change change;
  // A lease that never arrived leaves no trace; one that ran does.
  if (live.state == TaskState::kRunning) {
    change.attempt = AttemptOf(
        live, StartOf(live),
        MakeError(ErrorClass::kLeaseExpired, kCodeLeaseExpired,
                  "the executor reconnected and did not hold the lease"),
        task.now_us);
  }
  if (live.cancel_expire_us != 0) {
    change.end = CancelledEnd(task, next);
    return change;
  }
  change.update =
      BackToWaiting(next, LeaseEnd::kExpired, task.now_us, task.now_us);
  return change;
}

Change DecideExpireTime(const TaskView& task) {
  if (task.live == nullptr || task.expire_us == 0 ||
      task.expire_us > task.now_us) {
    return {};
  }
  const LiveTask& live = *task.live;
  // FAILED also while a cancellation is under way: CANCELLED promises that
  // nothing starts any more, which a lease that is under way may still do.
  const TaskError error =
      MakeError(ErrorClass::kNonRetryable, kCodeExpired,
                "expire_time passed before the task finished");
  Change change;
  change.end = FailedEnd(live, FailureReason::kExpired, error, task.now_us);
  change.end->lease_expire_us = CutShortUs(live, task.now_us);
  if (live.phase == Phase::kLeased) {
    change.attempt = AttemptOf(live, StartOf(live), error, task.now_us);
  }
  return change;
}

LiveTask NewLeasedTask(TaskId id, LaneId lane_id, const TaskSpec& spec,
                       HolderId holder, int64_t lease_us, int64_t now_us) {
  LiveTask task = NewLiveTask(id, lane_id, spec, now_us);
  task.phase = Phase::kLeased;
  task.state = TaskState::kDispatched;
  task.attempt = 1;
  task.lease_number = 1;
  task.holder = holder;
  task.lease_end = LeaseEnd::kOpen;
  task.lease_expire_us = now_us + lease_us;
  task.state_us = now_us;
  return task;
}

}  // namespace leasehold::scheduler
