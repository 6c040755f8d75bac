// From the scheduler's errors to what a gRPC call ends with.
#ifndef SCHEDULER_RPC_GRPC_STATUS_H_
#define SCHEDULER_RPC_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace grpc {
class ServerContextBase;
}

namespace leasehold::scheduler {

// Same code; the text valid UTF-8 and short enough for the trailers, which hold
// 8 KiB with every odd byte written as three.
grpc::Status ToGrpc(const absl::Status& status);

// As ToGrpc. RESOURCE_EXHAUSTED also gets the grpc-retry-pushback-ms trailer,
// from which gRPC's own retries take their wait. Only while the call has not
// been finished.
grpc::Status ToGrpcWithPushback(const absl::Status& status,
                                grpc::ServerContextBase* context);

// For unary calls: as ToGrpcWithPushback, but ABORTED, which the database says
// of deadlocks, becomes UNAVAILABLE: nothing happened, and clients repeat that
// by themselves.
grpc::Status ToGrpcOfCall(const absl::Status& status,
                          grpc::ServerContextBase* context);

// For what this version does not serve yet.
grpc::Status NotServed(absl::string_view method);

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_RPC_GRPC_STATUS_H_
