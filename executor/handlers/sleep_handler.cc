#include "executor/handlers/sleep_handler.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "executor/handlers/json_object.h"

namespace leasehold::executor {
namespace {

constexpr absl::Duration kProgressInterval = absl::Milliseconds(250);

}  // namespace

HandlerResult SleepHandler::Run(HandlerContext& ctx) {
  absl::Duration duration = default_duration_;
  if (auto payload = JsonObject::Parse(ctx.payload().bytes); payload.ok()) {
    const std::optional<int64_t> ms = payload->GetInt("ms");
    if (ms.has_value())
      duration = absl::Milliseconds(std::max<int64_t>(*ms, 0));
  }
  const int64_t total_ms = absl::ToInt64Milliseconds(duration);
  absl::Duration slept = absl::ZeroDuration();
  while (slept < duration) {
    const absl::Duration step = std::min(kProgressInterval, duration - slept);
    if (ctx.cancellation().WaitFor(step)) return HandlerResult::Cancelled();
    slept += step;
    ctx.SetProgress(absl::ToInt64Milliseconds(slept), total_ms);
  }
  return HandlerResult::Json(absl::StrCat("{\"slept_ms\":", total_ms, "}"));
}

}  // namespace leasehold::executor
