// Small histories, good and bad, made by hand. Times are small numbers.
#include "tests/support/history_checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <stdexcept>

#include "tests/support/temp_folder.h"

namespace leasehold::e2e {
namespace {

using leasehold::v1::FAILURE_REASON_ATTEMPTS_EXHAUSTED;
using leasehold::v1::FAILURE_REASON_NON_RETRYABLE;
using leasehold::v1::FAILURE_REASON_UNSPECIFIED;
using leasehold::v1::TASK_STATE_CANCELLED;
using leasehold::v1::TASK_STATE_FAILED;
using leasehold::v1::TASK_STATE_PENDING;
using leasehold::v1::TASK_STATE_RUNNING;
using leasehold::v1::TASK_STATE_SUCCEEDED;
using testing::ElementsAre;
using testing::IsEmpty;
using Kind = Request::Kind;
using Answer = Request::Answer;

// A history of task "1", by default of one that succeeded in its only run, from
// 10 to 20.
class HistoryChecker : public testing::Test {
 protected:
  HistoryChecker() {
    history_.acknowledged = {"1"};
    history_.end_us = 1000;
    Ends(TASK_STATE_SUCCEEDED, 1, 21);
  }

  void Ran(int64_t lease, pid_t pid, int64_t from, std::optional<int64_t> until,
           const std::string& outcome = kOutcomeSucceeded) {
    history_.runs.push_back(
        {"1", lease, pid, from, until, until ? outcome : ""});
  }
  void Leased(int64_t lease, int64_t expire, int64_t seen) {
    history_.leases.push_back({"1", lease, expire, seen});
  }
  void Read(v1::TaskState state, int64_t finish, int64_t asked, int64_t seen) {
    history_.states.push_back({"1", state, finish, asked, seen});
  }
  void Asked(Kind kind, Answer answer, int64_t asked, int64_t answered) {
    history_.requests.push_back({"1", kind, answer, asked, answered});
  }
  void Ends(v1::TaskState state, int64_t lease, int64_t finish,
            v1::FailureReason reason = FAILURE_REASON_UNSPECIFIED) {
    history_.final_tasks["1"] = {state, reason, lease, finish, 0};
  }

  std::vector<Broken> Check() {
    verdict_ = CheckHistory(history_);
    std::vector<Broken> broken;
    for (const Violation& violation : verdict_.violations)
      broken.push_back(violation.broken);
    return broken;
  }

