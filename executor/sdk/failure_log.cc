#include "executor/sdk/failure_log.h"

#include <string>
#include <variant>

#include "absl/strings/strip.h"

namespace leasehold::executor {
namespace {

absl::string_view ClassName(v1::ErrorClass error_class) {
  absl::string_view name = v1::ErrorClass_Name(error_class);
  absl::ConsumePrefix(&name, "ERROR_CLASS_");
  return name;
}

}  // namespace

void FailureLog::Add(const TaskRun& run, const Report& report) {
  const auto* result = std::get_if<v1::TaskResult>(&report);
  if (result == nullptr || !result->has_error()) return;
  const v1::TaskError& error = result->error();
  if (error.error_class() == v1::ERROR_CLASS_CANCELLED) return;
  const std::string class_name(ClassName(error.error_class()));
  // Not the message: a handler may put parts of its payload there.
  log_.Log(LogLevel::kInfo, "attempt failed",
           {{"task", run.input.task_id},
            {"queue", run.input.queue},
            {"type", run.input.type},
            {"attempt", run.input.attempt},
            {"max_attempts", run.input.max_attempts},
            {"class", class_name},
            {"code", error.code()}});
}

}  // namespace leasehold::executor
