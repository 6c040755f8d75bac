#include "common/logging/rate_limited_log.h"

#include <utility>

#include "common/logging/log_internal.h"

namespace leasehold {

void RateLimitedLog::Log(LogLevel level, absl::string_view event,
                         LogFields fields) {
  if (!LogEnabled(level)) return;
  const std::optional<int64_t> suppressed = Admit();
  if (!suppressed.has_value()) return;
  LogWithSuppressed(level, event, fields, *suppressed);
}

std::optional<int64_t> RateLimitedLog::Admit() {
  const SteadyTime now = clock_.SteadyNow();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!began_.has_value() ||
      now - *began_ >= absl::ToChronoNanoseconds(interval_)) {
    began_ = now;
    written_ = 0;
  }
  if (written_ == burst_) {
    ++suppressed_;
    return std::nullopt;
  }
  ++written_;
  return std::exchange(suppressed_, 0);
}

}  // namespace leasehold
