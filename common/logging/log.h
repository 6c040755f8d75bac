// One line an event, on stderr:
//
//   LogInfo("lease expired", {{"task", id}, {"attempt", 3}});
//   2026-03-01T12:00:00.123456Z info lease expired task=42 attempt=3
//
// Values that hold blanks, quotes, "=" or odd bytes are quoted and escaped, so
// that no value can forge a line. Never log a payload or a secret. All
// functions are thread-safe, and cheap when the level is off.
#ifndef COMMON_LOGGING_LOG_H_
#define COMMON_LOGGING_LOG_H_

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace leasehold {

enum class LogLevel : int { kDebug, kInfo, kWarning, kError, kOff };

// Sends lines of `level` and above to stderr. Before the first call everything
// from info on goes there.
void SetLogLevel(LogLevel level);

// "debug", "info", "warning", "error", "off". INVALID_ARGUMENT for others:
//   "loud", want debug, info, warning, error or off
absl::Status SetLogLevelByName(absl::string_view name);

bool LogEnabled(LogLevel level);

// Gives finished lines, without time and level, to `sink` instead of stderr;
// null goes back to stderr. For tests.
void SetLogSinkForTest(std::function<void(LogLevel, absl::string_view)> sink);

// One `key=value`. Refers to strings: only for use within one expression.
class LogField {
 public:
  LogField(absl::string_view key, absl::string_view value)
      : key_(key), kind_(Kind::kText), text_(value) {}
  LogField(absl::string_view key, const char* value)
      : LogField(key, absl::string_view(value)) {}
  LogField(absl::string_view key, const std::string& value)
      : LogField(key, absl::string_view(value)) {}
  LogField(absl::string_view key, bool value)
      : LogField(key, absl::string_view(value ? "true" : "false")) {}
  // Shows as whole milliseconds; name the key so: {"overdue_ms", duration}.
  LogField(absl::string_view key, absl::Duration value)
      : key_(key), kind_(Kind::kInt), int_(absl::ToInt64Milliseconds(value)) {}
  LogField(absl::string_view key, double value)
      : key_(key), kind_(Kind::kDouble), double_(value) {}
  // Shows as `NOT_FOUND: text`.
  LogField(absl::string_view key, const absl::Status& value)
      : key_(key), kind_(Kind::kStatus), status_(&value) {}
  template <typename Int,
            std::enable_if_t<
                std::is_integral_v<Int> && !std::is_same_v<Int, bool>, int> = 0>
  LogField(absl::string_view key, Int value)
      : key_(key),
        kind_(std::is_signed_v<Int> ? Kind::kInt : Kind::kUint),
        int_(static_cast<int64_t>(value)) {}

  // Appends ` key=value`.
  void AppendTo(std::string* line) const;

 private:
  enum class Kind { kText, kInt, kUint, kDouble, kStatus };

  absl::string_view key_;
  Kind kind_;
  absl::string_view text_;
  int64_t int_ = 0;
  double double_ = 0;
  const absl::Status* status_ = nullptr;
};

using LogFields = std::initializer_list<LogField>;

void Log(LogLevel level, absl::string_view event, LogFields fields = {});

inline void LogDebug(absl::string_view event, LogFields fields = {}) {
  Log(LogLevel::kDebug, event, fields);
}
inline void LogInfo(absl::string_view event, LogFields fields = {}) {
  Log(LogLevel::kInfo, event, fields);
}
inline void LogWarning(absl::string_view event, LogFields fields = {}) {
  Log(LogLevel::kWarning, event, fields);
}
inline void LogError(absl::string_view event, LogFields fields = {}) {
  Log(LogLevel::kError, event, fields);
}

// Writes out what is buffered; for the end of main.
void FlushLog();

}  // namespace leasehold

#endif  // COMMON_LOGGING_LOG_H_
