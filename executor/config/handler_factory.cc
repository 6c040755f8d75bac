#include "executor/config/handler_factory.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "common/text/utf8.h"
#include "executor/handlers/echo_handler.h"
#include "executor/handlers/exec_handler.h"
#include "executor/handlers/fail_handler.h"
#include "executor/handlers/http_handler.h"
#include "executor/handlers/sleep_handler.h"
#include "executor/sdk/limits.h"

namespace leasehold::executor {
namespace {

constexpr int kMaxRedirects = 20;

// One handler's settings while they are checked.
class Settings {
 public:
  Settings(const google::protobuf::Message& message, ConfigChecker::Tree* node,
           ConfigChecker::Location location, std::string path,
           ConfigChecker* checker)
      : message_(message),
        node_(node),
        location_(location),
        path_(std::move(path)),
        checker_(*checker) {}

  void Reject(const char* field, absl::string_view what) {
    ok_ = false;
    checker_.Add(node_, message_, field, path_, what, location_);
  }

  absl::Duration GetDuration(const char* field, bool is_set,
                             const google::protobuf::Duration& value,
                             absl::Duration otherwise, absl::Duration min,
                             absl::Duration max = absl::Hours(24 * 7)) {
    if (!is_set) return otherwise;
    const absl::Duration duration =
        absl::Seconds(value.seconds()) + absl::Nanoseconds(value.nanos());
    if (duration < min) {
      Reject(field, absl::StrCat(absl::FormatDuration(duration), ", want ",
                                 absl::FormatDuration(min), " or more"));
    }
    if (duration > max) {
      Reject(field, absl::StrCat(absl::FormatDuration(duration), ", want ",
                                 absl::FormatDuration(max), " or less"));
    }
    return duration;
  }

  size_t GetResultBytes(const char* field, int64_t value) {
    if (value == 0) return kMaxResultBytes;
    if (value < 0 || value > static_cast<int64_t>(kMaxResultBytes)) {
      Reject(field, absl::StrCat(value, ", want 1-", kMaxResultBytes));
      return kMaxResultBytes;
    }
    return static_cast<size_t>(value);
  }

  bool ok() const { return ok_; }

