// One unary call that is answered later, from another thread.
//
//   auto call = UnaryCall<v1::Task>::Start(context, response);
//   reader.GetTask(id, options, [call](auto record) { call->Reply(..); });
//   return call.get();
//
//              handler
//                 | Start
//                 v            Reply / Fail, once, any thread
//              waiting ------------------------------> finished --OnDone-->
//              freed
//                 |                                        ^
//                 +-- OnCancel (client gone, shutdown) ----+
//
// A client that goes away, or a server that shuts down, ends the call at once,
// whatever the engine is doing; the answer that comes later goes nowhere. So
// Server::Shutdown never waits for the database.
#ifndef SCHEDULER_RPC_UNARY_CALL_H_
#define SCHEDULER_RPC_UNARY_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "scheduler/rpc/grpc_status.h"

namespace leasehold::scheduler {

// Thread-safe. Owns itself from Start to OnDone; `response` and `context`
// belong to gRPC and are touched only while the call is not finished.
template <class Response>
class UnaryCall : public grpc::ServerUnaryReactor {
 public:
  static std::shared_ptr<UnaryCall> Start(grpc::CallbackServerContext* context,
                                          Response* response) {
    auto call = std::shared_ptr<UnaryCall>(new UnaryCall(context, response));
    call->self_ = call;
    return call;
  }

  void Reply(Response response) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (finished_) return;
    *response_ = std::move(response);
    finished_ = true;
    Finish(grpc::Status::OK);
  }

  void Fail(const absl::Status& status) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (finished_) return;
    finished_ = true;
    Finish(ToGrpcOfCall(status, context_));
  }

  void OnCancel() override { Fail(absl::CancelledError("call is over")); }

  void OnDone() override {
    // Last use of *this unless an answer is still on its way.
    const std::shared_ptr<UnaryCall> last = std::move(self_);
  }

 protected:
  UnaryCall(grpc::CallbackServerContext* context, Response* response)
      : context_(context), response_(response) {}
  // For derived calls, whose Start does the same.
  void OwnItself(std::shared_ptr<UnaryCall> self) { self_ = std::move(self); }

 private:
  grpc::CallbackServerContext* const context_;
  Response* const response_;
  std::shared_ptr<UnaryCall> self_;

  std::mutex mutex_;
  bool finished_ = false;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_RPC_UNARY_CALL_H_
