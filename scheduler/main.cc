// leasehold-scheduler: see --help.
//
//   command line -> database check, migrations -> SchedulerServer (store, core,
//   HTTP, gRPC) -> SIGTERM -> drain
//
// Exit status: 0 done, 2 cannot start as configured, 1 anything else.
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/logging/log.h"
#include "common/process/limits.h"
#include "common/process/signals.h"
#include "common/time/clock.h"
#include "scheduler/config/command_line.h"
#include "scheduler/server/scheduler_server.h"

namespace leasehold::scheduler {
namespace {

constexpr int kOk = 0;
constexpr int kFailed = 1;
constexpr int kCannotStart = 2;

// One line a mistake.
int CannotStart(const absl::Status& status) {
  FlushLog();
  const std::string message(status.message());
  for (absl::string_view line :
       absl::StrSplit(message, '\n', absl::SkipEmpty())) {
    const std::string text = absl::StrCat("leasehold-scheduler: ", line, "\n");
    std::fputs(text.c_str(), stderr);
  }
  return kCannotStart;
}

int Serve(const SchedulerConfig& config, SignalWaiter& signals) {
  absl::StatusOr<std::unique_ptr<SchedulerServer>> server =
      SchedulerServer::Start(config, Clock::Real());
  if (!server.ok()) return CannotStart(server.status());
  LogInfo("scheduler serving", {{"version", VersionText()},
                                {"scheduler", config.engine.scheduler_id},
                                {"listen", config.listen},
                                {"port", (*server)->grpc_port()},
                                {"http_listen", config.http_listen},
                                {"pid", getpid()}});
  const int signal = signals.Wait();
  LogInfo("draining", {{"signal", signal}, {"limit_ms", config.drain_timeout}});
  // Somebody who signals twice does not want to wait.
  std::thread([&signals] {
    signals.Wait();
    _exit(kFailed);
  }).detach();
  (*server)->Drain(config.drain_timeout);
  LogInfo("scheduler stopped");
  FlushLog();
  // Past this point nothing is left to save; the detached thread still waits
  // for its signal, so no destructor of main's may run.
  _exit(kOk);
}

int Run(const std::vector<std::string>& args) {
  SignalWaiter signals;  // Before any thread.
  absl::StatusOr<CommandLine> line =
      ReadCommandLine(args, ProcessEnvironment());
  if (!line.ok()) return CannotStart(line.status());
  if (line->action == CommandLineAction::kShowHelp) {
    std::fputs(HelpText().c_str(), stdout);
    return kOk;
  }
  if (line->action == CommandLineAction::kShowVersion) {
    std::fputs(absl::StrCat(VersionText(), "\n").c_str(), stdout);
    return kOk;
  }
  if (const auto files = RaiseFileLimit(); !files.ok()) {
    LogWarning("file limit not raised", {{"error", files.status()}});
  }
  const absl::Status database = PrepareDatabase(line->config.mysql);
  if (!database.ok()) return CannotStart(database);
  if (line->config.migrate_only) return kOk;
  return Serve(line->config, signals);
}

}  // namespace
}  // namespace leasehold::scheduler

int main(int argc, char** argv) {
  leasehold::OpenStandardDescriptors();
  try {
    return leasehold::scheduler::Run({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    // Nothing of ours throws this far.
    std::fprintf(stderr, "leasehold-scheduler: unexpected failure: %s\n",
                 e.what());
    return 1;
  }
}
