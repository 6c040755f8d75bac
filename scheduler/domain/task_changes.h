// The building blocks of the decisions in this folder: a task ends, a task goes
// back to waiting, an attempt enters the history. Only for the sources here.
#ifndef SCHEDULER_DOMAIN_TASK_CHANGES_H_
#define SCHEDULER_DOMAIN_TASK_CHANGES_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "scheduler/domain/state_machine.h"
#include "scheduler/domain/task.h"

namespace leasehold::scheduler {

// Codes that the system sets itself; see TaskError in task.proto.
inline constexpr char kCodeLeaseExpired[] = "LEASE_EXPIRED";
inline constexpr char kCodeNeverStarted[] = "NEVER_STARTED";
inline constexpr char kCodeAttemptTimeout[] = "ATTEMPT_TIMEOUT";
inline constexpr char kCodeExpired[] = "EXPIRED";
inline constexpr char kCodePoisoned[] = "POISONED";
inline constexpr char kCodeCancelled[] = "CANCELLED";

TaskError MakeError(ErrorClass error_class, absl::string_view code,
                    absl::string_view message);

// The error of a task that ends because somebody asked for it, perhaps with a
// reason.
TaskError CancelledError(const std::string& reason);

// `error` as it is stored: valid UTF-8 within its bounds, so that recording a
// failure cannot fail, with ATTEMPT_TIMEOUT or CANCELLED where a class that has
// a code of its own came without.
TaskError StoredError(const TaskError& error);

// Without the attempt that its lease had charged.
LiveTask WithoutCharge(const LiveTask& live);

// `live` without its lease, waiting for `run_us` or now, whatever is later:
// RETRYING if an attempt is charged, else PENDING.
LiveTask BackToWaiting(const LiveTask& live, LeaseEnd lease_end, int64_t run_us,
                       int64_t now_us);

// How `live` ends; result, error and reason are up to the caller.
EndedTask EndOf(const LiveTask& live, TaskState state, int64_t now_us);
EndedTask FailedEnd(const LiveTask& live, FailureReason reason, TaskError error,
                    int64_t now_us);
EndedTask CancelledEnd(const TaskView& task, const LiveTask& live);

// When the lease ends that ending the task now would cut short; 0 if none would
// be. RetryTask waits for it.
int64_t CutShortUs(const LiveTask& live, int64_t now_us);

// The attempt under the current lease, for the history. A lease gets at most
// one: when it stops being open.
Attempt AttemptOf(const LiveTask& live, int64_t start_us, TaskError error,
                  int64_t now_us);

// When the current lease's handler started, as far as the row knows; else 0.
int64_t StartOf(const LiveTask& live);

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_DOMAIN_TASK_CHANGES_H_
