// How a program outside of this process describes an error:
//
//   {"error_class": "RATE_LIMITED", "code": "QUOTA", "message": "slow down",
//    "retry_after_ms": 7000}
#ifndef EXECUTOR_HANDLERS_TASK_ERROR_JSON_H_
#define EXECUTOR_HANDLERS_TASK_ERROR_JSON_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "executor/handlers/json_object.h"
#include "executor/sdk/handler.h"

namespace leasehold::executor {

// RETRYABLE, NON_RETRYABLE, RATE_LIMITED, TIMEOUT, CANCELLED; else nullopt.
std::optional<ErrorClass> ParseErrorClass(absl::string_view name);

// Fields that are missing or odd keep what `otherwise` has. "class" is read as
// "error_class" too.
TaskError ReadTaskError(const JsonObject& object, TaskError otherwise);

}  // namespace leasehold::executor

#endif  // EXECUTOR_HANDLERS_TASK_ERROR_JSON_H_
