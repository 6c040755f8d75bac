#include "scheduler/server/scheduler_server.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/logging/log.h"
#include "common/status/status_macros.h"
#include "scheduler/store/metered_task_store.h"
#include "scheduler/store/mysql/mysql_store.h"

namespace leasehold::scheduler {
namespace {

// Kept back from the drain for the gRPC server's last words.
constexpr absl::Duration kShutdownGrace = absl::Seconds(1);

std::unique_ptr<TaskStore> OpenStore(const MySqlConfig& mysql,
                                     MetricRegistry* metrics,
                                     const Clock& clock) {
  return MeterTaskStore(OpenMySqlStore(mysql, CountRetries(*metrics)), *metrics,
                        clock);
}

HealthProbe ProbeOf(SchedulerCore* core, const std::atomic<bool>* serving) {
  HealthProbe probe;
  probe.loops = [core] {
    std::vector<LoopHealth> loops;
    for (const LoopAge& loop : core->LoopAges()) {
      loops.push_back({loop.name, loop.age, loop.limit});
    }
    return loops;
  };
  probe.database_up = [core] { return core->DatabaseUp(); };
  probe.serving = [serving] { return serving->load(); };
  return probe;
}

}  // namespace

absl::Status PrepareDatabase(const MySqlConfig& mysql) {
  LEASEHOLD_ASSIGN_OR_RETURN(const ServerReport server, CheckServer(mysql));
  LogInfo("database found",
          {{"address", AddressForMessage(mysql)}, {"version", server.version}});
  for (const std::string& warning : server.warnings) {
    LogWarning("database setting", {{"warning", warning}});
  }
  return Migrate(mysql, [](absl::string_view step) {
    LogInfo("schema migration", {{"step", step}});
  });
}

absl::StatusOr<std::unique_ptr<SchedulerServer>> SchedulerServer::Start(
    const SchedulerConfig& config, const Clock& clock) {
  auto server = std::unique_ptr<SchedulerServer>(new SchedulerServer(clock));
  LEASEHOLD_RETURN_IF_ERROR(server->StartCore(config));
  LEASEHOLD_RETURN_IF_ERROR(server->StartHttp(config));
  LEASEHOLD_RETURN_IF_ERROR(server->StartGrpc(config));
  server->serving_ = true;
  server->grpc_->SetServing(true);
  return server;
}

absl::Status SchedulerServer::StartCore(const SchedulerConfig& config) {
  LEASEHOLD_ASSIGN_OR_RETURN(
      core_, SchedulerCore::Start(config.engine,
                                  OpenStore(config.mysql, &metrics_, clock_),
                                  metrics_, clock_));
  return absl::OkStatus();
}

absl::Status SchedulerServer::StartHttp(const SchedulerConfig& config) {
  if (config.http_listen.empty()) return absl::OkStatus();
  HttpServerOptions options;
  options.listen = config.http_listen;
  options.health = ProbeOf(core_.get(), &serving_);
  options.metrics = [this] { return metrics_.Serialize(); };
  LEASEHOLD_ASSIGN_OR_RETURN(http_, HttpServer::Start(std::move(options)));
  return absl::OkStatus();
}

absl::Status SchedulerServer::StartGrpc(const SchedulerConfig& config) {
  GrpcServerOptions options;
  options.listen = config.listen;
  options.session_outbox_bytes = config.engine.bounds.session_outbox_bytes;
  GrpcServerParts parts;
  parts.submitter = &core_->submitter();
  parts.reader = &core_->reader();
  parts.control = &core_->control();
  parts.watch_hub = &core_->watch_hub();
  parts.sessions = &core_->sessions();
  parts.queues = &core_->queues();
  parts.now_us = [this] { return absl::ToUnixMicros(clock_.Now()); };
  LEASEHOLD_ASSIGN_OR_RETURN(grpc_, GrpcServer::Start(options, parts));
  return absl::OkStatus();
}

void SchedulerServer::Drain(absl::Duration limit) {
  if (std::exchange(drained_, true)) return;
  const SteadyTime begin = clock_.SteadyNow();
  const bool served = serving_.exchange(false);
  if (grpc_ != nullptr) {
    grpc_->SetServing(false);
    grpc_->EndWaitingCalls();
  }
  const absl::Duration grace = std::min(kShutdownGrace, limit / 4);
  if (core_ != nullptr) core_->Drain(limit - grace);
  if (grpc_ != nullptr) grpc_->Shutdown(grace);
  if (core_ != nullptr) core_->Stop();
  if (!served) return;  // Never came up; its error says why.
  LogInfo("drained",
          {{"took_ms", absl::FromChrono(clock_.SteadyNow() - begin)}});
}

SchedulerServer::~SchedulerServer() { Drain(absl::ZeroDuration()); }

}  // namespace leasehold::scheduler
