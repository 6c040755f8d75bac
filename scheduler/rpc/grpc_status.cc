#include "scheduler/rpc/grpc_status.h"

#include <grpcpp/server_context.h>

#include <string>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "common/text/utf8.h"

namespace leasehold::scheduler {
namespace {

constexpr size_t kMaxTextBytes = 2048;

// Spread, so that the calls that were refused together do not return together.
int PushbackMillis() {
  thread_local absl::InsecureBitGen random;
  return absl::Uniform(random, 100, 400);
}

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(
      static_cast<grpc::StatusCode>(status.code()),
      TruncateUtf8(SanitizeUtf8(status.message()), kMaxTextBytes));
}

grpc::Status ToGrpcWithPushback(const absl::Status& status,
                                grpc::ServerContextBase* context) {
  if (absl::IsResourceExhausted(status)) {
    context->AddTrailingMetadata("grpc-retry-pushback-ms",
                                 absl::StrCat(PushbackMillis()));
  }
  return ToGrpc(status);
}

grpc::Status ToGrpcOfCall(const absl::Status& status,
                          grpc::ServerContextBase* context) {
  if (absl::IsAborted(status)) {
    return ToGrpc(absl::UnavailableError(status.message()));
  }
  return ToGrpcWithPushback(status, context);
}

grpc::Status NotServed(absl::string_view method) {
  return grpc::Status(
      grpc::StatusCode::UNIMPLEMENTED,
      absl::StrCat(method, ": not served by this version of Leasehold"));
}

}  // namespace leasehold::scheduler
