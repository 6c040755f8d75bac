#include "executor/handlers/process_guard.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "executor/handlers/subprocess.h"
#include "tests/executor/processes.h"

namespace leasehold::executor {
namespace {

// For what should happen at once, on a loaded machine.
constexpr absl::Duration kPatience = absl::Seconds(10);
constexpr absl::Duration kGrace = absl::Milliseconds(500);

// Says its own number and that of a grandchild; neither heeds TERM.
constexpr char kStubborn[] =
    "trap '' TERM; (while :; do sleep 0.05; done) & echo $$ $!; "
    "while :; do sleep 0.05; done";

// A process with children, to be ended in bad ways.
class GuardedParent {
 public:
  GuardedParent(const std::string& script, absl::Duration grace)
      : tag_(absl::StrCat("guard-test-", getpid(), "-", ++count_)) {
    auto process = Subprocess::Spawn(
        {{std::filesystem::read_symlink("/proc/self/exe").parent_path() /
              "executor_guarded_parent",
          tag_, absl::StrCat(absl::ToInt64Milliseconds(grace)), script},
         {"PATH=/usr/bin:/bin"}});
    EXPECT_TRUE(process.ok()) << process.status();
    process_.emplace(*std::move(process));
    pid_ = std::atoi(ReadLine().c_str());
  }

  std::string Tell(const std::string& word) {
    const std::string line = word + "\n";
    EXPECT_EQ(write(process_->input().get(), line.data(), line.size()),
              static_cast<ssize_t>(line.size()));
    return ReadLine();
  }

  // The processes that a spawned script names.
  std::vector<pid_t> Spawn() {
    std::vector<pid_t> pids;
    const std::string line = Tell("spawn");
    for (const auto part : absl::StrSplit(line, ' ')) {
      int pid = 0;
      EXPECT_TRUE(absl::SimpleAtoi(part, &pid) && pid > 1) << line;
      pids.push_back(pid);
    }
    return pids;
  }

  void Kill() {
    ASSERT_GT(pid_, 1);
    kill(pid_, SIGKILL);
    int status = 0;
    while (!process_->TryReap(&status)) absl::SleepFor(absl::Milliseconds(1));
    EXPECT_TRUE(WIFSIGNALED(status));
  }

  void Leave() {
    process_->input().Close();
    int status = 0;
    while (!process_->TryReap(&status)) absl::SleepFor(absl::Milliseconds(1));
    EXPECT_EQ(status, 0);
  }

  std::optional<pid_t> guard() const {
    const auto guards = FindProcesses("leasehold-guard", tag_);
    EXPECT_LE(guards.size(), 1u);
    return guards.empty() ? std::nullopt : std::optional(guards[0]);
  }
  bool WaitUntilUnguarded() const {
    const absl::Time until = absl::Now() + kPatience;
    while (guard().has_value() && absl::Now() < until) {
      absl::SleepFor(absl::Milliseconds(10));
    }
    return !guard().has_value();
  }

  pid_t pid() const { return pid_; }

 private:
  std::string ReadLine() {
    std::string line;
    const absl::Time until = absl::Now() + kPatience;
    while (absl::Now() < until) {
      char c = 0;
      const ssize_t size = read(process_->output().get(), &c, 1);
      if (size == 1 && c == '\n') return line;
      if (size == 1) line.push_back(c);
      if (size < 0) absl::SleepFor(absl::Milliseconds(1));
      if (size == 0) break;
    }
    ADD_FAILURE() << "no answer, only: " << line;
    return line;
  }

