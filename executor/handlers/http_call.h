// One HTTP request, by libcurl.
#ifndef EXECUTOR_HANDLERS_HTTP_CALL_H_
#define EXECUTOR_HANDLERS_HTTP_CALL_H_

#include <curl/curl.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "executor/sdk/cancellation.h"

namespace leasehold::executor {

struct HttpRequest {
  std::string url;
  std::string method;
  std::vector<std::string> headers;  // "Name: value"
  absl::string_view body;
  absl::Duration total_timeout;
  size_t max_response_bytes = 0;
  int max_redirects = 0;
};

struct HttpResponse {
  int status = 0;  // 0 when there is none.
  std::string body;
  std::string retry_after;  // The header as it came.
  bool too_large = false;
  bool timed_out = false;
  std::string error;  // Why there is no whole response; empty when there is.
};

class HttpCall {
 public:
  HttpCall();
  ~HttpCall();
  HttpCall(const HttpCall&) = delete;
  HttpCall& operator=(const HttpCall&) = delete;

  // Returns when the whole response is there, the total time is over, it is too
  // large, or `token` is cancelled.
  HttpResponse Run(const HttpRequest& request, const CancellationToken& token);

 private:
  static size_t OnBody(char* data, size_t size, size_t count, void* self);
  static size_t OnHeader(char* data, size_t size, size_t count, void* self);
  void SetOptions(const HttpRequest& request);
  CURLcode Transfer(const CancellationToken& token);
  curl_slist* HeaderList(const HttpRequest& request);

  CURL* const easy_;
  CURLM* const multi_;
  size_t max_response_bytes_ = 0;
  HttpResponse response_;
  char error_[CURL_ERROR_SIZE] = {};
};

}  // namespace leasehold::executor

#endif  // EXECUTOR_HANDLERS_HTTP_CALL_H_
