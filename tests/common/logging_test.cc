#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/logging/log.h"
#include "common/logging/rate_limited_log.h"
#include "common/logging/stderr_sink.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leasehold {
namespace {

using ::testing::ElementsAre;
using ::testing::MatchesRegex;

class LogTest : public ::testing::Test {
 protected:
  LogTest() {
    SetLogLevel(LogLevel::kInfo);
    SetLogSinkForTest([this](LogLevel, absl::string_view line) {
      lines_.emplace_back(line);
    });
  }
  ~LogTest() override { SetLogSinkForTest(nullptr); }

  std::vector<std::string> lines_;
};

TEST_F(LogTest, WritesAnEventAndItsFieldsOnOneLine) {
  LogInfo("lease expired", {{"task", int64_t{42}},
                            {"attempt", 3},
                            {"executor", std::string("a-1")},
                            {"overdue_ms", absl::Milliseconds(412)},
                            {"retry", true},
                            {"ratio", 0.5},
                            {"bytes", uint64_t{18446744073709551615u}}});

  EXPECT_THAT(lines_, ElementsAre("lease expired task=42 attempt=3 "
                                  "executor=a-1 overdue_ms=412 retry=true "
                                  "ratio=0.5 bytes=18446744073709551615"));
}

TEST_F(LogTest, QuotesValuesThatCouldForgeALine) {
  LogInfo("event", {{"a", "two words"},
                    {"b", ""},
                    {"c", "x\ny level=error"},
                    {"d", "\xFF"},
                    {"e", "k=v"},
                    {"f", "say \"hi\""}});

  EXPECT_THAT(lines_, ElementsAre("event a=\"two words\" b=\"\" c=\"x\\x0ay "
                                  "level=error\" d=\"\\xff\" e=\"k=v\" "
                                  "f=\"say \\\"hi\\\"\""));
}

TEST_F(LogTest, NeverBreaksALineInTheEvent) {
  LogInfo("one\ntwo");

  EXPECT_THAT(lines_, ElementsAre("one?two"));
}

TEST_F(LogTest, CutsLongValues) {
  LogInfo("event", {{"a", std::string(100'000, 'x')}});

  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_LT(lines_[0].size(), 1'100u);
}

TEST_F(LogTest, ShowsAStatusByNameAndMessage) {
  LogWarning("failed", {{"error", absl::NotFoundError("task 42: not found")},
                        {"other", absl::OkStatus()}});

  EXPECT_THAT(lines_, ElementsAre("failed error=\"NOT_FOUND: task 42: not "
                                  "found\" other=OK"));
}

TEST_F(LogTest, WritesNothingBelowItsLevel) {
  ASSERT_TRUE(SetLogLevelByName("warning").ok());

  LogDebug("a");
  LogInfo("b");
  LogWarning("c");
  LogError("d");
  SetLogLevel(LogLevel::kOff);
  LogError("e");

  EXPECT_THAT(lines_, ElementsAre("c", "d"));
  EXPECT_FALSE(LogEnabled(LogLevel::kError));
}

TEST_F(LogTest, RefusesALevelThatDoesNotExist) {
  const absl::Status status = SetLogLevelByName("loud");

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "\"loud\", want debug, info, warning, error or off");
}

TEST_F(LogTest, CountsWhatItDoesNotRepeat) {
  FakeClock clock(absl::FromUnixSeconds(1'000));
  RateLimitedLog log(absl::Seconds(1), clock);

  for (int i = 0; i < 10; ++i) log.Warning("down", {{"i", i}});
  clock.Advance(absl::Milliseconds(999));
  log.Warning("down", {{"i", 10}});
  clock.Advance(absl::Milliseconds(1));
  log.Warning("down", {{"i", 11}});
  clock.Advance(absl::Seconds(5));
  log.Warning("down", {{"i", 12}});

  EXPECT_THAT(lines_,
              ElementsAre("down i=0", "down i=11 suppressed=10", "down i=12"));
}

TEST_F(LogTest, LetsABurstThroughInEachInterval) {
  FakeClock clock(absl::FromUnixSeconds(1'000));
  RateLimitedLog log(absl::Seconds(1), clock, /*burst=*/2);

  for (int i = 0; i < 5; ++i) log.Warning("failed", {{"i", i}});
  clock.Advance(absl::Seconds(1));
  for (int i = 5; i < 8; ++i) log.Warning("failed", {{"i", i}});

  EXPECT_THAT(lines_, ElementsAre("failed i=0", "failed i=1",
                                  "failed i=5 suppressed=3", "failed i=6"));
}

TEST(LogStderr, WritesTimeAndLevelInUtc) {
  SetLogLevel(LogLevel::kInfo);
  ::testing::internal::CaptureStderr();

  LogError("to stderr", {{"task", 1}});
  FlushLog();

  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              MatchesRegex("[0-9]+-[0-9]+-[0-9]+T[0-9]+:[0-9]+:[0-9]+\\.[0-9]"
                           "[0-9][0-9][0-9][0-9][0-9]Z error to stderr "
                           "task=1\n"));
}

// A pipe that holds little: four writes, or 16 KiB.
class StderrSinkTest : public ::testing::Test {
 protected:
  StderrSinkTest() {
    EXPECT_EQ(pipe(ends_), 0);
    EXPECT_GT(fcntl(ends_[1], F_SETPIPE_SZ, 16384), 0);
    sink_ = std::make_unique<StderrSink>(ends_[1]);
    sink_->set_pattern("%v");
  }
  ~StderrSinkTest() override {
    for (const int end : ends_) close(end);
  }
  void Write(const std::string& line) {
    sink_->log(spdlog::details::log_msg("", spdlog::level::info, line));
  }
  std::string Read() {
    std::string text(65536, '\0');
    const ssize_t got = read(ends_[0], text.data(), text.size());
    text.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return text;
  }

  int ends_[2];
  std::unique_ptr<StderrSink> sink_;
};

TEST_F(StderrSinkTest, WritesLines) {
  Write("one");
  Write("two");

  EXPECT_EQ(Read(), "one\ntwo\n");
}

TEST_F(StderrSinkTest, DropsWhatNobodyReadsInsteadOfWaiting) {
  for (int i = 0; i < 100; ++i) Write(std::string(1000, 'x'));

  Read();
  Write("after");

  EXPECT_THAT(Read(), MatchesRegex("\\([0-9]+ log lines dropped: nobody read "
                                   "them\\)\nafter\n"));
}

TEST_F(StderrSinkTest, APipeThatIsClosedIsNoReasonToStop) {
  close(ends_[0]);
  ends_[0] = open("/dev/null", O_RDONLY);
  signal(SIGPIPE, SIG_IGN);

  for (int i = 0; i < 3; ++i) Write("gone");
}

}  // namespace
}  // namespace leasehold
