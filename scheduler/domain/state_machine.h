// Decides what happens to a task when something happens to it: the table of
// states in scheduler/README.md, one function per event.
//
// Pure: no I/O, no clock, no locks, no randomness of its own. Callers pass the
// row as it is locked now, the database's `now_us` and a jitter in [0, 1), and
// hand the returned Change to the store, which writes it in the same
// transaction.
#ifndef SCHEDULER_DOMAIN_STATE_MACHINE_H_
#define SCHEDULER_DOMAIN_STATE_MACHINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "scheduler/domain/retry_policy.h"
#include "scheduler/domain/task.h"

namespace leasehold::scheduler {

// What the database gives to decide on.
struct TaskView {
  const LiveTask* live = nullptr;    // Null when the task is not live any more.
  const EndedTask* ended = nullptr;  // Only lease_number, holder and state are
                                     // set; null when never stored or purged.
  RetryPolicy policy;                // Resolved; only when live.
  int64_t expire_us = 0;             // The task's expire_time; 0 means never.
  std::string cancel_reason;  // As DecideCancel was given it; only when live.
  int64_t now_us = 0;
};

// What is to be written. With neither `update` nor `end` nothing is.
struct Change {
  std::optional<LiveTask> update;  // The live row as it shall stand.
  std::optional<EndedTask> end;    // The live row goes, this result comes.
  // Added to the history. A lease gets at most one: (task, lease_number) is a
  // key. Releases and late reports add none.
  std::optional<Attempt> attempt;
  // Of a release: saved with `update`, for the next attempt.
  std::optional<std::string> checkpoint;
  // Saved with `update`; TaskView shows it from then on.
  std::optional<std::string> cancel_reason;

  bool writes() const { return update.has_value() || end.has_value(); }
};

enum class ReportDisposition : int {
  kUnspecified = 0,
  kRecorded = 1,
  kDuplicate = 2,
  kStale = 3,
  kTryAgain = 4,
  kRefused = 5,
};

struct LeaseRef {
  TaskId task_id = 0;
  int64_t lease_number = 0;

  friend bool operator==(const LeaseRef&, const LeaseRef&) = default;
  // NOLINTNEXTLINE(modernize-use-nullptr): the tool misreads the default.
  friend auto operator<=>(const LeaseRef&, const LeaseRef&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const LeaseRef& ref) {
    return H::combine(std::move(h), ref.task_id, ref.lease_number);
  }
};

struct Release {
  ReleaseReason reason = ReleaseReason::kUnspecified;
  // Unset takes the reason's default: 5 s for REJECTED and UNKNOWN_TYPE, else
  // 0.
  std::optional<int64_t> delay_us;
};

// The end of a lease as its executor tells it: a result, an error, or a
// release.
struct Report {
  LeaseRef lease;
  HolderId holder = 0;
  // When the handler started, if the scheduler heard so; 0 if not.
  int64_t start_us = 0;
  std::variant<Payload, TaskError, Release> outcome;
  // The report itself is bad, such as too large; `outcome` then holds the
  // non-retryable error that says so, and the disposition is REFUSED.
  bool refused = false;
  // Of a release: handed to the next attempt.
  std::optional<std::string> checkpoint;
};

struct ReportDecision {
  Change change;
  ReportDisposition disposition = ReportDisposition::kStale;
};

// A report of another lease_number or holder is STALE, one of a lease that is
// closed already DUPLICATE; also when the task has ended. Late (the lease was
// taken back and the task waits or is PAUSED), a success or an error that no
// retry can help ends the task all the same; anything else is RECORDED too but
// only closes the lease. With a cancellation under way only a success wins over
// it. Errors and releases never leave a task without a next step:
//   rate limited: attempt given back; FAILED(RATE_LIMITED) at 20 in a row.
//   Errors
//     of other kinds and expiries of a started task start that count anew,
//     releases do not.
//   a code of policy.non_retryable_codes fails at once whatever its class.
//   retry_after is a floor for every kind of retry, at most 1 h.
ReportDecision DecideReport(const TaskView& task, const Report& report,
                            double jitter);

// The lease ended without a report: lease_expire_us is past. `spoke_again` says
// that the holder's incarnation has been heard of since the lease was made, so
// that a lease that was never accepted is not held against the task.
// Changes nothing unless the row is still leased under `lease` and its lease is
// over by now_us. LEASE_EXPIRED and NEVER_STARTED are codes like others: a
// policy that lists them as non-retryable makes the task run at most once.
Change DecideExpiry(const TaskView& task, const LeaseRef& lease,
                    bool spoke_again, double jitter);

// A lease that a hello of its own incarnation did not name: goes back at once,
// lease expired, the attempt given back.
Change DecideNotHeld(const TaskView& task, const LeaseRef& lease,
                     HolderId holder);

// expire_us has passed. Changes nothing while it has not. FAILED(EXPIRED) also
// while a cancellation is under way.
Change DecideExpireTime(const TaskView& task);

enum class ControlOutcome {
  kDone,         // Changed as asked.
  kAlreadyDone,  // Stood like that already; nothing changed.
  kWrongState,   // FAILED_PRECONDITION; nothing changed.
  kNotFound,
};
struct ControlDecision {
  Change change;
  ControlOutcome outcome = ControlOutcome::kNotFound;
};

// CancelTask. A leased task gets cancel_expire_us = now + max(30 s,
// lease_duration_us); a waiting one ends at once. `reason`, if any, is the
// message of the error that the task ends with.
ControlDecision DecideCancel(const TaskView& task, int64_t lease_duration_us,
                             const std::string& reason);
// The cancel deadline of a RUNNING task has passed. Changes nothing otherwise.
Change DecideCancelDeadline(const TaskView& task);
// Waiting to PAUSED. Leased or ended: WRONG_STATE.
ControlDecision DecidePause(const TaskView& task);
// PAUSED to waiting. A live task that is not paused: ALREADY_DONE.
ControlDecision DecideResume(const TaskView& task);

// RetryTask of an ended task: the live row that brings it back, with fresh
// counts and lease_number + 1. `run_us` is never before the end of a lease that
// was cut short. Null when the state is not FAILED or CANCELLED.
std::optional<LiveTask> DecideRetry(TaskId id, LaneId lane_id, int priority,
                                    const EndedTask& ended, int64_t now_us);

// The row of a task that has just been submitted.
LiveTask NewLiveTask(TaskId id, LaneId lane_id, const TaskSpec& spec,
                     int64_t now_us);

// The row of a task that is leased in the transaction that stores it: as if
// NewLiveTask had been claimed at once. Not for a task with a schedule_time.
LiveTask NewLeasedTask(TaskId id, LaneId lane_id, const TaskSpec& spec,
                       HolderId holder, int64_t lease_us, int64_t now_us);

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_DOMAIN_STATE_MACHINE_H_
