#include "executor/config/command_line.h"

#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "common/logging/log.h"

ABSL_FLAG(std::string, config, "",
          "Required. Configuration file, Protobuf text format; see "
          "deploy/examples/executor.textproto");
ABSL_FLAG(std::string, scheduler, "",
          "host:port of the scheduler's replicas, separated by commas. Wins "
          "over the file's");
ABSL_FLAG(std::string, executor_id, "",
          "Name of this executor, unlike that of any other that runs: of two "
          "with one name the older is told to leave. Wins over the file's; "
          "default: the host name and a random part");
ABSL_FLAG(absl::Duration, drain_timeout, absl::Seconds(25),
          "After SIGTERM, how long running tasks may go on before they are "
          "cancelled and given back");
ABSL_FLAG(std::string, log_level, "info", "debug, info, warning, error or off");

namespace leasehold::executor {
namespace {

constexpr char kHead[] =
    R"(Leasehold's executor: runs tasks with the handlers that a file configures.

  leasehold-executor --config=deploy/examples/executor.textproto \
    --scheduler=127.0.0.1:7070

Each flag can also come from the environment: --log_level from
LEASEHOLD_LOG_LEVEL. SIGTERM drains: nothing more is taken, what runs may finish
within --drain_timeout. A second SIGTERM cuts that short: what runs is cancelled
and given back at once.
Exit status: 0 drained, 2 cannot start as configured, 1 no scheduler may be
asked any more: it refused this executor, or a newer one has its name.
)";

const ProgramFlags& Program() {
  static const auto& program = *new ProgramFlags{
      .name = "leasehold-executor",
      .head = kHead,
      .groups = {{"What it runs", {"config", "scheduler", "executor_id"}},
                 {"How it runs", {"drain_timeout", "log_level"}}}};
  return program;
}

// The flags that are set, as options; what is not set is harmless.
ExecutorOptions OptionsFromFlags() {
  ExecutorOptions options;
  const std::string schedulers = absl::GetFlag(FLAGS_scheduler);
  options.schedulers = absl::StrSplit(schedulers, ',', absl::SkipEmpty());
  options.executor_id = absl::GetFlag(FLAGS_executor_id);
  options.drain_timeout = absl::GetFlag(FLAGS_drain_timeout);
  return options;
}

void CheckFlags(ExecutorOptions options, std::vector<std::string>* mistakes) {
  if (absl::Status status = SetLogLevelByName(absl::GetFlag(FLAGS_log_level));
      !status.ok()) {
    mistakes->push_back(absl::StrCat("--log_level: ", status.message()));
  }
  // Without the flag the file's count, and they are checked with the file.
  if (options.schedulers.empty() && absl::GetFlag(FLAGS_scheduler).empty()) {
    options.schedulers = {"127.0.0.1:7070"};
  }
  const absl::Status status = CheckOptions(std::move(options));
  const std::string message(status.message());
  for (absl::string_view line :
       absl::StrSplit(message, '\n', absl::SkipEmpty())) {
    mistakes->push_back(absl::StrCat("--", line));
  }
}

void ApplyFlags(ExecutorOptions flags, ExecutorOptions* options) {
  if (!flags.schedulers.empty()) {
    options->schedulers = std::move(flags.schedulers);
  }
  if (!flags.executor_id.empty()) {
    options->executor_id = std::move(flags.executor_id);
  }
  options->drain_timeout = flags.drain_timeout;
  options->version = LEASEHOLD_VERSION;
}

}  // namespace

absl::StatusOr<CommandLine> ReadCommandLine(
    const std::vector<std::string>& args, const Environment& environment) {
  CommandLine line;
  std::vector<std::string> mistakes;
  line.action = ReadFlags(Program(), args, environment, &mistakes);
  if (line.action != CommandLineAction::kRun) return line;

  const ExecutorOptions flags = OptionsFromFlags();
  CheckFlags(flags, &mistakes);
  const std::string file = absl::GetFlag(FLAGS_config);
  absl::StatusOr<LoadedConfig> config =
      absl::InvalidArgumentError("--config: none, want a file");
  if (!file.empty()) {
    config = LoadConfig(file, absl::GetFlag(FLAGS_scheduler).empty()
                                  ? SchedulerField::kRequired
                                  : SchedulerField::kOptional);
  }
  if (!config.ok()) {
    mistakes.push_back(std::string(config.status().message()));
  }
  if (!mistakes.empty()) {
    return absl::InvalidArgumentError(absl::StrJoin(mistakes, "\n"));
  }
  line.config = *std::move(config);
  ApplyFlags(flags, &line.config.options);
  return line;
}

std::string HelpText() { return leasehold::HelpText(Program()); }
std::string VersionText() { return leasehold::VersionText(Program()); }

}  // namespace leasehold::executor
