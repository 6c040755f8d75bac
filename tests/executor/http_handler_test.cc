#include "executor/handlers/http_handler.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/executor/handler_run.h"
#include "tests/executor/tiny_http_server.h"

namespace leasehold::executor {
namespace {

HandlerResult Call(const TinyHttpServer& server,
                   HttpHandler::Options options = {}) {
  options.url = server.url();
  HttpHandler handler(options);
  return HandlerRun().WithJson("{\"a\":1}").Run(handler);
}

TEST(HttpHandler, SendsThePayloadAndReturnsTheBody) {
  TinyHttpServer server("200 OK", "", "[7]");
  HttpHandler::Options options;
  options.headers = {{"X-Key", "secret"}, {"content-type", "text/x"}};

  EXPECT_EQ(Describe(Call(server, options)), "json:[7]");

  const std::string request = server.requests().at(0);
  EXPECT_EQ(request.substr(0, 16), "POST /path HTTP/");
  EXPECT_EQ(request.substr(request.size() - 7), "{\"a\":1}");
  for (const char* header :
       {"Leasehold-Task-Id: 42\r\n", "Leasehold-Attempt: 1\r\n",
        "Idempotency-Key: 42\r\n", "X-Key: secret\r\n",
        "content-type: text/x\r\n"}) {
    EXPECT_NE(request.find(header), std::string::npos) << header;
  }
  EXPECT_EQ(request.find("application/json"), std::string::npos);
  EXPECT_EQ(request.find("Expect"), std::string::npos);
}

TEST(HttpHandler, ReturnsBytesWhenTheBodyIsNoJson) {
  TinyHttpServer text("201 Created", "", "hello");
  TinyHttpServer nothing("204 No Content", "", "");

  EXPECT_EQ(Describe(Call(text)), "data:hello");
  EXPECT_EQ(Describe(Call(nothing)), "none");
}

TEST(HttpHandler, TellsErrorClassesByStatus) {
  const struct {
    int status;
    const char* headers;
    ErrorClass error_class;
  } table[] = {
      {400, "", ErrorClass::kNonRetryable},
      {401, "", ErrorClass::kNonRetryable},
      {404, "", ErrorClass::kNonRetryable},
      {422, "", ErrorClass::kNonRetryable},
      {301, "Location: /x\r\n", ErrorClass::kNonRetryable},
      {408, "", ErrorClass::kRetryable},
      {425, "", ErrorClass::kRetryable},
      {429, "", ErrorClass::kRateLimited},
      {500, "", ErrorClass::kRetryable},
      {502, "", ErrorClass::kRetryable},
      {503, "", ErrorClass::kRetryable},
      {503, "Retry-After: 7\r\n", ErrorClass::kRateLimited},
      {503, "Retry-After: soon\r\n", ErrorClass::kRetryable},
      {599, "", ErrorClass::kRetryable},
  };
  for (const auto& row : table) {
    TinyHttpServer server(absl::StrCat(row.status, " X"), row.headers, "why");

    const TaskError error = ErrorOf(Call(server));

    EXPECT_EQ(error.code, absl::StrCat("HTTP_", row.status));
    EXPECT_EQ(error.error_class, row.error_class)
        << row.status << " " << row.headers;
    EXPECT_EQ(error.message, absl::StrCat("HTTP status ", row.status, ": why"));
    EXPECT_EQ(server.requests().size(), 1u);  // It does not retry by itself.
  }
}

TEST(HttpHandler, HandsRetryAfterOn) {
  TinyHttpServer server("429 Too Many", "retry-after:  7 \r\n", "");

  EXPECT_EQ(ErrorOf(Call(server)).retry_after, absl::Seconds(7));
}

TEST(HttpHandler, ReadsRetryAfter) {
  const absl::Time now = absl::FromUnixSeconds(784111770);  // 08:49:30
  const struct {
    const char* text;
    std::optional<absl::Duration> wanted;
  } table[] = {
      {"7", absl::Seconds(7)},
      {"0", absl::ZeroDuration()},
      {"Sun, 06 Nov 1994 08:49:37 GMT", absl::Seconds(7)},
      {"Sunday, 06-Nov-94 08:49:37 GMT", absl::Seconds(7)},
      {"Sun Nov  6 08:49:37 1994", absl::Seconds(7)},
      {"Sun, 06 Nov 1994 08:00:00 GMT", absl::ZeroDuration()},
      {"99999999", absl::Hours(1)},
      {"99999999999999999999999999", absl::Hours(1)},
      {"Sun, 06 Nov 2094 08:49:37 GMT", absl::Hours(1)},
      {"", std::nullopt},
      {"-7", std::nullopt},
      {"7.5", std::nullopt},
      {"soon", std::nullopt},
      {"7 seconds", std::nullopt},
  };
  for (const auto& row : table) {
    EXPECT_EQ(ParseRetryAfter(row.text, now), row.wanted) << row.text;
  }
}

TEST(HttpHandler, ASlowDripDoesNotOutlastTheTotalTime) {
  TinyHttpServer server([](const std::string&, const auto& send) {
    send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
    while (send("x")) absl::SleepFor(absl::Milliseconds(20));
  });
  HttpHandler::Options options;
  options.total_timeout = absl::Milliseconds(200);

  const absl::Time start = absl::Now();
  const TaskError error = ErrorOf(Call(server, options));

  EXPECT_EQ(error.code, "HTTP_TIMEOUT");
  EXPECT_EQ(error.error_class, ErrorClass::kRetryable);
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
}

TEST(HttpHandler, ACancelEndsTheCallAtOnce) {
  TinyHttpServer server([](const std::string&, const auto& send) {
    send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
    while (send("x")) absl::SleepFor(absl::Milliseconds(20));
  });
  HttpHandler::Options options;
  options.url = server.url();
  HttpHandler handler(options);

  const absl::Time start = absl::Now();
  const HandlerResult result =
      HandlerRun().RunAndCancel(handler, absl::Milliseconds(50));

  EXPECT_EQ(Describe(result), "error:CANCELLED");
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
}

TEST(HttpHandler, RefusesABodyOnlyAboveItsLimit) {
  HttpHandler::Options options;
  options.max_response_bytes = 100;
  for (const size_t size : {size_t{99}, size_t{100}}) {
    TinyHttpServer server("200 OK", "", std::string(size, 'x'));
    EXPECT_TRUE(Call(server, options).ok()) << size;
  }
  TinyHttpServer server("200 OK", "", std::string(101, 'x'));

  const TaskError error = ErrorOf(Call(server, options));

  EXPECT_EQ(error.code, "RESULT_TOO_LARGE");
  EXPECT_EQ(error.error_class, ErrorClass::kNonRetryable);
}

TEST(HttpHandler, ALargeErrorPageStillTellsItsStatus) {
  HttpHandler::Options options;
  options.max_response_bytes = 100;
  TinyHttpServer server("500 X", "", std::string(100'000, 'x'));

  EXPECT_EQ(ErrorOf(Call(server, options)).code, "HTTP_500");
}

TEST(HttpHandler, FollowsNoMoreRedirectsThanAllowed) {
  TinyHttpServer loop([](const std::string&, const auto& send) {
    send(
        "HTTP/1.1 307 X\r\nLocation: /again\r\nContent-Length: 0\r\n"
        "Connection: close\r\n\r\n");
  });
  EXPECT_EQ(ErrorOf(Call(loop)).code, "HTTP_307");
  EXPECT_EQ(loop.requests().size(), 1u);

  HttpHandler::Options options;
  options.max_redirects = 2;

  EXPECT_FALSE(Call(loop, options).ok());
  EXPECT_EQ(loop.requests().size(), 4u);
}

TEST(HttpHandler, NeverLeavesHttp) {
  TinyHttpServer server("302 X", "Location: file:///etc/passwd\r\n", "");
  HttpHandler::Options options;
  options.max_redirects = 5;

  EXPECT_FALSE(Call(server, options).ok());
  EXPECT_TRUE(CheckHttpUrl("https://example.com/x").ok());
  for (const char* url : {"", "file:///etc/passwd", "ftp://x", "/x", "x"}) {
    EXPECT_FALSE(CheckHttpUrl(url).ok()) << url;
  }
}

TEST(HttpHandler, AConnectionThatFailsOrBreaksOffIsRetryable) {
  TinyHttpServer breaks([](const std::string&, const auto& send) {
    send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc");
  });
  HttpHandler::Options options;
  options.url = "http://127.0.0.1:1/";
  HttpHandler refused(options);

  const TaskError broken_error = ErrorOf(Call(breaks));
  const TaskError refused_error = ErrorOf(HandlerRun().Run(refused));

  EXPECT_EQ(broken_error.code, "CONNECTION_FAILED");
  EXPECT_EQ(broken_error.error_class, ErrorClass::kRetryable);
  EXPECT_EQ(refused_error.code, "CONNECTION_FAILED");
}

}  // namespace
}  // namespace leasehold::executor
