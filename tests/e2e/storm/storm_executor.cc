// The executor of the storm: writes down every run, and does what the payload
// says, "MILLISECONDS ENDING". Built on the SDK, as users' executors are.
#include <absl/flags/flag.h>
#include <absl/flags/parse.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "common/process/signals.h"
#include "executor/sdk/executor.h"
#include "tests/support/history.h"

ABSL_FLAG(std::string, scheduler, "", "host:port of the replicas, by commas");
ABSL_FLAG(std::string, executor_id, "", "");
ABSL_FLAG(std::string, run_log, "", "");
ABSL_FLAG(std::string, queue, "storm", "");
ABSL_FLAG(int, slots, 8, "");

namespace leasehold::e2e {
namespace {

using executor::ErrorClass;
using executor::HandlerContext;
using executor::HandlerResult;

constexpr int kExitCrashedAsTold = 9;

HandlerResult Fail(ErrorClass error_class) {
  return HandlerResult::Error({.error_class = error_class,
                               .code = "STORM",
                               .message = "",
                               .retry_after = absl::Milliseconds(500)});
}

struct End {
  HandlerResult result;
  std::string outcome;
};

// What the ending says of this attempt. Every word but "ok" and "fatal" means
// success from the second attempt on.
End EndAs(const std::string& ending, RunLog& log, const HandlerContext& ctx) {
  const auto& task = ctx.task();
  const bool first = task.attempt == 1 && task.lease_number <= 2;
  if (ending == "fatal")
    return {Fail(ErrorClass::kNonRetryable), kOutcomeFatal};
  if (first && ending == "error")
    return {Fail(ErrorClass::kRetryable), "error"};
  if (first && ending == "limited")
    return {Fail(ErrorClass::kRateLimited), "limited"};
  if (first && ending == "snooze")
    return {HandlerResult::SnoozeFor(absl::Milliseconds(300)), "snooze"};
  if (first && ending == "crash") {
    log.Exit();
    std::_Exit(kExitCrashedAsTold);
  }
  return {HandlerResult::Data(absl::StrCat(task.lease_number)),
          kOutcomeSucceeded};
}

HandlerResult Work(RunLog& log, HandlerContext& ctx) {
  const auto& task = ctx.task();
  int64_t milliseconds = 0;
  std::string ending;
  std::istringstream(ctx.payload().bytes) >> milliseconds >> ending;

  log.Start(task.task_id, task.lease_number);
  absl::Duration left = absl::Milliseconds(milliseconds);
  bool cancelled = false;
  if (ending == "stubborn") {
    absl::SleepFor(left);
  } else {
    cancelled = ctx.cancellation().WaitFor(left);
  }
  End end = cancelled ? End{HandlerResult::Cancelled(), "cancelled"}
                      : EndAs(ending, log, ctx);
  log.End(task.task_id, task.lease_number, end.outcome);
  return std::move(end.result);
}

int Main() {
  SignalWaiter signals;
  RunLog log(absl::GetFlag(FLAGS_run_log));
  executor::Registry registry;
  executor::ExecutorOptions options{
      .schedulers = absl::StrSplit(absl::GetFlag(FLAGS_scheduler), ',')};
  options.executor_id = absl::GetFlag(FLAGS_executor_id);
  options.slots = absl::GetFlag(FLAGS_slots);
  options.drain_timeout = absl::Seconds(2);
  const absl::Status registered =
      registry.Register(absl::GetFlag(FLAGS_queue), "work",
                        [&log](HandlerContext& ctx) { return Work(log, ctx); });
  auto executor = executor::Executor::Create(options, std::move(registry));
  if (!registered.ok() || !executor.ok()) {
    std::fprintf(stderr, "%s\n", executor.status().ToString().c_str());
    return 2;
  }
  const absl::Status ended = (*executor)->RunUntilSignal(signals);
  if (!ended.ok()) std::fprintf(stderr, "%s\n", ended.ToString().c_str());
  std::fflush(stderr);
  // Stubborn handlers may still run.
  log.Exit();
  std::_Exit(ended.ok() ? 0 : 1);
}

}  // namespace
}  // namespace leasehold::e2e

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return leasehold::e2e::Main();
}
