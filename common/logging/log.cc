#include "common/logging/log.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/logging/log_internal.h"
#include "common/logging/log_value.h"
#include "common/logging/stderr_sink.h"
#include "common/text/utf8.h"

namespace leasehold {
namespace {

std::atomic<int> min_level{static_cast<int>(LogLevel::kInfo)};

std::mutex test_sink_mutex;
std::atomic<bool> has_test_sink{false};

std::function<void(LogLevel, absl::string_view)>& TestSink() {
  static auto* sink = new std::function<void(LogLevel, absl::string_view)>();
  return *sink;
}

// Never destroyed, so that threads may log until the very end.
spdlog::logger& Logger() {
  static auto* logger = [] {
    auto* made = new spdlog::logger(
        "leasehold", std::make_shared<StderrSink>(STDERR_FILENO));
    made->set_level(spdlog::level::trace);
    made->flush_on(spdlog::level::trace);
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%fZ %l %v",
                      spdlog::pattern_time_type::utc);
    return made;
  }();
  return *logger;
}

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

void Write(LogLevel level, const std::string& line) {
  if (has_test_sink.load(std::memory_order_acquire)) {
    const std::lock_guard<std::mutex> lock(test_sink_mutex);
    if (TestSink()) {
      TestSink()(level, line);
      return;
    }
  }
  Logger().log(SpdlogLevel(level),
               spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace

void SetLogLevel(LogLevel level) { min_level = static_cast<int>(level); }

absl::Status SetLogLevelByName(absl::string_view name) {
  constexpr std::pair<absl::string_view, LogLevel> kNames[] = {
      {"debug", LogLevel::kDebug},     {"info", LogLevel::kInfo},
      {"warning", LogLevel::kWarning}, {"error", LogLevel::kError},
      {"off", LogLevel::kOff},
  };
  for (const auto& [known, level] : kNames) {
    if (name == known) {
      SetLogLevel(level);
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      QuoteForMessage(name), ", want debug, info, warning, error or off"));
}

bool LogEnabled(LogLevel level) {
  return static_cast<int>(level) >= min_level.load(std::memory_order_relaxed) &&
         level != LogLevel::kOff;
}

void SetLogSinkForTest(std::function<void(LogLevel, absl::string_view)> sink) {
  const std::lock_guard<std::mutex> lock(test_sink_mutex);
  has_test_sink.store(sink != nullptr, std::memory_order_release);
  TestSink() = std::move(sink);
}

void LogField::AppendTo(std::string* line) const {
  absl::StrAppend(line, " ", key_, "=");
  switch (kind_) {
    case Kind::kText:
      AppendLogValue(line, text_);
      return;
    case Kind::kInt:
      absl::StrAppend(line, int_);
      return;
    case Kind::kUint:
      absl::StrAppend(line, static_cast<uint64_t>(int_));
      return;
    case Kind::kDouble:
      absl::StrAppend(line, double_);
      return;
    case Kind::kStatus:
      // Without the payloads that ToString would add.
      AppendLogValue(
          line, status_->ok()
                    ? "OK"
                    : absl::StrCat(absl::StatusCodeToString(status_->code()),
                                   ": ", status_->message()));
      return;
  }
}

void Log(LogLevel level, absl::string_view event, LogFields fields) {
  if (!LogEnabled(level)) return;
  LogWithSuppressed(level, event, fields, 0);
}

void LogWithSuppressed(LogLevel level, absl::string_view event,
                       LogFields fields, int64_t suppressed) {
  std::string line;
  line.reserve(event.size() + 32 * fields.size());
  AppendLogEvent(&line, event);
  for (const LogField& field : fields) field.AppendTo(&line);
  if (suppressed != 0) LogField("suppressed", suppressed).AppendTo(&line);
  Write(level, line);
}

void FlushLog() { Logger().flush(); }

}  // namespace leasehold
