// ExecutorService: one stream an executor.
#ifndef SCHEDULER_RPC_EXECUTOR_SERVICE_H_
#define SCHEDULER_RPC_EXECUTOR_SERVICE_H_

#include <cstddef>

#include "leasehold/v1/executor_service.grpc.pb.h"
#include "scheduler/rpc/executor_stream.h"
#include "scheduler/rpc/long_calls.h"
#include "scheduler/session/session.h"

namespace leasehold::scheduler {

class ExecutorService final : public v1::ExecutorService::CallbackService {
 public:
  // `sessions` and `streams` outlive the service and every stream of it.
  ExecutorService(SessionHost* sessions, LongCallRegistry* streams,
                  size_t max_outbox_bytes)
      : sessions_(sessions),
        streams_(streams),
        max_outbox_bytes_(max_outbox_bytes) {}

  grpc::ServerBidiReactor<v1::ExecutorMessage, v1::SchedulerMessage>*
  OpenSession(grpc::CallbackServerContext* context) override {
    return ExecutorStream::Open(context, sessions_, streams_,
                                max_outbox_bytes_);
  }

 private:
  SessionHost* const sessions_;
  LongCallRegistry* const streams_;
  const size_t max_outbox_bytes_;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_RPC_EXECUTOR_SERVICE_H_