  History history_;
  Verdict verdict_;
};

TEST_F(HistoryChecker, LikesATaskThatRanOnce) {
  Ran(1, 7, 10, 20);
  Leased(1, 30, 12);
  Read(TASK_STATE_RUNNING, 0, 13, 14);
  Read(TASK_STATE_SUCCEEDED, 21, 15, 22);

  EXPECT_THAT(Check(), IsEmpty());
  EXPECT_EQ(verdict_.runs_past_lease, 0u);
}

TEST_F(HistoryChecker, MissesAnAcknowledgedTask) {
  history_.acknowledged.push_back("2");
  Ran(1, 7, 10, 20);

  EXPECT_THAT(Check(), ElementsAre(Broken::kLostTask));
  EXPECT_EQ(verdict_.violations[0].task, "2");
}

// --- Leases.

TEST_F(HistoryChecker, LikesALeaseAfterTheReportOfTheOneBefore) {
  Leased(1, 30, 11);
  Ran(1, 7, 10, 12, "failed");
  Ran(2, 8, 14, 20);
  Ends(TASK_STATE_SUCCEEDED, 2, 21);

  EXPECT_THAT(Check(), IsEmpty());
}

TEST_F(HistoryChecker, SeesALeaseGivenWhileAnotherWasValid) {
  Leased(1, 30, 11);
  Ran(1, 7, 10, 25, "cancelled");
  Ran(2, 8, 14, 20);
  Ends(TASK_STATE_SUCCEEDED, 2, 21);

  EXPECT_THAT(Check(), ElementsAre(Broken::kOverlappingLeases));
}

TEST_F(HistoryChecker, SeesItInTheRowAloneToo) {
  Leased(1, 30, 11);
  Leased(2, 40, 14);
  Ran(1, 7, 10, 25, "cancelled");
  Ends(TASK_STATE_CANCELLED, 2, 50);
  Asked(Kind::kCancel, Answer::kAccepted, 12, 13);

  EXPECT_THAT(Check(), ElementsAre(Broken::kOverlappingLeases));
}

TEST_F(HistoryChecker, CountsARunThatWentOnPastItsLease) {
  Leased(1, 13, 11);
  Ran(1, 7, 10, 25, "cancelled");
  Ran(2, 8, 14, 20);
  Ends(TASK_STATE_SUCCEEDED, 2, 21);

  EXPECT_THAT(Check(), IsEmpty());
  EXPECT_EQ(verdict_.runs_past_lease, 1u);
}

TEST_F(HistoryChecker, ARenewalMovesTheEnd) {
  Leased(1, 13, 11);
  Leased(1, 16, 12);
  Ran(1, 7, 10, 25, "cancelled");
  Ran(2, 8, 14, 20);
  Ends(TASK_STATE_SUCCEEDED, 2, 21);

  EXPECT_THAT(Check(), ElementsAre(Broken::kOverlappingLeases));
}

TEST_F(HistoryChecker, AKilledProcessRunsNoMore) {
  Leased(1, 30, 11);
  Ran(1, 7, 10, std::nullopt);
  history_.deaths[7] = 12;
  Ran(2, 8, 14, 20);
  Ends(TASK_STATE_SUCCEEDED, 2, 21);

  EXPECT_THAT(Check(), IsEmpty());
  EXPECT_EQ(verdict_.runs_without_end, 1u);
}

TEST_F(HistoryChecker, ARunWithoutEndAndDeathStillGoesOn) {
  Leased(1, 30, 11);
  Ran(1, 7, 10, std::nullopt);
  Ran(2, 8, 14, 20);
  Ends(TASK_STATE_SUCCEEDED, 2, 21);

  EXPECT_THAT(Check(), ElementsAre(Broken::kOverlappingLeases));
}

TEST_F(HistoryChecker, SeesALeaseThatRanTwice) {
  Ran(1, 7, 10, 12, "failed");
  Ran(1, 8, 14, 20);

  EXPECT_THAT(Check(), ElementsAre(Broken::kOverlappingLeases));
}

// --- Terminal states.

TEST_F(HistoryChecker, SeesATerminalStateThatChanged) {
  Ran(1, 7, 10, 20);
  Read(TASK_STATE_FAILED, 19, 15, 22);

  EXPECT_THAT(Check(), ElementsAre(Broken::kTerminalChanged));
}

TEST_F(HistoryChecker, SeesATaskThatEndedTwice) {
  Ran(1, 7, 10, 20);
  Read(TASK_STATE_SUCCEEDED, 20, 15, 22);

  EXPECT_THAT(Check(), ElementsAre(Broken::kTerminalChanged));
}

TEST_F(HistoryChecker, SeesAnOlderStateReadLater) {
  Ran(1, 7, 10, 20);
  Read(TASK_STATE_SUCCEEDED, 21, 15, 22);
  Read(TASK_STATE_RUNNING, 0, 23, 24);

  EXPECT_THAT(Check(), ElementsAre(Broken::kTerminalChanged));
}

TEST_F(HistoryChecker, ReadsAtTheSameTimeMayDiffer) {
  Ran(1, 7, 10, 20);
  Read(TASK_STATE_SUCCEEDED, 21, 15, 22);
  Read(TASK_STATE_RUNNING, 0, 21, 24);

  EXPECT_THAT(Check(), IsEmpty());
}

TEST_F(HistoryChecker, OnlyARetryMayChangeATerminalState) {
  Ran(1, 7, 10, 12, kOutcomeFatal);
  Read(TASK_STATE_FAILED, 13, 14, 15);
  Asked(Kind::kRetry, Answer::kAccepted, 16, 17);
  Ran(3, 8, 18, 20);
  Ends(TASK_STATE_SUCCEEDED, 3, 21);
  EXPECT_THAT(Check(), IsEmpty());

  history_.requests[0].answer = Answer::kUnknown;
  EXPECT_THAT(Check(), IsEmpty());

  history_.requests[0].answer = Answer::kRefused;
  EXPECT_THAT(Check(), ElementsAre(Broken::kTerminalChanged));
}

TEST_F(HistoryChecker, ARetryLongBeforeExcusesNothing) {
  Asked(Kind::kRetry, Answer::kAccepted, 5, 6);
  Ran(1, 7, 10, 20);
  Read(TASK_STATE_FAILED, 19, 15, 22);

  EXPECT_THAT(Check(), ElementsAre(Broken::kTerminalChanged));
}

// --- Ends.

TEST_F(HistoryChecker, SeesATaskThatDidNotEnd) {
  Ends(TASK_STATE_PENDING, 0, 0);
  history_.final_tasks["1"].deadline_us = 2000;
  EXPECT_THAT(Check(), ElementsAre(Broken::kNotEnded));
  EXPECT_EQ(verdict_.past_deadline, 0u);

  history_.final_tasks["1"].deadline_us = 900;
  EXPECT_THAT(Check(), ElementsAre(Broken::kNotEnded));
  EXPECT_EQ(verdict_.past_deadline, 1u);
}

TEST_F(HistoryChecker, SeesASuccessOfNoRun) {
  EXPECT_THAT(Check(), ElementsAre(Broken::kWrongOutcome));

  Ran(1, 7, 10, 20, "failed");
  EXPECT_THAT(Check(), ElementsAre(Broken::kWrongOutcome));
}

TEST_F(HistoryChecker, SeesAnOutcomeOfAnOlderLease) {
  Leased(1, 13, 11);
  Ran(1, 7, 10, 20);
  Ran(2, 8, 14, std::nullopt);
  history_.deaths[8] = 15;

  EXPECT_THAT(Check(), ElementsAre(Broken::kWrongOutcome));
}

TEST_F(HistoryChecker, AFailureForGoodNeedsARunThatSaidSo) {
  Ran(1, 7, 10, 20, kOutcomeFatal);
  Ends(TASK_STATE_FAILED, 1, 21, FAILURE_REASON_NON_RETRYABLE);
  EXPECT_THAT(Check(), IsEmpty());

  history_.runs[0].outcome = "failed";
  EXPECT_THAT(Check(), ElementsAre(Broken::kWrongOutcome));
}

TEST_F(HistoryChecker, AnExhaustedTaskNeedsNoRun) {
  Ends(TASK_STATE_FAILED, 4, 21, FAILURE_REASON_ATTEMPTS_EXHAUSTED);

  EXPECT_THAT(Check(), IsEmpty());
}

// --- Requests.

TEST_F(HistoryChecker, ACancelThatWasAcceptedCancelsOrLosesToASuccess) {
  Ran(1, 7, 10, 20);
  Asked(Kind::kCancel, Answer::kAccepted, 11, 12);
  EXPECT_THAT(Check(), IsEmpty());

  Ends(TASK_STATE_CANCELLED, 1, 21);
  EXPECT_THAT(Check(), IsEmpty());

  Ends(TASK_STATE_FAILED, 1, 21, FAILURE_REASON_ATTEMPTS_EXHAUSTED);
  EXPECT_THAT(Check(), ElementsAre(Broken::kDishonestAnswer));
}

TEST_F(HistoryChecker, ACancelIsRefusedOnlyOnceTheTaskHasEnded) {
  Ran(1, 7, 10, 20);
  Asked(Kind::kCancel, Answer::kRefused, 22, 23);
  EXPECT_THAT(Check(), IsEmpty());

  history_.requests[0].asked_us = 11;
  history_.requests[0].answered_us = 12;
  EXPECT_THAT(Check(), ElementsAre(Broken::kDishonestAnswer));
}

TEST_F(HistoryChecker, NothingIsCancelledUnasked) {
  Ends(TASK_STATE_CANCELLED, 1, 21);

  EXPECT_THAT(Check(), ElementsAre(Broken::kWrongOutcome));
}

TEST_F(HistoryChecker, ARetryOfAFailedTaskIsNotRefused) {
  Ran(1, 7, 10, 20, kOutcomeFatal);
  Ends(TASK_STATE_FAILED, 1, 21, FAILURE_REASON_NON_RETRYABLE);
  Asked(Kind::kRetry, Answer::kRefused, 15, 22);
  EXPECT_THAT(Check(), IsEmpty());

  Asked(Kind::kRetry, Answer::kRefused, 25, 26);
  EXPECT_THAT(Check(), ElementsAre(Broken::kDishonestAnswer));
}

// --- The log.

TEST(RunLog, KeepsWhatIsWritten) {
  const TempFolder folder;
  {
    RunLog log(folder.File("runs"));
    log.Start("1", 2);
    log.Start("3", 4);
    log.End("1", 2, "succeeded");
  }

  const auto runs = ReadRunLog(folder.File("runs"));

  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].task, "1");
  EXPECT_EQ(runs[0].lease_number, 2);
  EXPECT_EQ(runs[0].pid, getpid());
  EXPECT_EQ(runs[0].outcome, "succeeded");
  EXPECT_GE(runs[0].end_us.value(), runs[0].start_us);
  EXPECT_EQ(runs[1].task, "3");
  EXPECT_FALSE(runs[1].end_us.has_value());
}

TEST(RunLog, ARunEndsWithItsProcess) {
  const TempFolder folder;
  {
    RunLog log(folder.File("runs"));
    log.Start("1", 2);
    log.Exit();
    log.End("1", 2, "succeeded");  // From a thread that was not stopped yet.
  }

  const auto runs = ReadRunLog(folder.File("runs"));

  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].outcome, "abandoned");
  EXPECT_TRUE(runs[0].end_us.has_value());
}

TEST(RunLog, RefusesAnEndWithoutStart) {
  const TempFolder folder;
  RunLog(folder.File("runs")).End("1", 2, "succeeded");

  EXPECT_THROW(ReadRunLog(folder.File("runs")), std::runtime_error);
}

}  // namespace
}  // namespace leasehold::e2e
