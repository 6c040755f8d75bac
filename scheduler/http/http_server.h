// GET /healthz, /readyz and /metrics.
#ifndef SCHEDULER_HTTP_HTTP_SERVER_H_
#define SCHEDULER_HTTP_HTTP_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "scheduler/http/health_probe.h"

struct mg_connection;
struct mg_context;

namespace leasehold::scheduler {

struct HttpServerOptions {
  std::string listen = "127.0.0.1:7071";  // Port 0 takes a free one.
  HealthProbe health;
  // The body of /metrics, in Prometheus' text format.
  std::function<std::string()> metrics;
};

// A few threads of its own; a slow scraper delays nothing else.
class HttpServer {
 public:
  // UNAVAILABLE: `--http_listen=127.0.0.1:7071: cannot listen there, ...`.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(
      HttpServerOptions options);
  ~HttpServer();  // Ends its threads.
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;

 private:
  explicit HttpServer(HttpServerOptions options);

  static int Handle(mg_connection* connection, void* self);
  int Answer(mg_connection* connection) const;

  const HttpServerOptions options_;
  mg_context* context_ = nullptr;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_HTTP_HTTP_SERVER_H_
