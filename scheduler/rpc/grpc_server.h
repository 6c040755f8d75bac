// The gRPC face of the scheduler: all services, reflection and health on one
// port.
//
//   auto server = GrpcServer::Start(options, parts);   // NOT_SERVING at first
//   (*server)->SetServing(true);
//   ...
//   (*server)->EndWaitingCalls();      // Watch and Wait leave
//   ...                                // the engine drains its sessions
//   (*server)->Shutdown(absl::Seconds(2));
#ifndef SCHEDULER_RPC_GRPC_SERVER_H_
#define SCHEDULER_RPC_GRPC_SERVER_H_

#include <grpcpp/server.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "scheduler/engine/queue_control.h"
#include "scheduler/engine/task_control.h"
#include "scheduler/engine/task_reader.h"
#include "scheduler/engine/task_submitter.h"
#include "scheduler/engine/task_watch_hub.h"
#include "scheduler/rpc/admin_service.h"
#include "scheduler/rpc/batch_service.h"
#include "scheduler/rpc/executor_service.h"
#include "scheduler/rpc/long_calls.h"
#include "scheduler/rpc/task_service.h"
#include "scheduler/session/session.h"

namespace leasehold::scheduler {

struct GrpcServerOptions {
  std::string listen = "127.0.0.1:7070";  // Port 0 takes a free one.
  size_t session_outbox_bytes = 16u << 20;
};

// All outlive the server.
struct GrpcServerParts {
  TaskSubmitter* submitter = nullptr;
  TaskReader* reader = nullptr;
  TaskControl* control = nullptr;
  TaskWatchHub* watch_hub = nullptr;
  SessionHost* sessions = nullptr;
  QueueControl* queues = nullptr;
  std::function<int64_t()> now_us;
};

class GrpcServer {
 public:
  // UNAVAILABLE: `--listen=127.0.0.1:7070: cannot listen there, ...`.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(
      const GrpcServerOptions& options, const GrpcServerParts& parts);
  ~GrpcServer();  // Shutdown(0).

  int port() const { return port_; }

  // What the health service says, for every service and for the whole.
  void SetServing(bool serving);

  // Ends WatchTask and WaitTask calls and refuses new ones; new sessions too.
  void EndWaitingCalls();

  // Ends what is still open, takes no new calls, gives running ones until
  // `grace` is over and then cancels them. Idempotent. Does not hang: every
  // call of ours ends when it is cancelled.
  void Shutdown(absl::Duration grace);

  size_t open_streams() const { return streams_.size(); }
  size_t waiting_calls() const { return waiting_.size(); }

 private:
  GrpcServer(const GrpcServerOptions& options, const GrpcServerParts& parts);

  LongCallRegistry waiting_;
  LongCallRegistry streams_;
  TaskService task_service_;
  ExecutorService executor_service_;
  BatchService batch_service_;
  AdminService admin_service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_RPC_GRPC_SERVER_H_
