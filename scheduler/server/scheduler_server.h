// The whole scheduler: store, core, gRPC and HTTP, started in order and drained
// in reverse.
//
//   start:  metrics -> database check -> migrations -> core -> HTTP -> gRPC ->
//           ready
//   drain:  not ready -> Watch and Wait leave -> sessions drain, submits are
//           refused, queues are written -> gRPC shuts down -> threads stop
#ifndef SCHEDULER_SERVER_SCHEDULER_SERVER_H_
#define SCHEDULER_SERVER_SCHEDULER_SERVER_H_

#include <atomic>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/metrics/metrics.h"
#include "common/time/clock.h"
#include "scheduler/config/scheduler_config.h"
#include "scheduler/http/http_server.h"
#include "scheduler/rpc/grpc_server.h"
#include "scheduler/server/core.h"

namespace leasehold::scheduler {

// Checks the database and brings its schema up to date. Errors are one line for
// an operator.
absl::Status PrepareDatabase(const MySqlConfig& mysql);

class SchedulerServer {
 public:
  // The database has been prepared. Errors are one line for an operator.
  static absl::StatusOr<std::unique_ptr<SchedulerServer>> Start(
      const SchedulerConfig& config, const Clock& clock);
  // Drains with no time to spare unless Drain was called.
  ~SchedulerServer();

  int grpc_port() const { return grpc_->port(); }

  // Returns after about `limit` at the latest, whatever peers and database do.
  void Drain(absl::Duration limit);

 private:
  explicit SchedulerServer(const Clock& clock) : clock_(clock) {}

  absl::Status StartCore(const SchedulerConfig& config);
  absl::Status StartHttp(const SchedulerConfig& config);
  absl::Status StartGrpc(const SchedulerConfig& config);

  // Destroyed from the bottom up: what is below uses what is above.
  const Clock& clock_;
  MetricRegistry metrics_;
  std::atomic<bool> serving_{false};
  bool drained_ = false;
  std::unique_ptr<SchedulerCore> core_;
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<GrpcServer> grpc_;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_SERVER_SCHEDULER_SERVER_H_
