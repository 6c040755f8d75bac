// WaitTask: one answer, when the task has ended or time is up.
//
//            Start: watch the task, set the alarm
//                 |
//     terminal update ----------------> Reply(task)
//     alarm, some update seen --------> Reply(task as it stands)
//     alarm, nothing seen yet --------> wait kFirstReadGrace, then UNAVAILABLE
//     error, cancel, shutdown --------> Fail
//                 |
//              OnDone: unwatch
#ifndef SCHEDULER_RPC_WAIT_CALL_H_
#define SCHEDULER_RPC_WAIT_CALL_H_

#include <grpcpp/alarm.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>

#include "leasehold/v1/task.pb.h"
#include "scheduler/engine/task_watch_hub.h"
#include "scheduler/rpc/long_calls.h"
#include "scheduler/rpc/unary_call.h"

namespace leasehold::scheduler {

class WaitCall : public UnaryCall<v1::Task>, public LongCall {
 public:
  // The answer goes out this long before the call's own deadline, so that it
  // still arrives.
  static constexpr std::chrono::milliseconds kDeadlineMargin{150};
  static constexpr std::chrono::seconds kFirstReadGrace{5};

  static grpc::ServerUnaryReactor* Start(grpc::CallbackServerContext* context,
                                         v1::Task* response, TaskId id,
                                         int64_t timeout_us, TaskWatchHub* hub,
                                         LongCallRegistry* calls);

  void End(const absl::Status& status) override { Fail(status); }
  void OnDone() override;

 private:
  WaitCall(grpc::CallbackServerContext* context, v1::Task* response, TaskId id,
           TaskWatchHub* hub, LongCallRegistry* calls)
      : UnaryCall(context, response), id_(id), hub_(hub), calls_(calls) {}

  void OnUpdate(absl::StatusOr<TaskRecord> record);
  void SetAlarm(grpc::Alarm* alarm, std::chrono::system_clock::time_point at);
  void OnAlarm();

  const TaskId id_;
  TaskWatchHub* const hub_;
  LongCallRegistry* const calls_;
  std::weak_ptr<WaitCall> weak_;
  std::optional<TaskWatchHub::WatchId> watch_;
  grpc::Alarm alarm_;
  // Its own: an alarm must not be set from its own callback.
  grpc::Alarm grace_alarm_;

  std::mutex latest_mutex_;
  std::optional<v1::Task> latest_;
  bool time_is_up_ = false;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_RPC_WAIT_CALL_H_
