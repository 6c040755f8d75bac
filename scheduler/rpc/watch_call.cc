#include "scheduler/rpc/watch_call.h"

#include <utility>

#include "scheduler/rpc/grpc_status.h"
#include "scheduler/rpc/task_conversion.h"

namespace leasehold::scheduler {
namespace {

// What the hub reads.
constexpr ReadOptions kWatchedParts{/*payload=*/false, /*result=*/true,
                                    /*attempts=*/false};

}  // namespace

grpc::ServerWriteReactor<v1::Task>* WatchCall::Start(
    grpc::CallbackServerContext* context, TaskId id, TaskWatchHub* hub,
    LongCallRegistry* calls) {
  auto call = std::shared_ptr<WatchCall>(new WatchCall(context, hub, calls));
  call->self_ = call;
  const std::weak_ptr<WatchCall> weak = call;
  if (absl::Status added = calls->Add(call.get(), weak); !added.ok()) {
    call->End(added);
    return call.get();
  }
  auto watch = hub->Watch(id, [weak](absl::StatusOr<TaskRecord> record) {
    if (const auto self = weak.lock()) self->OnUpdate(std::move(record));
  });
  if (watch.ok()) {
    call->watch_ = *watch;
  } else {
    call->End(watch.status());
  }
  return call.get();
}

grpc::ServerWriteReactor<v1::Task>* WatchCall::Refuse(
    grpc::CallbackServerContext* context, const absl::Status& status) {
  auto call =
      std::shared_ptr<WatchCall>(new WatchCall(context, nullptr, nullptr));
  call->self_ = call;
  call->End(status);
  return call.get();
}

void WatchCall::OnUpdate(absl::StatusOr<TaskRecord> record) {
  if (!record.ok()) return End(record.status());
  v1::Task task = ToProto(*record, kWatchedParts);
  std::lock_guard<std::mutex> lock(mutex_);
  if (end_) return;
  latest_ = std::move(task);
  if (record->ended) end_ = absl::OkStatus();
  Pump();
}

void WatchCall::End(const absl::Status& status) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!end_) end_ = status;
  Pump();
}

void WatchCall::OnWriteDone(bool ok) {
  std::lock_guard<std::mutex> lock(mutex_);
  write_is_out_ = false;
  if (!ok) {
    latest_.reset();
    if (!end_) end_ = absl::CancelledError("call is over");
  }
  Pump();
}

void WatchCall::OnCancel() {
  std::lock_guard<std::mutex> lock(mutex_);
  latest_.reset();
  if (!end_) end_ = absl::CancelledError("call is over");
  Pump();
}

void WatchCall::Pump() {
  if (finished_ || write_is_out_) return;
  if (latest_) {
    writing_ = *std::move(latest_);
    latest_.reset();
    write_is_out_ = true;
    StartWrite(&writing_);
  } else if (end_) {
    finished_ = true;
    Finish(ToGrpcWithPushback(*end_, context_));
  }
}

void WatchCall::OnDone() {
  if (watch_) hub_->Unwatch(*watch_);
  if (calls_ != nullptr) calls_->Remove(this);
  const std::shared_ptr<WatchCall> last = std::move(self_);
}

}  // namespace leasehold::scheduler
