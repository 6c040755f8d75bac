#include "executor/handlers/exec_handler.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/executor/handler_run.h"
#include "tests/executor/processes.h"

namespace leasehold::executor {
namespace {

ExecHandler::Options Shell(const std::string& script) {
  ExecHandler::Options options;
  options.argv = {"sh", "-c", script};
  return options;
}

HandlerResult RunShell(const std::string& script, std::string payload = "") {
  ExecHandler handler(Shell(script));
  return HandlerRun().WithData(std::move(payload)).Run(handler);
}

TEST(ExecHandler, PassesThePayloadInAndTheOutputBack) {
  EXPECT_EQ(Describe(RunShell("cat", "{\"a\": 1}")), "json:{\"a\": 1}");
  EXPECT_EQ(Describe(RunShell("echo '[1]'")), "json:[1]");
  EXPECT_EQ(Describe(RunShell("printf 'plain text'")), "data:plain text");
  EXPECT_EQ(Describe(RunShell("true")), "none");
}

TEST(ExecHandler, KeepsEveryByteOfBinaryOutput) {
  std::string bytes;
  for (int i = 0; i < 1024; ++i) bytes.push_back(static_cast<char>(i));

  EXPECT_EQ(Describe(RunShell("cat", bytes)), "data:" + bytes);
}

TEST(ExecHandler, APayloadLargerThanAPipeGoesInAndOut) {
  const std::string payload(1 << 20, 'x');

  EXPECT_EQ(Describe(RunShell("cat", payload)), "data:" + payload);
}

TEST(ExecHandler, DoesNotMindAChildThatReadsNothing) {
  const std::string payload(1 << 20, 'x');

  EXPECT_EQ(Describe(RunShell("echo 1", payload)), "json:1");
  EXPECT_EQ(Describe(RunShell("exec <&-; sleep 0.05; echo 2", payload)),
            "json:2");
}

TEST(ExecHandler, TellsErrorClassesByExitStatus) {
  const struct {
    int status;
    ErrorClass error_class;
  } table[] = {
      {1, ErrorClass::kRetryable},     {2, ErrorClass::kRetryable},
      {64, ErrorClass::kNonRetryable}, {65, ErrorClass::kNonRetryable},
      {66, ErrorClass::kNonRetryable}, {67, ErrorClass::kRetryable},
      {69, ErrorClass::kRetryable},    {70, ErrorClass::kRetryable},
      {75, ErrorClass::kRetryable},    {77, ErrorClass::kNonRetryable},
      {78, ErrorClass::kNonRetryable}, {79, ErrorClass::kRateLimited},
      {127, ErrorClass::kRetryable},   {255, ErrorClass::kRetryable},
  };
  for (const auto& row : table) {
    const TaskError error =
        ErrorOf(RunShell(absl::StrCat("echo why >&2; exit ", row.status)));

    EXPECT_EQ(error.code, absl::StrCat("EXIT_", row.status));
    EXPECT_EQ(error.error_class, row.error_class) << row.status;
    EXPECT_EQ(error.message, "why");
  }
}

TEST(ExecHandler, TakesWhatAJsonErrorSays) {
  const TaskError error = ErrorOf(RunShell(
      "echo '{\"error\": {\"class\": \"RATE_LIMITED\", \"code\": \"QUOTA\", "
      "\"message\": \"slow down\", \"retry_after_ms\": 7000}}'; exit 1"));

  EXPECT_EQ(error.error_class, ErrorClass::kRateLimited);
  EXPECT_EQ(error.code, "QUOTA");
  EXPECT_EQ(error.message, "slow down");
  EXPECT_EQ(error.retry_after, absl::Seconds(7));
}

TEST(ExecHandler, AJsonErrorWithStatusZeroIsAResult) {
  EXPECT_EQ(Describe(RunShell("echo '{\"error\":{}}'")), "json:{\"error\":{}}");
}

TEST(ExecHandler, NamesTheSignalThatKilledTheChild) {
  const TaskError error = ErrorOf(RunShell("kill -9 $$"));

  EXPECT_EQ(error.code, "SIGNAL_9");
  EXPECT_EQ(error.error_class, ErrorClass::kRetryable);
}

TEST(ExecHandler, KeepsTheEndOfALongStderr) {
  const TaskError error = ErrorOf(RunShell(
      "i=0; while [ $i -lt 2000 ]; do echo 0123456789 >&2; i=$((i+1)); done; "
      "printf last >&2; exit 1"));

  EXPECT_LE(error.message.size(), 4096u);
  EXPECT_EQ(error.message.substr(error.message.size() - 4), "last");
}

TEST(ExecHandler, KillsAChildThatWritesTooMuch) {
  for (const auto& [bytes, wanted] :
       {std::pair{999, true}, std::pair{1000, true}, std::pair{1001, false}}) {
    ExecHandler::Options options =
        Shell(absl::StrCat("head -c ", bytes, " /dev/zero"));
    options.max_output_bytes = 1000;
    ExecHandler handler(options);

    const HandlerResult result = HandlerRun().Run(handler);

    EXPECT_EQ(result.ok(), wanted) << bytes;
    if (!wanted) {
      EXPECT_EQ(ErrorOf(result).code, "RESULT_TOO_LARGE");
      EXPECT_EQ(ErrorOf(result).error_class, ErrorClass::kNonRetryable);
    }
  }
  EXPECT_EQ(Describe(RunShell("cat /dev/zero")), "error:RESULT_TOO_LARGE");
}

TEST(ExecHandler, SaysThatACommandIsMissingOrNotExecutable) {
  const struct {
    const char* command;
    const char* code;
  } table[] = {{"/does/not/exist", "COMMAND_NOT_FOUND"},
               {"leasehold-no-such-command", "COMMAND_NOT_FOUND"},
               {"/etc/passwd", "COMMAND_NOT_EXECUTABLE"}};
  for (const auto& row : table) {
    ExecHandler::Options options;
    options.argv = {row.command};
    ExecHandler handler(options);

    const TaskError error = ErrorOf(HandlerRun().Run(handler));

    EXPECT_EQ(error.code, row.code);
    EXPECT_EQ(error.error_class, ErrorClass::kRetryable);
  }
}

TEST(ExecHandler, NeverGivesThePayloadToAShell) {
  ExecHandler::Options options;
  options.argv = {"printf", "%s", "$(echo no); `echo no`"};
  ExecHandler handler(options);

  EXPECT_EQ(Describe(HandlerRun().WithData("$(echo no)").Run(handler)),
            "data:$(echo no); `echo no`");
}

TEST(ExecHandler, EndsTheChildByTermWhenCancelled) {
  ExecHandler handler(Shell("trap 'echo bye; exit 3' TERM; sleep 60 & wait"));

  const absl::Time start = absl::Now();
  const HandlerResult result =
      HandlerRun().RunAndCancel(handler, absl::Milliseconds(200));

  EXPECT_EQ(Describe(result), "error:EXIT_3");
  EXPECT_LT(absl::Now() - start, absl::Seconds(4));
}

TEST(ExecHandler, KillsAChildThatIgnoresTerm) {
  ExecHandler::Options options =
      Shell("trap '' TERM; while :; do sleep 0.1; done");
  options.kill_grace = absl::Milliseconds(100);
  ExecHandler handler(options);

  EXPECT_EQ(
      Describe(HandlerRun().RunAndCancel(handler, absl::Milliseconds(200))),
      "error:SIGNAL_9");
}

TEST(ExecHandler, AGrandchildThatHoldsThePipeDoesNotHoldTheTask) {
  const absl::Time start = absl::Now();

  const HandlerResult result = RunShell("sleep 60 & echo $!");

  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
  const std::string text = Describe(result);
  ASSERT_EQ(text.substr(0, 5), "json:");
  EXPECT_TRUE(WaitUntilGone(std::atoi(text.c_str() + 5)));
}

TEST(ExecHandler, AnEscapedGrandchildDoesNotHoldTheTaskEither) {
  const absl::Time start = absl::Now();

  const HandlerResult result = RunShell("setsid sleep 60 & echo $!; sleep 0.2");

  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
  const std::string text = Describe(result);
  ASSERT_EQ(text.substr(0, 5), "json:");
  kill(std::atoi(text.c_str() + 5), SIGKILL);
}

TEST(ExecHandler, TheChildInheritsOnlyItsThreePipes) {
  const int leak = dup(STDERR_FILENO);  // Without close-on-exec.

  // ls itself has one more open, the folder's.
  const HandlerResult result = RunShell("ls /proc/self/fd | tr '\\n' ' '");

  close(leak);
  EXPECT_EQ(Describe(result), "data:0 1 2 3 ");
}

TEST(ExecHandler, TheChildHasDefaultSignals) {
  signal(SIGPIPE, SIG_IGN);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &blocked, &before);

