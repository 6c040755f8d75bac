#include "executor/handlers/exec_handler.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "common/text/json.h"
#include "executor/handlers/exec_conversation.h"
#include "executor/handlers/json_object.h"
#include "executor/handlers/process_guard.h"
#include "executor/handlers/task_error_json.h"

namespace leasehold::executor {
namespace {

// sysexits.h where it has a word for it; 79 is the first one after its range.
ErrorClass ClassOfExitStatus(int status) {
  switch (status) {
    case 64:  // EX_USAGE
    case 65:  // EX_DATAERR
    case 66:  // EX_NOINPUT
    case 77:  // EX_NOPERM
    case 78:  // EX_CONFIG
      return ErrorClass::kNonRetryable;
    case 79:
      return ErrorClass::kRateLimited;
    default:
      return ErrorClass::kRetryable;
  }
}

HandlerResult SpawnFailure(const absl::Status& status) {
  const char* code = "COMMAND_NOT_STARTED";
  if (absl::IsNotFound(status)) code = "COMMAND_NOT_FOUND";
  if (absl::IsPermissionDenied(status)) code = "COMMAND_NOT_EXECUTABLE";
  // The fault is this executor's; another one may have the command.
  return HandlerResult::Error({ErrorClass::kRetryable, code,
                               std::string(status.message()), std::nullopt});
}

HandlerResult Success(std::string output) {
  if (output.empty()) return HandlerResult::Success();
  if (!ValidateJson(output).ok()) return HandlerResult::Data(std::move(output));
  absl::StripTrailingAsciiWhitespace(&output);
  return HandlerResult::Json(std::move(output));
}

HandlerResult Failure(const ExecOutcome& outcome) {
  TaskError error;
  if (WIFSIGNALED(outcome.wait_status)) {
    const int signal = WTERMSIG(outcome.wait_status);
    error.code = absl::StrCat("SIGNAL_", signal);
    error.message = absl::StrCat("killed by signal ", signal);
  } else {
    const int status = WEXITSTATUS(outcome.wait_status);
    error.error_class = ClassOfExitStatus(status);
    error.code = absl::StrCat("EXIT_", status);
    error.message = absl::StrCat("exit status ", status);
  }
  absl::string_view tail =
      absl::StripAsciiWhitespace(absl::string_view(outcome.error_tail));
  if (!tail.empty()) error.message = std::string(tail);
  if (WIFEXITED(outcome.wait_status)) {
    if (auto output = JsonObject::Parse(outcome.output); output.ok()) {
      if (const auto said = output->GetObject("error"); said.has_value()) {
        error = ReadTaskError(*said, std::move(error));
      }
    }
  }
  return HandlerResult::Error(std::move(error));
}

}  // namespace

ExecHandler::ExecHandler(Options options) : options_(std::move(options)) {
  if (options_.clear_environment) {
    const char* path = getenv("PATH");
    base_environment_["PATH"] = path == nullptr ? "/usr/bin:/bin" : path;
  } else {
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const absl::string_view text(*entry);
      const size_t equals = text.find('=');
      if (equals == absl::string_view::npos) continue;
      base_environment_[std::string(text.substr(0, equals))] =
          std::string(text.substr(equals + 1));
    }
  }
  for (const auto& [name, value] : options_.environment) {
    base_environment_[name] = value;
  }
  // Writing to a child that does not read must not end the process.
  struct sigaction action = {};
  if (sigaction(SIGPIPE, nullptr, &action) == 0 &&
      action.sa_handler == SIG_DFL) {
    signal(SIGPIPE, SIG_IGN);
  }
  // While this process is still small; the first command tries again.
  ProcessGuard::OfThisProcess().Start().IgnoreError();
}

std::vector<std::string> ExecHandler::EnvironmentFor(
    const HandlerContext& ctx) const {
  const TaskInput& task = ctx.task();
  std::map<std::string, std::string> environment = base_environment_;
  environment["LEASEHOLD_TASK_ID"] = task.task_id;
  environment["LEASEHOLD_QUEUE"] = task.queue;
  environment["LEASEHOLD_TYPE"] = task.type;
  environment["LEASEHOLD_ATTEMPT"] = absl::StrCat(task.attempt);
  environment["LEASEHOLD_MAX_ATTEMPTS"] = absl::StrCat(task.max_attempts);
  environment["LEASEHOLD_IDEMPOTENCY_KEY"] = task.idempotency_key;
  environment["LEASEHOLD_PARTITION_KEY"] = task.partition_key;
  environment.erase("TRACEPARENT");
  if (!task.traceparent.empty()) environment["TRACEPARENT"] = task.traceparent;
  if (const absl::Duration left = ctx.TimeLeft();
      left != absl::InfiniteDuration()) {
    environment["LEASEHOLD_DEADLINE_UNIX_MS"] =
        absl::StrCat(absl::ToUnixMillis(absl::Now() + left));
  }
  std::vector<std::string> entries;
  entries.reserve(environment.size());
  for (const auto& [name, value] : environment) {
    // A value with a NUL byte would silently arrive as another one.
    if (value.find('\0') != std::string::npos) continue;
    entries.push_back(absl::StrCat(name, "=", value));
  }
  return entries;
}

HandlerResult ExecHandler::Run(HandlerContext& ctx) {
  auto child =
      Subprocess::Spawn({options_.argv, EnvironmentFor(ctx),
                         options_.working_folder, options_.kill_grace});
  if (!child.ok()) return SpawnFailure(child.status());

  ExecOutcome outcome =
      ExecConversation(*std::move(child), ctx.payload().bytes,
                       options_.max_output_bytes, options_.kill_grace)
          .Run(ctx.cancellation());
  if (outcome.too_much_output) {
    return HandlerResult::Error(
        {ErrorClass::kNonRetryable, "RESULT_TOO_LARGE",
         absl::StrCat("stdout: more than ", options_.max_output_bytes,
                      " bytes"),
         std::nullopt});
  }
  if (WIFEXITED(outcome.wait_status) && WEXITSTATUS(outcome.wait_status) == 0) {
    return Success(std::move(outcome.output));
  }
  return Failure(outcome);
}

}  // namespace leasehold::executor
