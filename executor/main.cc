// leasehold-executor: runs tasks with the handlers that a file configures; see
// --help.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/logging/log.h"
#include "common/process/limits.h"
#include "common/process/signals.h"
#include "executor/config/command_line.h"
#include "executor/sdk/executor.h"

namespace leasehold::executor {
namespace {

constexpr int kExitConfig = 2;

int CannotStart(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return kExitConfig;
}

int Main(const std::vector<std::string>& args) {
  SignalWaiter signals;
  absl::StatusOr<CommandLine> line =
      ReadCommandLine(args, ProcessEnvironment());
  if (!line.ok()) return CannotStart(line.status());
  if (line->action == CommandLineAction::kShowHelp) {
    std::fputs(HelpText().c_str(), stdout);
    return EXIT_SUCCESS;
  }
  if (line->action == CommandLineAction::kShowVersion) {
    std::printf("%s\n", VersionText().c_str());
    return EXIT_SUCCESS;
  }
  auto executor = Executor::Create(std::move(line->config.options),
                                   std::move(line->config.registry));
  if (!executor.ok()) return CannotStart(executor.status());
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
  return leasehold::executor::Main({argv + 1, argv + argc});
}
