// Answers for methods that this version registers but does not serve.
#ifndef SCHEDULER_RPC_NOT_SERVED_H_
#define SCHEDULER_RPC_NOT_SERVED_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include "absl/strings/string_view.h"
#include "scheduler/rpc/grpc_status.h"

namespace leasehold::scheduler {

// `method` reads "TaskService.CancelTask".
inline grpc::ServerUnaryReactor* FinishNotServed(
    grpc::CallbackServerContext* context, absl::string_view method) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(NotServed(method));
  return reactor;
}

// These delete themselves when gRPC is done with them.
template <class Response>
class NotServedWrite : public grpc::ServerWriteReactor<Response> {
 public:
  explicit NotServedWrite(absl::string_view method) {
    this->Finish(NotServed(method));
  }
  void OnDone() override { delete this; }
};

template <class Request>
class NotServedRead : public grpc::ServerReadReactor<Request> {
 public:
  explicit NotServedRead(absl::string_view method) {
    this->Finish(NotServed(method));
  }
  void OnDone() override { delete this; }
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_RPC_NOT_SERVED_H_
