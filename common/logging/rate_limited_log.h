// At most one line a second, or `burst`, for an event that may come thousands
// of times.
//
//   static RateLimitedLog log;   // or a member: one per site
//   log.Warning("database unreachable", {{"error", status}});
//   ... database unreachable error="UNAVAILABLE: ..." suppressed=812
#ifndef COMMON_LOGGING_RATE_LIMITED_LOG_H_
#define COMMON_LOGGING_RATE_LIMITED_LOG_H_

#include <cstdint>
#include <mutex>
#include <optional>

#include "absl/time/time.h"
#include "common/logging/log.h"
#include "common/time/clock.h"

namespace leasehold {

// Thread-safe. The first `burst` events of an interval come out at once; what
// follows within `interval` of the first is only counted, and the next line
// says how many there were.
class RateLimitedLog {
 public:
  explicit RateLimitedLog(absl::Duration interval = absl::Seconds(1),
                          const Clock& clock = Clock::Real(), int burst = 1)
      : interval_(interval), clock_(clock), burst_(burst) {}

  void Log(LogLevel level, absl::string_view event, LogFields fields = {});
  void Warning(absl::string_view event, LogFields fields = {}) {
    Log(LogLevel::kWarning, event, fields);
  }
  void Error(absl::string_view event, LogFields fields = {}) {
    Log(LogLevel::kError, event, fields);
  }

 private:
  // How many were suppressed since the last line, if one may be written now.
  std::optional<int64_t> Admit();

  const absl::Duration interval_;
  const Clock& clock_;
  const int burst_;
  std::mutex mutex_;
  std::optional<SteadyTime> began_;  // The interval that runs.
  int written_ = 0;                  // Within it.
  int64_t suppressed_ = 0;
};

}  // namespace leasehold

#endif  // COMMON_LOGGING_RATE_LIMITED_LOG_H_
