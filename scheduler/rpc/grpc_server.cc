#include "scheduler/rpc/grpc_server.h"

#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "common/logging/log.h"
#include "google/protobuf/stubs/logging.h"
#include "grpc/health/v1/health.pb.h"

namespace leasehold::scheduler {
namespace {

// Above the 3.5 MiB of the contract, so that too large a payload or result gets
// an answer that says so instead of a broken stream.
constexpr int kMaxReceiveBytes = 8 << 20;
// Messages that gRPC holds for all calls together; beyond it reading slows
// down.
constexpr size_t kMaxGrpcMemoryBytes = 256u << 20;
constexpr int kMaxStreamsPerConnection = 10'000;

// Finds peers that died without a word, and takes pings every 10 s from clients
// that do the same.
constexpr int kKeepaliveMillis = 10'000;
constexpr int kKeepaliveTimeoutMillis = 10'000;
constexpr int kMinPingIntervalMillis = 5'000;

void Configure(grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(kMaxReceiveBytes);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMillis);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                              kKeepaliveTimeoutMillis);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder->AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
      kMinPingIntervalMillis);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                              kMaxStreamsPerConnection);
  // A port that another scheduler listens on is a mistake, not to be shared.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  grpc::ResourceQuota quota("leasehold");
  quota.Resize(kMaxGrpcMemoryBytes);
  builder->SetResourceQuota(quota);
}

// gRPC's own health service has no descriptor that reflection could show;
// naming ours keeps it in the binary.
void LinkHealthDescriptor() {
  grpc::health::v1::HealthCheckRequest::descriptor();
}

// gRPC's own lines are for its developers; what matters to an operator comes
// back as an error.
void LogAsDebug(gpr_log_func_args* args) {
  LogDebug("grpc", {{"message", args->message}});
}

void LogProtobufAsDebug(google::protobuf::LogLevel, const char*, int,
                        const std::string& message) {
  LogDebug("protobuf", {{"message", message}});
}

// What gRPC and Protobuf know per process.
void SetUpGrpcOnce() {
  static const bool done = [] {
    gpr_set_log_function(LogAsDebug);
    google::protobuf::SetLogHandler(LogProtobufAsDebug);
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    LinkHealthDescriptor();
    return true;
  }();
  (void)done;
}

}  // namespace

GrpcServer::GrpcServer(const GrpcServerOptions& options,
                       const GrpcServerParts& parts)
    : task_service_({parts.submitter, parts.reader, parts.control,
                     parts.watch_hub, &waiting_, parts.now_us}),
      executor_service_(parts.sessions, &streams_,
                        options.session_outbox_bytes),
      admin_service_(parts.queues) {}

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(
    const GrpcServerOptions& options, const GrpcServerParts& parts) {
  SetUpGrpcOnce();
  auto server = std::unique_ptr<GrpcServer>(new GrpcServer(options, parts));
  grpc::ServerBuilder builder;
  Configure(&builder);
  builder.AddListeningPort(options.listen, grpc::InsecureServerCredentials(),
                           &server->port_);
  builder.RegisterService(&server->task_service_);
  builder.RegisterService(&server->executor_service_);
  builder.RegisterService(&server->batch_service_);
  builder.RegisterService(&server->admin_service_);
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr || server->port_ == 0) {
    return absl::UnavailableError(absl::StrCat(
        "--listen=", options.listen,
        ": cannot listen there, want an address of this machine and a port "
        "that is free (0 takes any)"));
  }
  server->SetServing(false);
  return server;
}

GrpcServer::~GrpcServer() { Shutdown(absl::ZeroDuration()); }

void GrpcServer::SetServing(bool serving) {
  grpc::HealthCheckServiceInterface* health =
      server_ == nullptr ? nullptr : server_->GetHealthCheckService();
  if (health == nullptr) return;
  health->SetServingStatus(serving);  // Of those that are known already.
  for (const char* service :
       {"leasehold.v1.TaskService", "leasehold.v1.ExecutorService",
        "leasehold.v1.BatchService", "leasehold.v1.AdminService"}) {
    health->SetServingStatus(service, serving);
  }
}

void GrpcServer::EndWaitingCalls() { waiting_.EndAll(); }

void GrpcServer::Shutdown(absl::Duration grace) {
  if (server_ == nullptr) return;
  waiting_.EndAll();
  streams_.EndAll();
  server_->Shutdown(std::chrono::system_clock::now() +
                    absl::ToChronoMicroseconds(grace));
  server_->Wait();
  server_.reset();
}

}  // namespace leasehold::scheduler
