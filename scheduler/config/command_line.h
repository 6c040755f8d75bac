// Reads the command line and the environment. A flag on the command line wins
// over its environment variable (--http_listen: LEASEHOLD_HTTP_LISTEN), and
// that over the default. All mistakes are reported at once.
#ifndef SCHEDULER_CONFIG_COMMAND_LINE_H_
#define SCHEDULER_CONFIG_COMMAND_LINE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/flags/command_line.h"
#include "scheduler/config/scheduler_config.h"

namespace leasehold::scheduler {

using leasehold::CommandLineAction;
using leasehold::Environment;
using leasehold::ProcessEnvironment;

struct CommandLine {
  CommandLineAction action = CommandLineAction::kRun;
  SchedulerConfig config;  // For kRun.
};

// `args` without the program's name. Also sets the log level. INVALID_ARGUMENT
// with one mistake a line. Sets Abseil's flags, so call it once in a process
// (tests: absl::FlagSaver).
absl::StatusOr<CommandLine> ReadCommandLine(
    const std::vector<std::string>& args, const Environment& environment);

std::string HelpText();
std::string VersionText();  // "leasehold-scheduler 0.1.0"

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_CONFIG_COMMAND_LINE_H_
