#include "scheduler/http/http_server.h"

#include <civetweb.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "scheduler/http/health_report.h"

namespace leasehold::scheduler {
namespace {

int Write(mg_connection* connection, int status, const char* type,
          const std::string& body, bool head) {
  const char* reason = mg_get_response_code_text(connection, status);
  mg_printf(connection,
            "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
            "Cache-Control: no-store\r\nConnection: close\r\n\r\n",
            status, reason, type, body.size());
  if (!head) mg_write(connection, body.data(), body.size());
  return status;
}

// What civetweb says about its start goes into our error, not to stderr.
int SwallowLog(const mg_connection*, const char*) { return 1; }

}  // namespace

HttpServer::HttpServer(HttpServerOptions options)
    : options_(std::move(options)) {}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(
    HttpServerOptions options) {
  auto server = std::unique_ptr<HttpServer>(new HttpServer(std::move(options)));
  static const bool initialized = mg_init_library(0) == 0;
  (void)initialized;

  const char* settings[] = {"listening_ports", server->options_.listen.c_str(),
                            // A thread each: silent connections must not keep
                            // probes waiting.
                            "num_threads", "32", "connection_queue", "128",
                            "request_timeout_ms", "2000",
                            "enable_directory_listing", "no", nullptr};
  mg_callbacks callbacks = {};
  callbacks.log_message = SwallowLog;
  mg_init_data init = {};
  init.callbacks = &callbacks;
  init.configuration_options = settings;
  char text[256] = "";
  unsigned code = 0;
  mg_error_data error = {};
  error.code = &code;
  error.text = text;
  error.text_buffer_size = sizeof(text);
  server->context_ = mg_start2(&init, &error);
  if (server->context_ == nullptr) {
    return absl::UnavailableError(absl::StrCat(
        "--http_listen=", server->options_.listen,
        ": cannot listen there, want an address of this machine and a port "
        "that is free (0 takes any)"));
  }
  mg_set_request_handler(server->context_, "/", Handle, server.get());
  return server;
}

HttpServer::~HttpServer() {
  if (context_ != nullptr) mg_stop(context_);
}

int HttpServer::port() const {
  mg_server_port ports[1] = {};
  return mg_get_server_ports(context_, 1, ports) == 1 ? ports[0].port : 0;
}

int HttpServer::Handle(mg_connection* connection, void* self) {
  return static_cast<const HttpServer*>(self)->Answer(connection);
}

int HttpServer::Answer(mg_connection* connection) const {
  const mg_request_info* request = mg_get_request_info(connection);
  const absl::string_view method = request->request_method;
  const absl::string_view path = request->local_uri;
  const bool head = method == "HEAD";
  if (method != "GET" && !head) {
    return Write(connection, 405, "text/plain", "want GET\n", false);
  }
  if (path == "/healthz" || path == "/readyz") {
    const HealthReport report = path == "/healthz"
                                    ? ReportHealth(options_.health)
                                    : ReportReadiness(options_.health);
    return Write(connection, report.http_status, "application/json",
                 report.json, head);
  }
  if (path == "/metrics") {
    return Write(connection, 200, "text/plain; version=0.0.4; charset=utf-8",
                 options_.metrics(), head);
  }
  return Write(connection, 404, "text/plain",
               "want /healthz, /readyz or /metrics\n", head);
}

}  // namespace leasehold::scheduler
