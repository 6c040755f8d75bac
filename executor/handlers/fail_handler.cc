#include "executor/handlers/fail_handler.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "executor/handlers/json_object.h"
#include "executor/handlers/task_error_json.h"

namespace leasehold::executor {

HandlerResult FailHandler::Run(HandlerContext& ctx) {
  TaskError error{ErrorClass::kRetryable, "FAILED", "failed as asked",
                  std::nullopt};
  auto payload = JsonObject::Parse(ctx.payload().bytes);
  if (!payload.ok()) return HandlerResult::Error(std::move(error));
  const std::optional<int64_t> times = payload->GetInt("times");
  const int attempt = ctx.task().attempt;
  if (times.has_value() && attempt > *times) {
    return HandlerResult::Json(absl::StrCat("{\"attempt\":", attempt, "}"));
  }
  return HandlerResult::Error(ReadTaskError(*payload, std::move(error)));
}

}  // namespace leasehold::executor
