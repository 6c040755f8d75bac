#include "scheduler/domain/task_changes.h"

#include <algorithm>
#include <utility>

#include "common/text/utf8.h"
#include "scheduler/domain/limits.h"

namespace leasehold::scheduler {

TaskError MakeError(ErrorClass error_class, absl::string_view code,
                    absl::string_view message) {
  TaskError error;
  error.error_class = error_class;
  error.code = std::string(code);
  error.message = std::string(message);
  return error;
}

TaskError CancelledError(const std::string& reason) {
  return MakeError(ErrorClass::kCancelled, kCodeCancelled,
                   reason.empty() ? "cancelled on request" : reason);
}

TaskError StoredError(const TaskError& error) {
  TaskError stored = error;
  stored.code = TruncateUtf8(SanitizeUtf8(error.code), kMaxErrorCodeBytes);
  stored.message =
      TruncateUtf8(SanitizeUtf8(error.message), kMaxErrorMessageBytes);
  if (stored.code.empty() && error.error_class == ErrorClass::kTimeout) {
    stored.code = kCodeAttemptTimeout;
  }
  if (stored.code.empty() && error.error_class == ErrorClass::kCancelled) {
    stored.code = kCodeCancelled;
  }
  return stored;
}

LiveTask WithoutCharge(const LiveTask& live) {
  LiveTask task = live;
  task.attempt = std::max(live.attempt - 1, 0);
  return task;
}

LiveTask BackToWaiting(const LiveTask& live, LeaseEnd lease_end, int64_t run_us,
                       int64_t now_us) {
  LiveTask task = live;
  task.phase = Phase::kWaiting;
  task.state = live.attempt > 0 ? TaskState::kRetrying : TaskState::kPending;
  // Never earlier than now: a scan of waiting tasks by run_us that has passed
  // this moment must not miss it.
  task.run_us = std::max(run_us, now_us);
  task.lease_end = lease_end;
  task.lease_expire_us = 0;
  task.attempt_expire_us = 0;
  task.cancel_expire_us = 0;
  task.state_us = now_us;
  return task;
}

EndedTask EndOf(const LiveTask& live, TaskState state, int64_t now_us) {
  EndedTask end;
  end.state = state;
  end.lease_number = live.lease_number;
  end.holder = live.holder;
  end.attempt = live.attempt;
  end.start_us = live.first_start_us;
  end.finish_us = now_us;
  return end;
}

EndedTask FailedEnd(const LiveTask& live, FailureReason reason, TaskError error,
                    int64_t now_us) {
  EndedTask end = EndOf(live, TaskState::kFailed, now_us);
  end.reason = reason;
  end.error = std::move(error);
  return end;
}

EndedTask CancelledEnd(const TaskView& task, const LiveTask& live) {
  EndedTask end = EndOf(live, TaskState::kCancelled, task.now_us);
  end.error = CancelledError(task.cancel_reason);
  return end;
}

int64_t CutShortUs(const LiveTask& live, int64_t now_us) {
  const bool valid =
      live.phase == Phase::kLeased && live.lease_expire_us > now_us;
  return valid ? live.lease_expire_us : 0;
}

Attempt AttemptOf(const LiveTask& live, int64_t start_us, TaskError error,
                  int64_t now_us) {
  Attempt attempt;
  attempt.number = live.attempt;
  attempt.lease_number = live.lease_number;
  attempt.holder = live.holder;
  attempt.start_us = start_us;
  attempt.finish_us = now_us;
  attempt.error = std::move(error);
  return attempt;
}

int64_t StartOf(const LiveTask& live) {
  // In any other state start_us may be that of an earlier attempt.
  return live.state == TaskState::kRunning ? live.start_us : 0;
}

}  // namespace leasehold::scheduler
