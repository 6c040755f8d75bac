// Bounds and details that the table of situations does not reach: budgets that
// run out, waits that are asked for, values that nobody should send.
#include <string>
#include <vector>

#include "common/text/utf8.h"
#include "gtest/gtest.h"
#include "scheduler/domain/limits.h"
#include "scheduler/domain/state_machine.h"
#include "tests/scheduler/domain/decision_text.h"

namespace leasehold::scheduler {
namespace {

LiveTask Running(int attempt = 1) {
  LiveTask live;
  live.id = 42;
  live.lane_id = 3;
  live.phase = Phase::kLeased;
  live.state = TaskState::kRunning;
  live.priority = 2;
  live.attempt = attempt;
  live.lease_number = 7;
  live.holder = 8;
  live.lease_end = LeaseEnd::kOpen;
  live.lease_expire_us = kNowUs;
  live.start_us = kNowUs - 5 * kSecondUs;
  return live;
}

TaskView ViewOf(const LiveTask& live) {
  TaskView view;
  view.live = &live;
  view.now_us = kNowUs;
  return view;
}

ReportDecision ReportOn(const LiveTask& live, decltype(Report::outcome) outcome,
                        int64_t start_us = 0) {
  Report report;
  report.lease = {live.id, live.lease_number};
  report.holder = live.holder;
  report.start_us = start_us;
  report.outcome = std::move(outcome);
  return DecideReport(ViewOf(live), report, 0.0);
}

TaskError Error(ErrorClass error_class, int64_t retry_after_us = 0) {
  TaskError error;
  error.error_class = error_class;
  error.code = "E";
  error.retry_after_us = retry_after_us;
  return error;
}

TEST(Reports, EndTheTaskWithItsLastAttempt) {
  EXPECT_EQ(TextOf(ReportOn(Running(3), Error(ErrorClass::kRetryable))),
            "RECORDED RETRYING/closed a3 x0 r0 wait=20s; attempt 3 E");
  EXPECT_EQ(TextOf(ReportOn(Running(4), Error(ErrorClass::kTimeout))),
            "RECORDED END FAILED:ATTEMPTS_EXHAUSTED a4 code=E; attempt 4 E");
}

TEST(Reports, RateLimitsDoNotUseUpAttemptsButEndAtTwentyInARow) {
  LiveTask live = Running(4);
  live.rate_limited_count = 18;
  EXPECT_EQ(TextOf(ReportOn(live, Error(ErrorClass::kRateLimited))),
            "RECORDED RETRYING/closed a3 x0 r19 wait=250s; attempt 4 E");

  live.rate_limited_count = 19;
  EXPECT_EQ(TextOf(ReportOn(live, Error(ErrorClass::kRateLimited))),
            "RECORDED END FAILED:RATE_LIMITED a3 code=E; attempt 4 E");
}

TEST(Reports, TakeRetryAfterAsAFloorUpToAnHour) {
  const auto wait = [](ErrorClass error_class, int64_t retry_after_us) {
    const ReportDecision decision =
        ReportOn(Running(), Error(error_class, retry_after_us));
    return (decision.change.update->run_us - kNowUs) / kSecondUs;
  };
  for (const ErrorClass error_class :
       {ErrorClass::kRateLimited, ErrorClass::kRetryable}) {
    EXPECT_EQ(wait(error_class, 7 * kSecondUs), 7);
    EXPECT_EQ(wait(error_class, 2 * kSecondUs), 5) << "backoff is longer";
    EXPECT_EQ(wait(error_class, 99'999'999 * kSecondUs), 3'600);
    EXPECT_EQ(wait(error_class, INT64_MAX), 3'600);
    EXPECT_EQ(wait(error_class, -kSecondUs), 5);
  }
}

TEST(Reports, SpreadRetriesByTheJitter) {
  const LiveTask live = Running();
  Report report;
  report.lease = {live.id, live.lease_number};
  report.holder = live.holder;
  report.outcome = Error(ErrorClass::kRetryable);

  const ReportDecision decision = DecideReport(ViewOf(live), report, 0.5);

  EXPECT_EQ(decision.change.update->run_us, kNowUs + 5'500'000);
}

TEST(Reports, BoundTheDelayOfARelease) {
  const auto wait = [](int64_t delay_us) {
    const ReportDecision decision =
        ReportOn(Running(), Release{ReleaseReason::kRejected, delay_us});
    return decision.change.update->run_us - kNowUs;
  };
  EXPECT_EQ(wait(0), 0) << "an explicit 0 is not the default of 5 s";
  EXPECT_EQ(wait(-1), 0);
  EXPECT_EQ(wait(INT64_MAX), kMaxReleaseDelayUs);
}

TEST(Reports, MakeATaskPendingAgainWhenItsOnlyAttemptIsGivenBack) {
  const ReportDecision decision =
      ReportOn(Running(1), Release{ReleaseReason::kDraining, std::nullopt});

  EXPECT_EQ(TextOf(decision), "RECORDED PENDING/closed a0 x0 r0 wait=0s");
}

TEST(Reports, KeepTheResultAndTheStartOfTheAttempt) {
  const Payload result{PayloadKind::kData, std::string("a\0b", 3)};

  LiveTask again = Running();
  again.first_start_us = kNowUs - 60 * kSecondUs;

  const ReportDecision known = ReportOn(Running(), result);
  const ReportDecision told = ReportOn(Running(), result, kNowUs - kSecondUs);
  const ReportDecision first = ReportOn(again, result, kNowUs - kSecondUs);

  ASSERT_TRUE(known.change.end.has_value());
  EXPECT_EQ(known.change.end->result, result);
  EXPECT_EQ(known.change.end->start_us, kNowUs - 5 * kSecondUs);
  EXPECT_EQ(known.change.end->finish_us, kNowUs);
  EXPECT_EQ(known.change.end->lease_number, 7);
  EXPECT_EQ(known.change.end->holder, 8);
  ASSERT_TRUE(told.change.end.has_value());
  EXPECT_EQ(told.change.end->start_us, kNowUs - kSecondUs);
  ASSERT_TRUE(first.change.end.has_value());
  EXPECT_EQ(first.change.end->start_us, again.first_start_us);
}

TEST(Reports, KeepTheFirstAttemptsStartForTheNext) {
  LiveTask quick = Running();
  quick.state = TaskState::kDispatched;

  const ReportDecision decision =
      ReportOn(quick, Error(ErrorClass::kRetryable), kNowUs - kSecondUs);

  ASSERT_TRUE(decision.change.update.has_value());
  EXPECT_EQ(decision.change.update->first_start_us, kNowUs - kSecondUs);
}

TEST(Reports, DoNotTakeAnEarlierAttemptsStartForTheirOwn) {
  LiveTask live = Running();
  live.state = TaskState::kDispatched;

  const ReportDecision decision = ReportOn(live, Error(ErrorClass::kRetryable));

  EXPECT_EQ(decision.change.attempt->start_us, 0);
}

TEST(Reports, StoreErrorsThatNoColumnCanRefuse) {
  TaskError error;
  error.error_class = ErrorClass::kNonRetryable;
  error.code = std::string(200, 'C');
  error.message = "\xff\xfe" + std::string(kMaxErrorMessageBytes - 7, 'm') +
                  "\xF0\x9F\x98\x80 tail";

  const ReportDecision decision = ReportOn(Running(), error);

  const TaskError& stored = *decision.change.end->error;
  EXPECT_EQ(stored.code.size(), kMaxErrorCodeBytes);
  EXPECT_LE(stored.message.size(), kMaxErrorMessageBytes);
  EXPECT_TRUE(IsValidUtf8(stored.message));
  EXPECT_EQ(decision.change.attempt->error, stored);
}

TEST(Reports, CannotNameALeaseThatNeverWas) {
  const LiveTask fresh = NewLiveTask(42, 3, TaskSpec{}, kNowUs);

  const ReportDecision decision = ReportOn(fresh, Payload{});

  EXPECT_FALSE(decision.change.writes());
}

TEST(Reports, OfALeaseFromBeforeARetryAreStale) {
  EndedTask ended;
  ended.state = TaskState::kFailed;
  ended.lease_number = 7;
  ended.holder = 8;
  const LiveTask live = *DecideRetry(42, 3, 2, ended, kNowUs);
  Report report;
  report.holder = 8;
  report.outcome = Payload{};
  for (const int64_t lease_number : {7, 8}) {
    report.lease = {42, lease_number};

    EXPECT_EQ(TextOf(DecideReport(ViewOf(live), report, 0.0)), "STALE nothing")
        << lease_number;
  }
}

TEST(Expiry, RetriesAtOnceTheFirstTimeOnly) {
  LiveTask live = Running(1);
  EXPECT_EQ(TextOf(DecideExpiry(ViewOf(live), {42, 7}, false, 0.0)),
            "RETRYING/expired a1 x1 r0 wait=0s; attempt 1 LEASE_EXPIRED");

  live.attempt = 2;
  live.expiry_count = 1;
  EXPECT_EQ(TextOf(DecideExpiry(ViewOf(live), {42, 7}, false, 0.0)),
            "RETRYING/expired a2 x2 r0 wait=10s; attempt 2 LEASE_EXPIRED");
}

TEST(Expiry, PoisonsATaskAtItsFifth) {
  LiveTask live = Running(1);
  live.expiry_count = 4;
  EXPECT_EQ(TextOf(DecideExpiry(ViewOf(live), {42, 7}, true, 0.0)),
            "END FAILED:POISONED a1 code=POISONED; attempt 1 LEASE_EXPIRED");

  live.state = TaskState::kDispatched;
  EXPECT_EQ(TextOf(DecideExpiry(ViewOf(live), {42, 7}, false, 0.0)),
            "END FAILED:POISONED a0 code=POISONED; attempt 1 NEVER_STARTED");
  EXPECT_EQ(TextOf(DecideExpiry(ViewOf(live), {42, 7}, true, 0.0)),
            "PENDING/expired a0 x4 r0 wait=0s; attempt 1 NEVER_STARTED");
}

TEST(Expiry, EndsTheTaskWithItsLastAttemptIfThatStarted) {
  LiveTask live = Running(4);
  EXPECT_EQ(TextOf(DecideExpiry(ViewOf(live), {42, 7}, true, 0.0)),
            "END FAILED:ATTEMPTS_EXHAUSTED a4 code=LEASE_EXPIRED; attempt 4 "
            "LEASE_EXPIRED");

  live.state = TaskState::kDispatched;
  EXPECT_EQ(TextOf(DecideExpiry(ViewOf(live), {42, 7}, true, 0.0)),
            "RETRYING/expired a3 x0 r0 wait=0s; attempt 4 NEVER_STARTED");
}

TEST(Expiry, FailsAtOnceWhenThePolicyListsItsCode) {
  const LiveTask live = Running(1);
  TaskView view = ViewOf(live);
  view.policy.non_retryable_codes = {"LEASE_EXPIRED"};

  EXPECT_EQ(TextOf(DecideExpiry(view, {42, 7}, true, 0.0)),
            "END FAILED:NON_RETRYABLE a1 code=LEASE_EXPIRED; attempt 1 "
            "LEASE_EXPIRED");
}

TEST(Cancel, WaitsForALeaseThatIsLongerThanHalfAMinute) {
  const LiveTask live = Running();

  const ControlDecision decision =
      DecideCancel(ViewOf(live), 90 * kSecondUs, "");

  EXPECT_EQ(TextOf(decision), "DONE RUNNING/open a1 x0 r0 cancel=90s");
  EXPECT_EQ(decision.change.update->lease_expire_us, live.lease_expire_us);
}

TEST(Cancel, DeadlineDoesNotNameALeaseThatIsOver) {
  LiveTask live = Running();
  live.cancel_expire_us = kNowUs;
  live.lease_expire_us = kNowUs;

  EXPECT_EQ(TextOf(DecideCancelDeadline(ViewOf(live))),
            "END CANCELLED a1 code=CANCELLED; attempt 1 CANCELLED");
}

TEST(Resume, NeverSetsARunTimeInThePast) {
  LiveTask live = Running(0);
  live.phase = Phase::kPaused;
  live.state = TaskState::kPaused;
  live.lease_end = LeaseEnd::kClosed;
  live.run_us = kNowUs - 3'600 * kSecondUs;

  EXPECT_EQ(TextOf(DecideResume(ViewOf(live))),
            "DONE PENDING/closed a0 x0 r0 wait=0s");
}

TEST(Retry, StartsAfreshAndKeepsLaneAndPriority) {
  EndedTask ended;
  ended.state = TaskState::kFailed;
  ended.reason = FailureReason::kPoisoned;
  ended.lease_number = 1'000;
  ended.attempt = 1'000;

  const std::optional<LiveTask> live = DecideRetry(42, 9, 7, ended, kNowUs);

  ASSERT_TRUE(live.has_value());
  EXPECT_EQ(live->id, 42);
  EXPECT_EQ(live->lane_id, 9);
  EXPECT_EQ(live->priority, 7);
  EXPECT_EQ(live->attempt, 0);
  EXPECT_EQ(live->expiry_count, 0);
  EXPECT_EQ(live->rate_limited_count, 0);
  EXPECT_EQ(live->lease_number, 1'001);
  EXPECT_EQ(live->lease_end, LeaseEnd::kClosed);
  EXPECT_EQ(live->run_us, kNowUs);
}

TEST(Retry, WaitsForTheEndOfALeaseThatWasCutShort) {
  LiveTask live = Running();
  live.lease_expire_us = kNowUs + 9 * kSecondUs;
  TaskView view = ViewOf(live);
  view.expire_us = kNowUs;
  const Change change = DecideExpireTime(view);

  const std::optional<LiveTask> again =
      DecideRetry(42, 3, 2, *change.end, kNowUs + kSecondUs);

  EXPECT_EQ(again->run_us, kNowUs + 9 * kSecondUs);
}

TEST(NewLeasedTask, IsWhatAClaimWouldHaveMadeOfIt) {
  TaskSpec spec;
  spec.priority = 7;

  const LiveTask task = NewLeasedTask(42, 3, spec, 9, kSecondUs, kNowUs);

  LiveTask claimed = NewLiveTask(42, 3, spec, kNowUs);
  claimed.phase = Phase::kLeased;
  claimed.state = TaskState::kDispatched;
  claimed.attempt = 1;
  claimed.lease_number = 1;
  claimed.holder = 9;
  claimed.lease_end = LeaseEnd::kOpen;
  claimed.lease_expire_us = kNowUs + kSecondUs;
  EXPECT_EQ(task, claimed);
}

TEST(NewLiveTask, WaitsForItsScheduleButNeverStartsInThePast) {
  TaskSpec spec;
  spec.priority = 0;
  spec.schedule_us = kNowUs + kSecondUs;
  EXPECT_EQ(NewLiveTask(1, 2, spec, kNowUs).run_us, kNowUs + kSecondUs);
  EXPECT_EQ(NewLiveTask(1, 2, spec, kNowUs).priority, 0);

  spec.schedule_us = kNowUs - kSecondUs;
  EXPECT_EQ(NewLiveTask(1, 2, spec, kNowUs).run_us, kNowUs);
}

}  // namespace
}  // namespace leasehold::scheduler
