#include "executor/sdk/failure_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "executor/sdk/outcome_report.h"

namespace leasehold::executor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class FailureLogTest : public testing::Test {
 protected:
  FailureLogTest() {
    SetLogSinkForTest([this](LogLevel, absl::string_view line) {
      lines_.emplace_back(line);
    });
    run_.input.task_id = std::string("42");
    run_.input.queue = std::string("q");
    run_.input.type = std::string("t");
    run_.input.attempt = 2;
    run_.input.max_attempts = 4;
  }
  ~FailureLogTest() override { SetLogSinkForTest(nullptr); }

  void Finish(HandlerResult result) {
    const auto report = MakeOutcomeReport(run_, std::move(result));
    if (report.has_value()) log_.Add(run_, *report);
  }

  TaskRun run_;
  FailureLog log_;
  std::vector<std::string> lines_;
};

TEST_F(FailureLogTest, SaysWhichTaskFailedAndWhy) {
  Finish(HandlerResult::Error({.error_class = ErrorClass::kNonRetryable,
                               .code = "EXIT_65",
                               .message = "bad date"}));

  EXPECT_THAT(lines_,
              ElementsAre("attempt failed task=42 queue=q type=t attempt=2 "
                          "max_attempts=4 class=NON_RETRYABLE code=EXIT_65"));
}

TEST_F(FailureLogTest, SaysNothingOfWhatIsNoFailure) {
  Finish(HandlerResult::Json("1"));
  Finish(HandlerResult::SnoozeFor(absl::Seconds(1)));
  run_.cancellation.Cancel(CancelReason::kCancelled);
  Finish(HandlerResult::Cancelled());

  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(FailureLogTest, KeepsManyFailuresFromFillingTheDisk) {
  for (int i = 0; i < 1000; ++i) Finish(HandlerResult::Error({.code = "X"}));

  // More, should this have taken longer than a second.
  EXPECT_THAT(lines_,
              SizeIs(testing::AllOf(testing::Ge(FailureLog::kLinesASecond),
                                    testing::Lt(1000))));
}

}  // namespace
}  // namespace leasehold::executor