  static inline int count_ = 0;
  const std::string tag_;
  std::optional<Subprocess> process_;
  pid_t pid_ = 0;
};

TEST(ProcessGuard, EndsAWholeTreeThatIgnoresTermWhenItsOwnerIsKilled) {
  GuardedParent parent(kStubborn, kGrace);
  const std::vector<pid_t> first = parent.Spawn();
  const std::vector<pid_t> second = parent.Spawn();
  const absl::Time start = absl::Now();

  parent.Kill();

  for (const pid_t pid :
       {first.at(0), first.at(1), second.at(0), second.at(1)}) {
    EXPECT_TRUE(WaitUntilGone(pid, kPatience)) << pid;
  }
  // TERM was given its time before KILL.
  EXPECT_GE(absl::Now() - start, kGrace);
  EXPECT_LT(absl::Now() - start, kGrace + absl::Seconds(2));
  EXPECT_TRUE(parent.WaitUntilUnguarded());
}

TEST(ProcessGuard, LetsATreeEndByTerm) {
  GuardedParent parent(
      "(trap 'exit 0' TERM; while :; do sleep 0.05; done) & "
      "trap 'wait; exit 0' TERM; echo $$ $!; while :; do sleep 0.05; done",
      absl::Hours(1));
  const std::vector<pid_t> pids = parent.Spawn();

  parent.Kill();

  EXPECT_TRUE(WaitUntilGone(pids.at(0), kPatience));
  EXPECT_TRUE(WaitUntilGone(pids.at(1), kPatience));
  EXPECT_TRUE(parent.WaitUntilUnguarded());
}

TEST(ProcessGuard, EndsWhatItsOwnerLeavesBehind) {
  GuardedParent parent(kStubborn, absl::ZeroDuration());
  const std::vector<pid_t> pids = parent.Spawn();

  parent.Leave();

  EXPECT_TRUE(WaitUntilGone(pids.at(0), kPatience));
  EXPECT_TRUE(WaitUntilGone(pids.at(1), kPatience));
  EXPECT_TRUE(parent.WaitUntilUnguarded());
}

TEST(ProcessGuard, EndsWithAnOwnerThatHasNothingLeft) {
  GuardedParent parent("echo $$", absl::Hours(1));
  parent.Spawn();
  parent.Tell("reap");
  ASSERT_TRUE(parent.guard().has_value());

  parent.Leave();

  EXPECT_TRUE(parent.WaitUntilUnguarded());
}

TEST(ProcessGuard, KeepsNothingOpenButItsSocketAndItsOwner) {
  GuardedParent parent("echo $$", kGrace);
  parent.Spawn();
  parent.Tell("reap");
  const std::optional<pid_t> guard = parent.guard();
  ASSERT_TRUE(guard.has_value());

  // The pidfd of the group that is over is closed a moment later.
  const absl::Time until = absl::Now() + kPatience;
  while (OpenFiles(*guard).size() > 5 && absl::Now() < until) {
    absl::SleepFor(absl::Milliseconds(5));
  }

  const auto files = OpenFiles(*guard);
  EXPECT_EQ(files.size(), 5u);
  EXPECT_EQ(files.count("/dev/null"), 3u);
  EXPECT_EQ(getsid(*guard), *guard);
}

TEST(ProcessGuard, ASignalThatMeansItsOwnerDoesNotEndIt) {
  GuardedParent parent(kStubborn, absl::ZeroDuration());
  const std::vector<pid_t> pids = parent.Spawn();
  const std::optional<pid_t> guard = parent.guard();
  ASSERT_TRUE(guard.has_value());
  EXPECT_NE(getpgid(*guard), getpgid(parent.pid()));
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) {
    kill(*guard, signal);
  }

  kill(-getpgid(parent.pid()), SIGINT);  // As Ctrl-C does.

  EXPECT_TRUE(WaitUntilGone(parent.pid(), kPatience));
  EXPECT_TRUE(WaitUntilGone(pids.at(0), kPatience));
  EXPECT_TRUE(WaitUntilGone(pids.at(1), kPatience));
}

TEST(ProcessGuard, LeavesANumberAloneThatHasGoneToAnotherProcess) {
  GuardedParent parent(kStubborn, absl::ZeroDuration());
  const std::vector<pid_t> pids = parent.Spawn();
  const pid_t innocent = std::atoi(parent.Tell("recycled").c_str());
  ASSERT_GT(innocent, 1);

  parent.Kill();

  EXPECT_TRUE(WaitUntilGone(pids.at(0), kPatience));
  EXPECT_TRUE(parent.WaitUntilUnguarded());
  EXPECT_FALSE(IsGone(innocent));
  kill(innocent, SIGKILL);
}

TEST(ProcessGuard, ADescendantThatHoldsItsSocketDoesNotHideItsOwnersEnd) {
  GuardedParent parent(kStubborn, absl::ZeroDuration());
  const std::vector<pid_t> pids = parent.Spawn();
  const pid_t holder = std::atoi(parent.Tell("hold").c_str());
  ASSERT_GT(holder, 1);

  kill(parent.pid(), SIGKILL);

  EXPECT_TRUE(WaitUntilGone(pids.at(0), kPatience));
  EXPECT_TRUE(WaitUntilGone(pids.at(1), kPatience));
  EXPECT_FALSE(IsGone(holder));
  kill(holder, SIGKILL);
}

TEST(ProcessGuard, AGuardThatWasKilledIsReplacedAndToldOfEveryGroup) {
  GuardedParent parent(kStubborn, absl::ZeroDuration());
  const std::vector<pid_t> first = parent.Spawn();
  const std::optional<pid_t> guard = parent.guard();
  ASSERT_TRUE(guard.has_value());
  kill(*guard, SIGKILL);
  ASSERT_TRUE(WaitUntilGone(*guard, kPatience));
  const std::vector<pid_t> second = parent.Spawn();

  parent.Kill();

  for (const pid_t pid :
       {first.at(0), first.at(1), second.at(0), second.at(1)}) {
    EXPECT_TRUE(WaitUntilGone(pid, kPatience)) << pid;
  }
}

TEST(ProcessGuard, IsNobodysChild) {
  ASSERT_TRUE(ProcessGuard::OfThisProcess().Start().ok());

  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace leasehold::executor