 private:
  const google::protobuf::Message& message_;
  ConfigChecker::Tree* const node_;
  const ConfigChecker::Location location_;  // The handler's.
  const std::string path_;
  ConfigChecker& checker_;
  bool ok_ = true;
};

bool IsExecutableFile(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) &&
         access(path.c_str(), X_OK) == 0;
}

bool IsExecutable(const std::string& program) {
  if (program.find('/') != std::string::npos) return IsExecutableFile(program);
  const char* path = getenv("PATH");
  for (const absl::string_view folder :
       absl::StrSplit(path == nullptr ? "/usr/bin:/bin" : path, ':')) {
    if (IsExecutableFile(absl::StrCat(folder, "/", program))) return true;
  }
  return false;
}

std::unique_ptr<Handler> MakeSleep(const config::v1::SleepHandler& config,
                                   Settings settings) {
  const absl::Duration duration = settings.GetDuration(
      "default_duration", config.has_default_duration(),
      config.default_duration(), absl::Seconds(1), absl::ZeroDuration());
  if (!settings.ok()) return nullptr;
  return std::make_unique<SleepHandler>(duration);
}

// `path` if it is absolute, else as seen from `folder`.
std::string PathFrom(const std::string& folder, const std::string& path) {
  return (std::filesystem::path(folder) / path).lexically_normal().string();
}

std::unique_ptr<Handler> MakeExec(const config::v1::ExecHandler& config,
                                  const std::string& config_folder,
                                  Settings settings) {
  ExecHandler::Options options;
  options.argv.assign(config.argv().begin(), config.argv().end());
  options.environment = {config.environment().begin(),
                         config.environment().end()};
  options.clear_environment = config.clear_environment();
  const bool has_folder = !config.working_folder().empty();
  if (has_folder) {
    options.working_folder = PathFrom(config_folder, config.working_folder());
  }
  options.max_output_bytes =
      settings.GetResultBytes("max_output_bytes", config.max_output_bytes());
  options.kill_grace = settings.GetDuration(
      "kill_grace", config.has_kill_grace(), config.kill_grace(),
      absl::Seconds(5), absl::ZeroDuration(), absl::Hours(1));

  if (has_folder && access(options.working_folder.c_str(), X_OK) != 0) {
    settings.Reject("working_folder",
                    absl::StrCat(QuoteForMessage(options.working_folder, 256),
                                 ", want a folder that can be entered"));
  }
  if (options.argv.empty() || options.argv[0].empty()) {
    settings.Reject("argv", "empty, want a command");
    return nullptr;
  }
  // A relative path with a slash is looked up from the working folder, or from
  // the file's; a name without one, in PATH.
  std::string& program = options.argv[0];
  if (program.find('/') != std::string::npos) {
    program =
        PathFrom(has_folder ? options.working_folder : config_folder, program);
  }
  if (!IsExecutable(program)) {
    settings.Reject("argv", absl::StrCat(QuoteForMessage(program, 256),
                                         ", want a program that can be run"));
  }
  for (const auto& [name, value] : options.environment) {
    if (name.empty() || name.find('=') != std::string::npos) {
      settings.Reject("environment",
                      absl::StrCat(QuoteForMessage(name), ", want a name"));
    }
  }
  if (!settings.ok()) return nullptr;
  return std::make_unique<ExecHandler>(std::move(options));
}

std::unique_ptr<Handler> MakeHttp(const config::v1::HttpHandler& config,
                                  Settings settings) {
  HttpHandler::Options options;
  options.url = config.url();
  if (!config.method().empty()) options.method = config.method();
  options.headers = {config.headers().begin(), config.headers().end()};
  options.total_timeout = settings.GetDuration(
      "total_timeout", config.has_total_timeout(), config.total_timeout(),
      absl::Seconds(60), absl::Milliseconds(1));
  options.max_response_bytes = settings.GetResultBytes(
      "max_response_bytes", config.max_response_bytes());
  options.max_redirects = config.max_redirects();

  if (absl::Status status = CheckHttpUrl(options.url); !status.ok()) {
    settings.Reject("url", std::string(status.message()));
  }
  if (!IsHttpToken(options.method)) {
    settings.Reject("method", absl::StrCat(QuoteForMessage(options.method),
                                           ", want a word such as POST"));
  }
  for (const auto& [name, value] : options.headers) {
    if (!IsHttpToken(name) ||
        value.find_first_of("\r\n") != std::string::npos) {
      settings.Reject("headers",
                      absl::StrCat(QuoteForMessage(name),
                                   ", want a header name and a single line"));
    }
  }
  if (options.max_redirects < 0 || options.max_redirects > kMaxRedirects) {
    settings.Reject("max_redirects", absl::StrCat(options.max_redirects,
                                                  ", want 0-", kMaxRedirects));
  }
  if (!settings.ok()) return nullptr;
  return std::make_unique<HttpHandler>(std::move(options));
}

}  // namespace

std::unique_ptr<Handler> MakeHandler(const config::v1::HandlerConfig& config,
                                     ConfigChecker::Tree* node,
                                     const std::string& path,
                                     const std::string& folder,
                                     ConfigChecker* checker) {
  const auto settings_of = [&](const google::protobuf::Message& message,
                               const char* field) {
    ConfigChecker::Tree* inner = nullptr;
    if (node != nullptr) {
      inner = node->GetTreeForNested(
          config.GetDescriptor()->FindFieldByName(field), -1);
    }
    return Settings(message, inner,
                    ConfigChecker::LocationOf(node, config, field),
                    absl::StrCat(path, field, "."), checker);
  };
  switch (config.handler_case()) {
    case config::v1::HandlerConfig::kEcho:
      return std::make_unique<EchoHandler>();
    case config::v1::HandlerConfig::kSleep:
      return MakeSleep(config.sleep(), settings_of(config.sleep(), "sleep"));
    case config::v1::HandlerConfig::kFail:
      return std::make_unique<FailHandler>();
    case config::v1::HandlerConfig::kExec:
      return MakeExec(config.exec(), folder,
                      settings_of(config.exec(), "exec"));
    case config::v1::HandlerConfig::kHttp:
      return MakeHttp(config.http(), settings_of(config.http(), "http"));
    case config::v1::HandlerConfig::HANDLER_NOT_SET:
      break;
  }
  checker->Add(node, config, "type", path,
               absl::StrCat(QuoteForMessage(config.type()),
                            " has no handler, want one of echo, sleep, fail, "
                            "exec, http"));
  return nullptr;
}

}  // namespace leasehold::executor
