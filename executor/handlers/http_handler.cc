#include "executor/handlers/http_handler.h"

#include <curl/curl.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/text/json.h"
#include "common/text/utf8.h"
#include "executor/handlers/http_call.h"

namespace leasehold::executor {
namespace {

constexpr size_t kMessageBytes = 1024;

bool IsVisibleLine(absl::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_iscntrl(static_cast<unsigned char>(c));
  });
}

std::vector<std::string> HeadersFor(const HttpHandler::Options& options,
                                    const HandlerContext& ctx) {
  const TaskInput& task = ctx.task();
  std::map<std::string, std::string> headers = {
      {"Leasehold-Task-Id", task.task_id},
      {"Leasehold-Attempt", absl::StrCat(task.attempt)},
      {"Idempotency-Key", task.task_id},
      {"Content-Type", ctx.payload().kind == Payload::Kind::kJson
                           ? "application/json"
                           : "application/octet-stream"}};
  if (!task.traceparent.empty() && IsVisibleLine(task.traceparent)) {
    headers["traceparent"] = task.traceparent;
  }
  std::vector<std::string> lines;
  for (const auto& [name, value] : options.headers) {
    // Configured headers win, whatever their case.
    const auto same = std::find_if(
        headers.begin(), headers.end(), [&, &wanted = name](const auto& entry) {
          return absl::AsciiStrToLower(entry.first) ==
                 absl::AsciiStrToLower(wanted);
        });
    if (same != headers.end()) headers.erase(same);
    lines.push_back(absl::StrCat(name, ": ", value));
  }
  for (const auto& [name, value] : headers) {
    lines.push_back(absl::StrCat(name, ": ", value));
  }
  return lines;
}

ErrorClass ClassOfStatus(int status, bool has_retry_after) {
  if (status == 429 || (status == 503 && has_retry_after)) {
    return ErrorClass::kRateLimited;
  }
  if (status == 408 || status == 425 || status >= 500) {
    return ErrorClass::kRetryable;
  }
  return ErrorClass::kNonRetryable;
}

HandlerResult Failure(const HttpHandler::Options& options,
                      const HttpResponse& response) {
  if (response.timed_out) {
    return HandlerResult::Error(
        {ErrorClass::kRetryable, "HTTP_TIMEOUT",
         absl::StrCat("no whole response within ",
                      absl::FormatDuration(options.total_timeout)),
         std::nullopt});
  }
  return HandlerResult::Error({ErrorClass::kRetryable, "CONNECTION_FAILED",
                               response.error, std::nullopt});
}

HandlerResult StatusFailure(const HttpResponse& response) {
  const std::optional<absl::Duration> retry_after =
      ParseRetryAfter(response.retry_after, absl::Now());
  TaskError error;
  error.error_class = ClassOfStatus(response.status, retry_after.has_value());
  error.code = absl::StrCat("HTTP_", response.status);
  error.message = absl::StrCat("HTTP status ", response.status);
  if (!response.body.empty()) {
    absl::StrAppend(&error.message, ": ",
                    absl::string_view(response.body).substr(0, kMessageBytes));
  }
  error.retry_after = retry_after;
  return HandlerResult::Error(std::move(error));
}

}  // namespace

HttpHandler::HttpHandler(Options options) : options_(std::move(options)) {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)initialised;
}

HandlerResult HttpHandler::Run(HandlerContext& ctx) {
  HttpRequest request;
  request.url = options_.url;
  request.method = options_.method;
  request.headers = HeadersFor(options_, ctx);
  request.body = ctx.payload().bytes;
  request.total_timeout = options_.total_timeout;
  request.max_response_bytes = options_.max_response_bytes;
  request.max_redirects = options_.max_redirects;
  HttpResponse response = HttpCall().Run(request, ctx.cancellation());

  if (ctx.cancellation().cancelled() && !response.error.empty()) {
    return HandlerResult::Cancelled();
  }
  const bool is_success = response.status >= 200 && response.status < 300;
  if (response.too_large && is_success) {
    return HandlerResult::Error(
        {ErrorClass::kNonRetryable, "RESULT_TOO_LARGE",
         absl::StrCat("response: more than ", options_.max_response_bytes,
                      " bytes"),
         std::nullopt});
  }
  // What a failed response says in full does not matter; its status does.
  if (!response.error.empty() && !response.too_large) {
    return Failure(options_, response);
  }
  if (!is_success) return StatusFailure(response);
  if (response.body.empty()) return HandlerResult::Success();
  if (ValidateJson(response.body).ok()) {
    return HandlerResult::Json(std::move(response.body));
  }
  return HandlerResult::Data(std::move(response.body));
}

absl::Status CheckHttpUrl(const std::string& url) {
  CURLU* parsed = curl_url();
  char* scheme = nullptr;
  const bool ok =
      curl_url_set(parsed, CURLUPART_URL, url.c_str(), 0) == CURLUE_OK &&
      curl_url_get(parsed, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
      (absl::string_view(scheme) == "http" ||
       absl::string_view(scheme) == "https");
  curl_free(scheme);
  curl_url_cleanup(parsed);
  if (ok) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(QuoteForMessage(url, 256), ", want an http or https URL"));
}

bool IsHttpToken(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::string_view("!#$%&'*+-.^_`|~").find(c) !=
               absl::string_view::npos;
  });
}

std::optional<absl::Duration> ParseRetryAfter(absl::string_view value,
                                              absl::Time now) {
  const std::string text(absl::StripAsciiWhitespace(value));
  if (text.empty()) return std::nullopt;
  const bool is_number = std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
  absl::Duration wait;
  if (is_number) {
    int64_t seconds = 0;
    // A number past 2^63 is huge like any other.
    wait = absl::SimpleAtoi(text, &seconds) ? absl::Seconds(seconds)
                                            : absl::InfiniteDuration();
  } else {
    const time_t date = curl_getdate(text.c_str(), nullptr);
    if (date < 0) return std::nullopt;
    wait = absl::FromTimeT(date) - now;
  }
  return std::clamp(wait, absl::ZeroDuration(), kMaxRetryAfter);
}

}  // namespace leasehold::executor
