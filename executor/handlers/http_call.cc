#include "executor/handlers/http_call.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace leasehold::executor {
namespace {

constexpr int kPollMs = 60'000;  // curl shortens it to its own timers.
constexpr absl::string_view kRetryAfter = "retry-after:";

}  // namespace

HttpCall::HttpCall() : easy_(curl_easy_init()), multi_(curl_multi_init()) {}

HttpCall::~HttpCall() {
  curl_easy_cleanup(easy_);
  curl_multi_cleanup(multi_);
}

size_t HttpCall::OnBody(char* data, size_t size, size_t count, void* self) {
  auto* call = static_cast<HttpCall*>(self);
  const size_t bytes = size * count;
  if (bytes > call->max_response_bytes_ - call->response_.body.size()) {
    call->response_.too_large = true;
    return 0;  // Ends the transfer.
  }
  call->response_.body.append(data, bytes);
  return bytes;
}

size_t HttpCall::OnHeader(char* data, size_t size, size_t count, void* self) {
  auto* call = static_cast<HttpCall*>(self);
  const absl::string_view line(data, size * count);
  if (absl::StartsWith(line, "HTTP/")) {
    // A further response: what the one before said does not count.
    call->response_.retry_after.clear();
    call->response_.body.clear();
  } else if (absl::StartsWithIgnoreCase(line, kRetryAfter)) {
    call->response_.retry_after = std::string(
        absl::StripAsciiWhitespace(line.substr(kRetryAfter.size())));
  }
  return size * count;
}

curl_slist* HttpCall::HeaderList(const HttpRequest& request) {
  curl_slist* list = nullptr;
  for (const std::string& header : request.headers) {
    list = curl_slist_append(list, header.c_str());
  }
  // No "Expect: 100-continue", which costs a second with servers that do not
  // know it.
  return curl_slist_append(list, "Expect:");
}

void HttpCall::SetOptions(const HttpRequest& request) {
  max_response_bytes_ = request.max_response_bytes;
  curl_easy_setopt(easy_, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(easy_, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy_, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy_, CURLOPT_ERRORBUFFER, error_);
  curl_easy_setopt(easy_, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  if (request.method == "HEAD") {
    curl_easy_setopt(easy_, CURLOPT_NOBODY, 1L);
  } else if (!request.body.empty() || request.method != "GET") {
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDS,
                     request.body.empty() ? "" : request.body.data());
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
  }
  curl_easy_setopt(easy_, CURLOPT_FOLLOWLOCATION,
                   request.max_redirects > 0 ? 1L : 0L);
  curl_easy_setopt(easy_, CURLOPT_MAXREDIRS,
                   static_cast<long>(request.max_redirects));
  const int64_t timeout_ms = std::clamp<int64_t>(
      absl::ToInt64Milliseconds(request.total_timeout), 1, 1'000'000'000);
  curl_easy_setopt(easy_, CURLOPT_TIMEOUT_MS, static_cast<long>(timeout_ms));
  curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, &HttpCall::OnBody);
  curl_easy_setopt(easy_, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(easy_, CURLOPT_HEADERFUNCTION, &HttpCall::OnHeader);
  curl_easy_setopt(easy_, CURLOPT_HEADERDATA, this);
}

HttpResponse HttpCall::Run(const HttpRequest& request,
                           const CancellationToken& token) {
  SetOptions(request);
  curl_slist* headers = HeaderList(request);
  curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, headers);
  curl_multi_add_handle(multi_, easy_);
  const CURLcode code = Transfer(token);
  curl_multi_remove_handle(multi_, easy_);
  curl_slist_free_all(headers);

  long status = 0;
  curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
  response_.status = static_cast<int>(status);
  response_.timed_out = code == CURLE_OPERATION_TIMEDOUT;
  if (code != CURLE_OK) {
    response_.error = error_[0] != '\0' ? error_ : curl_easy_strerror(code);
  }
  return std::move(response_);
}

CURLcode HttpCall::Transfer(const CancellationToken& token) {
  CURLM* const multi = multi_;
  const auto watch = token.OnCancel([multi] { curl_multi_wakeup(multi); });
  int running = 0;
  do {
    if (curl_multi_perform(multi_, &running) != CURLM_OK) break;
    if (running == 0) break;
    if (token.cancelled()) return CURLE_ABORTED_BY_CALLBACK;
    curl_multi_poll(multi_, nullptr, 0, kPollMs, nullptr);
  } while (true);
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg == CURLMSG_DONE) return message->data.result;
  }
  return CURLE_FAILED_INIT;
}

}  // namespace leasehold::executor
