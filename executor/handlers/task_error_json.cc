#include "executor/handlers/task_error_json.h"

#include <string>
#include <utility>

#include "absl/time/time.h"

namespace leasehold::executor {

std::optional<ErrorClass> ParseErrorClass(absl::string_view name) {
  if (name == "RETRYABLE") return ErrorClass::kRetryable;
  if (name == "NON_RETRYABLE") return ErrorClass::kNonRetryable;
  if (name == "RATE_LIMITED") return ErrorClass::kRateLimited;
  if (name == "TIMEOUT") return ErrorClass::kTimeout;
  if (name == "CANCELLED") return ErrorClass::kCancelled;
  return std::nullopt;
}

TaskError ReadTaskError(const JsonObject& object, TaskError otherwise) {
  TaskError error = std::move(otherwise);
  for (const char* field : {"class", "error_class"}) {
    const std::optional<std::string> name = object.GetString(field);
    if (!name.has_value()) continue;
    error.error_class = ParseErrorClass(*name).value_or(error.error_class);
  }
  error.code = object.GetString("code").value_or(error.code);
  error.message = object.GetString("message").value_or(error.message);
  const std::optional<int64_t> retry_after_ms = object.GetInt("retry_after_ms");
  if (retry_after_ms.has_value() && *retry_after_ms >= 0) {
    error.retry_after = absl::Milliseconds(*retry_after_ms);
  }
  return error;
}

}  // namespace leasehold::executor
