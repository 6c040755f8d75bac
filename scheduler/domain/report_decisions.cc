// What a result, an error or a release makes of a task.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

#include "scheduler/domain/limits.h"
#include "scheduler/domain/state_machine.h"
#include "scheduler/domain/task_changes.h"

namespace leasehold::scheduler {
namespace {

// Whether the report is of the row's lease, and still counts. nullopt: it does.
std::optional<ReportDisposition> RefuseReport(const TaskView& task,
                                              const Report& report) {
  const auto is_of = [&](const auto& row) {
    return row.lease_number == report.lease.lease_number &&
           row.holder == report.holder;
  };
  if (task.live == nullptr) {
    const bool repeated = task.ended != nullptr && is_of(*task.ended);
    return repeated ? ReportDisposition::kDuplicate : ReportDisposition::kStale;
  }
  if (!is_of(*task.live)) return ReportDisposition::kStale;
  if (task.live->lease_end == LeaseEnd::kClosed) {
    return ReportDisposition::kDuplicate;
  }
  return std::nullopt;
}

// One report that counts, on its way to a Change.
class ReportDecider {
 public:
  ReportDecider(const TaskView& task, const Report& report, double jitter)
      : task_(task), live_(*task.live), report_(report), jitter_(jitter) {}

  Change Decide() const {
    Change change = std::visit(
        [this](const auto& outcome) { return On(outcome); }, report_.outcome);
    // Starts of short attempts are known only from here.
    const int64_t first_us =
        live_.first_start_us != 0 ? live_.first_start_us : start_us();
    if (change.update.has_value()) change.update->first_start_us = first_us;
    if (change.end.has_value()) change.end->start_us = first_us;
    return change;
  }

 private:
  // The lease was taken back, and the task waits or is paused meanwhile.
  bool late() const { return live_.phase != Phase::kLeased; }
  bool cancelling() const { return !late() && live_.cancel_expire_us != 0; }

  int64_t start_us() const {
    if (report_.start_us != 0) return report_.start_us;
    return late() ? live_.start_us : StartOf(live_);
  }

  // Success counts whenever it comes, and over a cancellation too: work that
  // was paid for is not thrown away.
  Change On(const Payload& result) const {
    EndedTask end = EndOf(live_, TaskState::kSucceeded, task_.now_us);
    end.result = result;
    return End(std::move(end));
  }

  Change On(const TaskError& reported) const {
    const TaskError error = StoredError(reported);
    const bool fatal = error.error_class == ErrorClass::kNonRetryable ||
                       IsNonRetryableCode(task_.policy, error.code);
    if (late()) {
      // No attempt: the history has one for this lease, from its expiry.
      return fatal ? Fail(live_, FailureReason::kNonRetryable, error)
                   : CloseLease();
    }
    Change change = OnOpen(error, fatal);
    change.attempt = AttemptOf(live_, start_us(), error, task_.now_us);
    return change;
  }

  Change OnOpen(const TaskError& error, bool fatal) const {
    const bool limited = error.error_class == ErrorClass::kRateLimited;
    if (cancelling()) return Cancel(limited ? WithoutCharge(live_) : live_);
    if (fatal) return Fail(live_, FailureReason::kNonRetryable, error);
    return limited ? OnRateLimited(error) : OnRetryable(error);
  }

  Change OnRateLimited(const TaskError& error) const {
    LiveTask next = WithoutCharge(live_);
    ++next.rate_limited_count;
    if (next.rate_limited_count >= kMaxRateLimitedRow) {
      return Fail(next, FailureReason::kRateLimited, error);
    }
    return WaitAfter(next, error, next.rate_limited_count);
  }

  // Also timeouts, CANCELLED that nobody asked for, and no class at all.
  Change OnRetryable(const TaskError& error) const {
    LiveTask next = live_;
    next.rate_limited_count = 0;
    if (next.attempt >= task_.policy.max_attempts) {
      return Fail(next, FailureReason::kAttemptsExhausted, error);
    }
    return WaitAfter(next, error, next.attempt);
  }

  // A release says nothing about the work, so it leaves every count alone and
  // no trace in the history.
  Change On(const Release& release) const {
    if (late()) return CloseLease();
    const LiveTask next = WithoutCharge(live_);
    if (cancelling()) return Cancel(next);
    return WaitUntil(next, task_.now_us + ReleaseDelayUs(release));
  }

  static int64_t ReleaseDelayUs(const Release& release) {
    const bool crowded = release.reason == ReleaseReason::kRejected ||
                         release.reason == ReleaseReason::kUnknownType;
    const int64_t usual = crowded ? kDefaultRejectedDelayUs : 0;
    return std::clamp<int64_t>(release.delay_us.value_or(usual), 0,
                               kMaxReleaseDelayUs);
  }

  Change WaitAfter(const LiveTask& next, const TaskError& error, int n) const {
    const int64_t floor_us =
        std::clamp<int64_t>(error.retry_after_us, 0, kMaxRetryAfterUs);
    const int64_t wait_us =
        std::max(BackoffUs(task_.policy, n, jitter_), floor_us);
    return WaitUntil(next, task_.now_us + wait_us);
  }

  // A late report that changes nothing but is not to count a second time.
  Change CloseLease() const {
    Change change;
    change.update = live_;
    change.update->lease_end = LeaseEnd::kClosed;
    return change;
  }

  Change Fail(const LiveTask& next, FailureReason reason,
              const TaskError& error) const {
    return End(FailedEnd(next, reason, error, task_.now_us));
  }

  Change Cancel(const LiveTask& next) const {
    return End(CancelledEnd(task_, next));
  }

  Change End(EndedTask end) const {
    Change change;
    change.end = std::move(end);
    return change;
  }

  Change WaitUntil(const LiveTask& next, int64_t run_us) const {
    Change change;
    change.update =
        BackToWaiting(next, LeaseEnd::kClosed, run_us, task_.now_us);
    return change;
  }

  const TaskView& task_;
  const LiveTask& live_;
  const Report& report_;
  const double jitter_;
};

}  // namespace

ReportDecision DecideReport(const TaskView& task, const Report& report,
                            double jitter) {
  if (const auto refusal = RefuseReport(task, report); refusal.has_value()) {
    return {.change = {}, .disposition = *refusal};
  }
  return {.change = ReportDecider(task, report, jitter).Decide(),
          .disposition = report.refused ? ReportDisposition::kRefused
                                        : ReportDisposition::kRecorded};
}

}  // namespace leasehold::scheduler
