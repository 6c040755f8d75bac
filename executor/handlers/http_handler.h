// Calls a URL: payload as the body, result from the response's body.
//
// clang-format off
// | the call ends with           | the attempt                                   |
// |------------------------------|-----------------------------------------------|
// | 2xx                          | succeeds; result JSON if the body is, else    |
// |                              | bytes                                         |
// | 429, 503 with Retry-After    | RATE_LIMITED, code HTTP_429 ..                |
// | 408, 425, other 5xx          | RETRYABLE, code HTTP_500 ..                   |
// | any other status             | NON_RETRYABLE, code HTTP_404 ..               |
// | no connection, broken off    | RETRYABLE, CONNECTION_FAILED                  |
// | total_timeout                | RETRYABLE, HTTP_TIMEOUT                       |
// | a larger body than allowed   | NON_RETRYABLE, RESULT_TOO_LARGE               |
// clang-format on
//
// It does not retry by itself: that is the scheduler's.
#ifndef EXECUTOR_HANDLERS_HTTP_HANDLER_H_
#define EXECUTOR_HANDLERS_HTTP_HANDLER_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "executor/sdk/handler.h"
#include "executor/sdk/limits.h"

namespace leasehold::executor {

class HttpHandler : public Handler {
 public:
  struct Options {
    std::string url;
    std::string method = "POST";
    std::map<std::string, std::string> headers;
    absl::Duration total_timeout = absl::Seconds(60);
    size_t max_response_bytes = kMaxResultBytes;
    int max_redirects = 0;
  };

  explicit HttpHandler(Options options);

  HandlerResult Run(HandlerContext& ctx) override;

 private:
  const Options options_;
};

// OK for an absolute http or https URL.
absl::Status CheckHttpUrl(const std::string& url);

// Whether `text` can be a method or a header's name.
bool IsHttpToken(absl::string_view text);

// The value of a Retry-After header: seconds or an HTTP date; what is not one
// of these is nullopt. Never negative, at most an hour.
std::optional<absl::Duration> ParseRetryAfter(absl::string_view value,
                                              absl::Time now);

}  // namespace leasehold::executor

#endif  // EXECUTOR_HANDLERS_HTTP_HANDLER_H_
