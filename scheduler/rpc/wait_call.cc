#include "scheduler/rpc/wait_call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/rpc/task_conversion.h"

namespace leasehold::scheduler {
namespace {

// What the hub reads.
constexpr ReadOptions kWatchedParts{/*payload=*/false, /*result=*/true,
                                    /*attempts=*/false};

}  // namespace

grpc::ServerUnaryReactor* WaitCall::Start(grpc::CallbackServerContext* context,
                                          v1::Task* response, TaskId id,
                                          int64_t timeout_us, TaskWatchHub* hub,
                                          LongCallRegistry* calls) {
  auto call = std::shared_ptr<WaitCall>(
      new WaitCall(context, response, id, hub, calls));
  call->OwnItself(call);
  const std::weak_ptr<WaitCall> weak = call->weak_ = call;
  if (absl::Status added = calls->Add(call.get(), weak); !added.ok()) {
    call->Fail(added);
    return call.get();
  }
  auto watch = hub->Watch(id, [weak](absl::StatusOr<TaskRecord> record) {
    if (const auto self = weak.lock()) self->OnUpdate(std::move(record));
  });
  if (!watch.ok()) {
    call->Fail(watch.status());
    return call.get();
  }
  call->watch_ = *watch;
  const auto by_timeout =
      std::chrono::system_clock::now() + std::chrono::microseconds(timeout_us);
  call->SetAlarm(&call->alarm_,
                 std::min(by_timeout, context->deadline() - kDeadlineMargin));
  return call.get();
}

void WaitCall::OnUpdate(absl::StatusOr<TaskRecord> record) {
  if (!record.ok()) return Fail(record.status());
  v1::Task task = ToProto(*record, kWatchedParts);
  {
    std::lock_guard<std::mutex> lock(latest_mutex_);
    if (!record->ended && !time_is_up_) {
      latest_ = std::move(task);
      return;
    }
  }
  Reply(std::move(task));
}

void WaitCall::SetAlarm(grpc::Alarm* alarm,
                        std::chrono::system_clock::time_point at) {
  alarm->Set(at, [weak = weak_](bool fired) {
    // Not fired: the call is over.
    const auto call = fired ? weak.lock() : nullptr;
    if (call) call->OnAlarm();
  });
}

void WaitCall::OnAlarm() {
  std::optional<v1::Task> latest;
  bool first = false;
  {
    std::lock_guard<std::mutex> lock(latest_mutex_);
    latest = std::move(latest_);
    first = !std::exchange(time_is_up_, true);
  }
  if (latest) {
    Reply(*std::move(latest));
  } else if (first) {
    SetAlarm(&grace_alarm_, std::chrono::system_clock::now() + kFirstReadGrace);
  } else {
    Fail(absl::UnavailableError(
        absl::StrCat("task ", id_, ": could not be read in time, try again")));
  }
}

void WaitCall::OnDone() {
  alarm_.Cancel();
  grace_alarm_.Cancel();
  if (watch_) hub_->Unwatch(*watch_);
  calls_->Remove(this);
  UnaryCall::OnDone();
}

}  // namespace leasehold::scheduler
