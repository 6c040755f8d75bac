// leasehold-executor's flags, together with the file that --config names. All
// mistakes, of both, are reported at once.
#ifndef EXECUTOR_CONFIG_COMMAND_LINE_H_
#define EXECUTOR_CONFIG_COMMAND_LINE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/flags/command_line.h"
#include "executor/config/executor_config.h"

namespace leasehold::executor {

struct CommandLine {
  CommandLineAction action = CommandLineAction::kRun;
  LoadedConfig config;  // For kRun.
};

// `args` without the program's name. Also sets the log level. INVALID_ARGUMENT
// with one mistake a line. Sets Abseil's flags, so call it once in a process
// (tests: absl::FlagSaver).
absl::StatusOr<CommandLine> ReadCommandLine(
    const std::vector<std::string>& args, const Environment& environment);

std::string HelpText();
std::string VersionText();  // "leasehold-executor 0.1.0"

}  // namespace leasehold::executor

#endif  // EXECUTOR_CONFIG_COMMAND_LINE_H_
