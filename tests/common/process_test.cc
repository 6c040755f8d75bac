#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "common/process/limits.h"
#include "common/process/signals.h"
#include "gtest/gtest.h"

namespace leasehold {
namespace {

TEST(SignalWaiter, ReturnsTheSignalThatCame) {
  SignalWaiter signals;

  kill(getpid(), SIGTERM);
  EXPECT_EQ(signals.Wait(), SIGTERM);
  kill(getpid(), SIGINT);
  EXPECT_EQ(signals.WaitFor(absl::Minutes(1)), SIGINT);
}

TEST(SignalWaiter, GetsSignalsWhicheverThreadTheyAreSentFrom) {
  SignalWaiter signals;
  std::thread sender([] { kill(getpid(), SIGTERM); });

  EXPECT_EQ(signals.WaitFor(absl::InfiniteDuration()), SIGTERM);
  sender.join();
}

TEST(SignalWaiter, GivesUpWhenTheTimeIsUp) {
  SignalWaiter signals;

  EXPECT_EQ(signals.WaitFor(absl::Milliseconds(1)), std::nullopt);
  EXPECT_EQ(signals.WaitFor(-absl::Seconds(1)), std::nullopt);
}

TEST(SignalWaiter, TurnsABrokenPipeIntoAnError) {
  SignalWaiter signals;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);

  EXPECT_EQ(write(ends[1], "x", 1), -1);
  close(ends[1]);
}

TEST(RaiseFileLimit, GivesTheLimitThatHoldsAndNeverLowersIt) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);

  const absl::StatusOr<int64_t> limit = RaiseFileLimit();

  rlimit after{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &after), 0);
  ASSERT_TRUE(limit.ok()) << limit.status();
  EXPECT_EQ(static_cast<rlim_t>(*limit), after.rlim_cur);
  EXPECT_GE(after.rlim_cur, before.rlim_cur);
  EXPECT_EQ(after.rlim_max, before.rlim_max);
}

TEST(OpenStandardDescriptors, LeavesNoneOfThemFree) {
  const pid_t child = fork();
  if (child == 0) {
    close(0);
    close(2);
    OpenStandardDescriptors();
    const bool open = fcntl(0, F_GETFD) >= 0 && fcntl(1, F_GETFD) >= 0 &&
                      fcntl(2, F_GETFD) >= 0;
    _exit(open ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace leasehold
