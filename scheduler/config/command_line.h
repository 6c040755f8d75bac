// Reads the command line and the environment. A flag on the command line wins
// over its environment variable (--http_listen: LEASEHOLD_HTTP_LISTEN), and
// that over the default. All mistakes are reported at once.
#ifndef SCHEDULER_CONFIG_COMMAND_LINE_H_
#define SCHEDULER_CONFIG_COMMAND_LINE_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/config/scheduler_config.h"

namespace leasehold::scheduler {

enum class CommandLineAction { kRun, kShowHelp, kShowVersion };

struct CommandLine {
  CommandLineAction action = CommandLineAction::kRun;
  SchedulerConfig config;  // For kRun.
};

// The value of an environment variable, if it is set.
using Environment =
    std::function<std::optional<std::string>(const std::string& name)>;
Environment ProcessEnvironment();

// `args` without the program's name. Also sets the log level. INVALID_ARGUMENT
// with one mistake a line. Sets Abseil's flags, so call it once in a process
// (tests: absl::FlagSaver).
absl::StatusOr<CommandLine> ReadCommandLine(
    const std::vector<std::string>& args, const Environment& environment);

std::string HelpText();
std::string VersionText();  // "leasehold-scheduler 0.1.0"

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_CONFIG_COMMAND_LINE_H_
