#include "scheduler/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/http_get.h"

namespace leasehold::scheduler {
namespace {

using e2e::HttpGet;
using testing::HasSubstr;
using testing::StartsWith;

// One server for all tests: civetweb takes two seconds to stop.
class HttpServerTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    HttpServerOptions options;
    options.listen = "127.0.0.1:0";
    options.health.loops = [] { return loops; };
    options.health.database_up = [] { return database.load(); };
    options.health.serving = [] { return serving.load(); };
    options.metrics = [] { return std::string("leasehold_up 1\n"); };
    auto started = HttpServer::Start(options);
    ASSERT_TRUE(started.ok()) << started.status();
    server = *std::move(started);
  }
  static void TearDownTestSuite() { server.reset(); }

  void SetUp() override {
    ASSERT_NE(server, nullptr);
    loops = {{"dispatch", absl::Seconds(1), absl::Seconds(30)}};
    database = serving = true;
  }

  inline static std::vector<LoopHealth> loops;  // Set between requests.
  inline static std::atomic<bool> database;
  inline static std::atomic<bool> serving;
  inline static std::unique_ptr<HttpServer> server;
};

TEST_F(HttpServerTest, HealthyWhileLoopsComeRound) {
  const auto response = HttpGet(server->port(), "/healthz");
  EXPECT_EQ(response.status, 200);
  EXPECT_THAT(response.body, HasSubstr("\"status\":\"ok\""));
  EXPECT_THAT(response.body, HasSubstr("\"name\":\"dispatch\""));
}

TEST_F(HttpServerTest, UnhealthyWhenALoopIsStuck) {
  loops.push_back({"reap", absl::Seconds(31), absl::Seconds(30)});
  const auto response = HttpGet(server->port(), "/healthz");
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.body,
              HasSubstr("{\"name\":\"reap\",\"age_ms\":31000,\"limit_ms\":"
                        "30000,\"ok\":false}"));
}

TEST_F(HttpServerTest, LossOfTheDatabaseIsNotReadyButHealthy) {
  database = false;
  const auto response = HttpGet(server->port(), "/readyz");
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.body, HasSubstr("\"database\":\"unreachable\""));
  EXPECT_EQ(HttpGet(server->port(), "/healthz").status, 200);
}

TEST_F(HttpServerTest, DrainingIsNotReady) {
  EXPECT_EQ(HttpGet(server->port(), "/readyz").status, 200);
  serving = false;
  const auto response = HttpGet(server->port(), "/readyz");
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.body, HasSubstr("\"serving\":false"));
}

TEST_F(HttpServerTest, ServesMetricsAndNothingElse) {
  EXPECT_EQ(HttpGet(server->port(), "/metrics").body, "leasehold_up 1\n");
  for (const char* path : {"/", "/metrics/x", "/../etc/passwd", "/healthz2"}) {
    EXPECT_EQ(HttpGet(server->port(), path).status, 404) << path;
  }
}

TEST_F(HttpServerTest, ManyAskAtOnce) {
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 10; ++j) {
        good += HttpGet(server->port(), "/healthz").status == 200;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 160);
}

TEST_F(HttpServerTest, BusyPortIsAnError) {
  HttpServerOptions options;
  options.listen = "127.0.0.1:" + std::to_string(server->port());

  const auto second = HttpServer::Start(options);

  EXPECT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_THAT(
      std::string(second.status().message()),
      StartsWith("--http_listen=" + options.listen + ": cannot listen there"));
}

}  // namespace
}  // namespace leasehold::scheduler