  const HandlerResult blocked_mask =
      RunShell("grep SigBlk /proc/self/status | tr -d '\\n\\t'");
  // Cut to the signals below 32; above are the C library's own.
  const HandlerResult ignored_mask = RunShell(
      "grep SigIgn /proc/self/status | tail -c 9 | sed s,^8,0, | tr -d '\\n'");

  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(Describe(blocked_mask), "data:SigBlk:0000000000000000");
  EXPECT_EQ(Describe(ignored_mask), "data:00000000");
}

TEST(ExecHandler, LeavesNoZombie) {
  for (int i = 0; i < 20; ++i) RunShell("exit 1");

  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(ExecHandler, TellsTheChildAboutItsTask) {
  ExecHandler::Options options = Shell("env | sort");
  options.clear_environment = true;
  options.environment = {{"MINE", "a=b"}};
  ExecHandler handler(options);
  HandlerRun run;
  run.run.input.queue = "q";
  run.run.input.type = "t";
  run.run.input.attempt = 2;
  run.run.input.max_attempts = 4;
  run.run.input.traceparent = "00-abc";
  run.run.input.partition_key = std::string("a\0b", 3);
  run.run.deadline = std::chrono::steady_clock::now() + std::chrono::hours(1);

  const std::string text = Describe(run.Run(handler));

  for (const char* wanted :
       {"LEASEHOLD_TASK_ID=42\n", "LEASEHOLD_QUEUE=q\n", "LEASEHOLD_TYPE=t\n",
        "LEASEHOLD_ATTEMPT=2\n", "LEASEHOLD_MAX_ATTEMPTS=4\n",
        "TRACEPARENT=00-abc\n", "MINE=a=b\n",
        "PATH=", "LEASEHOLD_DEADLINE_UNIX_MS="}) {
    EXPECT_NE(text.find(wanted), std::string::npos) << wanted;
  }
  EXPECT_EQ(text.find("HOME="), std::string::npos);
  EXPECT_EQ(text.find("LEASEHOLD_PARTITION_KEY"), std::string::npos);
}

TEST(ExecHandler, RunsInItsWorkingFolder) {
  ExecHandler::Options options = Shell("pwd");
  options.working_folder = "/usr";
  ExecHandler handler(options);

  EXPECT_EQ(Describe(HandlerRun().Run(handler)), "data:/usr\n");
}

}  // namespace
}  // namespace leasehold::executor
