#include "executor/sdk/outcome_report.h"

#include <gtest/gtest.h>

#include <string>

#include "common/text/utf8.h"
#include "executor/sdk/limits.h"

namespace leasehold::executor {
namespace {

std::string Describe(const std::optional<Report>& report) {
  if (!report.has_value()) return "nothing";
  if (const auto* release = std::get_if<v1::LeaseRelease>(&*report)) {
    return v1::ReleaseReason_Name(release->reason());
  }
  const auto& result = std::get<v1::TaskResult>(*report);
  return result.has_error() ? result.error().code() : "result";
}

const v1::TaskError& ErrorOf(const std::optional<Report>& report) {
  return std::get<v1::TaskResult>(*report).error();
}

HandlerResult Failed(ErrorClass error_class) {
  return HandlerResult::Error({error_class, "BOOM", "", std::nullopt});
}

TEST(OutcomeReport, FollowsTheTableOfReasonsAndOutcomes) {
  const struct {
    CancelReason reason;
    const char *success, *snooze, *retryable, *non_retryable;
  } table[] = {
      {CancelReason::kNone, "result", "RELEASE_REASON_SNOOZED", "BOOM", "BOOM"},
      {CancelReason::kCancelled, "result", "CANCELLED", "CANCELLED",
       "CANCELLED"},
      {CancelReason::kTimeout, "result", "ATTEMPT_TIMEOUT", "ATTEMPT_TIMEOUT",
       "ATTEMPT_TIMEOUT"},
      {CancelReason::kDraining, "result", "RELEASE_REASON_DRAINING",
       "RELEASE_REASON_DRAINING", "RELEASE_REASON_DRAINING"},
      {CancelReason::kLeaseLost, "result", "nothing", "nothing", "BOOM"},
  };
  for (const auto& row : table) {
    SCOPED_TRACE(std::string(CancelReasonName(row.reason)));
    TaskRun run;
    if (row.reason != CancelReason::kNone) run.cancellation.Cancel(row.reason);
    const auto describe = [&](HandlerResult result) {
      return Describe(MakeOutcomeReport(run, std::move(result)));
    };
    EXPECT_EQ(describe(HandlerResult::Json("1")), row.success);
    EXPECT_EQ(describe(HandlerResult::SnoozeFor(absl::Seconds(1))), row.snooze);
    EXPECT_EQ(describe(Failed(ErrorClass::kRetryable)), row.retryable);
    EXPECT_EQ(describe(Failed(ErrorClass::kNonRetryable)), row.non_retryable);
  }
}

TEST(OutcomeReport, RefusesAResultOnlyAboveItsLimit) {
  TaskRun run;
  for (const size_t size : {kMaxResultBytes - 1, kMaxResultBytes}) {
    EXPECT_EQ(Describe(MakeOutcomeReport(
                  run, HandlerResult::Data(std::string(size, 'x')))),
              "result");
  }

  const auto report = MakeOutcomeReport(
      run, HandlerResult::Data(std::string(kMaxResultBytes + 1, 'x')));

  EXPECT_EQ(ErrorOf(report).code(), "RESULT_TOO_LARGE");
  EXPECT_EQ(ErrorOf(report).error_class(), v1::ERROR_CLASS_NON_RETRYABLE);
}

TEST(OutcomeReport, RefusesAResultThatIsNotTheJsonItClaimsToBe) {
  TaskRun run;
  for (const char* text : {"", "{", "{} {}", "\"\xff\""}) {
    const auto report = MakeOutcomeReport(run, HandlerResult::Json(text));

    EXPECT_EQ(ErrorOf(report).code(), "INVALID_RESULT") << text;
    EXPECT_EQ(ErrorOf(report).error_class(), v1::ERROR_CLASS_NON_RETRYABLE);
  }
}

TEST(OutcomeReport, KeepsDigitsOfJsonNumbers) {
  TaskRun run;

  const auto report =
      MakeOutcomeReport(run, HandlerResult::Json("9007199254740993"));

  EXPECT_EQ(std::get<v1::TaskResult>(*report).result().json(),
            "9007199254740993");
}

TEST(OutcomeReport, CutsTextsOnACharacterAndReplacesOddBytes) {
  TaskRun run;
  const std::string emoji = "\xF0\x9F\x98\x80";
  std::string message(kMaxErrorMessageBytes - 2, 'x');
  message += emoji;

  const auto report =
      MakeOutcomeReport(run, HandlerResult::Error({ErrorClass::kRetryable,
                                                   std::string(63, 'C') + emoji,
                                                   message, std::nullopt}));
  const auto odd = MakeOutcomeReport(
      run, HandlerResult::Error({ErrorClass::kRetryable, "A\xff",
                                 std::string("a\0b\xc3", 4), std::nullopt}));

  EXPECT_EQ(ErrorOf(report).code(), std::string(63, 'C'));
  EXPECT_EQ(ErrorOf(report).message().size(), kMaxErrorMessageBytes - 2);
  EXPECT_TRUE(IsValidUtf8(ErrorOf(odd).message()));
  EXPECT_TRUE(IsValidUtf8(ErrorOf(odd).code()));
  EXPECT_NE(ErrorOf(odd).message().find(std::string("a\0b", 3)),
            std::string::npos);
}

TEST(OutcomeReport, KeepsRetryAfterWithinItsLimits) {
  TaskRun run;
  const auto retry_after = [&](absl::Duration duration) {
    return ErrorOf(MakeOutcomeReport(
                       run, HandlerResult::Error(
                                {ErrorClass::kRateLimited, "X", "", duration})))
        .retry_after();
  };

  EXPECT_EQ(retry_after(absl::Milliseconds(7500)).seconds(), 7);
  EXPECT_EQ(retry_after(absl::Milliseconds(7500)).nanos(), 500'000'000);
  EXPECT_EQ(retry_after(absl::InfiniteDuration()).seconds(), 3600);
  EXPECT_EQ(retry_after(absl::Seconds(-5)).seconds(), 0);
}

TEST(OutcomeReport, ReleasesWithTheCheckpoint) {
  TaskRun run;
  ASSERT_TRUE(HandlerContext(run).SaveCheckpoint("row 7").ok());
  run.cancellation.Cancel(CancelReason::kDraining);

  const auto report = MakeOutcomeReport(run, HandlerResult::Cancelled());

  EXPECT_EQ(std::get<v1::LeaseRelease>(*report).checkpoint(), "row 7");
}

TEST(OutcomeReport, SaysNothingAboutALeakedHandlerThatMayStillWork) {
  for (const auto& [reason, wanted] :
       {std::pair{CancelReason::kTimeout, "ATTEMPT_TIMEOUT"},
        std::pair{CancelReason::kCancelled, "CANCELLED"},
        std::pair{CancelReason::kDraining, "nothing"},
        std::pair{CancelReason::kLeaseLost, "nothing"}}) {
    TaskRun run;
    run.cancellation.Cancel(reason);

    EXPECT_EQ(Describe(MakeLeakReport(run)), wanted);
  }
}

}  // namespace
}  // namespace leasehold::executor
