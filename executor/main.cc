// leasehold-executor: runs tasks with the handlers that a file configures.
#include <absl/flags/flag.h>
#include <absl/flags/parse.h>
#include <absl/flags/usage.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "common/logging/log.h"
#include "common/process/limits.h"
#include "common/process/signals.h"
#include "executor/config/executor_config.h"
#include "executor/sdk/executor.h"

ABSL_FLAG(std::string, config, "",
          "Configuration file, Protobuf text format; see "
          "deploy/examples/executor.textproto. Required");
ABSL_FLAG(std::string, scheduler, "",
          "host:port of the scheduler's replicas, separated by commas. Wins "
          "over the file's");
ABSL_FLAG(std::string, executor_id, "",
          "Stable name of this executor. Wins over the file's; default: the "
          "host name");
ABSL_FLAG(absl::Duration, drain_timeout, absl::Seconds(25),
          "After SIGTERM, how long running tasks may go on before they are "
          "cancelled and given back");
ABSL_FLAG(std::string, log_level, "info", "debug, info, warning, error or off");

namespace leasehold::executor {
namespace {

constexpr int kExitConfig = 2;

// Keeps what is wrong, so that all of it is said at once.
void Note(const absl::Status& status, std::vector<std::string>* mistakes) {
  if (!status.ok()) mistakes->push_back(std::string(status.message()));
}

void ApplyFlags(ExecutorOptions* options) {
  if (const std::string flag = absl::GetFlag(FLAGS_scheduler); !flag.empty()) {
    options->schedulers = absl::StrSplit(flag, ',', absl::SkipEmpty());
  }
  if (const std::string flag = absl::GetFlag(FLAGS_executor_id);
      !flag.empty()) {
    options->executor_id = flag;
  }
  options->drain_timeout = absl::GetFlag(FLAGS_drain_timeout);
  options->version = LEASEHOLD_VERSION;
}

absl::StatusOr<std::unique_ptr<Executor>> MakeExecutor() {
  std::vector<std::string> mistakes;
  if (absl::Status status = SetLogLevelByName(absl::GetFlag(FLAGS_log_level));
      !status.ok()) {
    mistakes.push_back(absl::StrCat("--log_level: ", status.message()));
  }
  const std::string file = absl::GetFlag(FLAGS_config);
  absl::StatusOr<LoadedConfig> config =
      absl::InvalidArgumentError("--config: none, want a file");
  if (!file.empty()) config = LoadConfig(file);
  Note(config.status(), &mistakes);
  if (!config.ok()) {
    // What the file says about the schedulers is not known: only flags count.
    config = LoadedConfig();
    config->options.schedulers = {"127.0.0.1:7070"};
  }
  ApplyFlags(&config->options);
  Note(CheckOptions(config->options), &mistakes);
  if (!mistakes.empty()) {
    return absl::InvalidArgumentError(absl::StrJoin(mistakes, "\n"));
  }
  return Executor::Create(std::move(config->options),
                          std::move(config->registry));
}

int Main() {
  SignalWaiter signals;
  auto executor = MakeExecutor();
  if (!executor.ok()) {
    std::fprintf(stderr, "%s\n",
                 std::string(executor.status().message()).c_str());
    return kExitConfig;
  }
  RaiseFileLimit().IgnoreError();
  const absl::Status status = (*executor)->RunUntilSignal(signals);
  const int code = status.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
  FlushLog();
  // A handler that ignores cancellation still runs and uses its executor.
  if ((*executor)->leaked_slots() > 0) std::_Exit(code);
  return code;
}

}  // namespace
}  // namespace leasehold::executor

int main(int argc, char** argv) {
  leasehold::OpenStandardDescriptors();
  absl::SetProgramUsageMessage(
      "runs Leasehold tasks with configured handlers.\n"
      "  leasehold-executor --config=deploy/examples/executor.textproto "
      "--scheduler=127.0.0.1:7070\n"
      "SIGTERM drains and exits with status 0; status 2 means that the "
      "configuration is wrong,\n1 that the scheduler refuses this executor.");
  absl::ParseCommandLine(argc, argv);
  return leasehold::executor::Main();
}
