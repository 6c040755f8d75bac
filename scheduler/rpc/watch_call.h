// WatchTask: the task now, after every change, and a last time when it has
// ended.
//
//        hub: update            client gone, shutdown, error
//             |                            |
//             v                            v
//        latest_ = task               end_ = status
//             |                            |
//             +----------> Pump <----------+
//                           |
//        a write is out? ---+--- yes: nothing, OnWriteDone pumps again
//        latest_ set? ------+--- StartWrite(latest_)
//        end_ set? ---------+--- Finish(end_), once
//
// A client that reads slowly gets the latest task, not every one: at most two
// are held, the one being written and the one after it.
#ifndef SCHEDULER_RPC_WATCH_CALL_H_
#define SCHEDULER_RPC_WATCH_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <mutex>
#include <optional>

#include "leasehold/v1/task.pb.h"
#include "scheduler/engine/task_watch_hub.h"
#include "scheduler/rpc/long_calls.h"

namespace leasehold::scheduler {

// Owns itself from Start to OnDone.
class WatchCall : public grpc::ServerWriteReactor<v1::Task>, public LongCall {
 public:
  static grpc::ServerWriteReactor<v1::Task>* Start(
      grpc::CallbackServerContext* context, TaskId id, TaskWatchHub* hub,
      LongCallRegistry* calls);
  // Refuses a call that cannot begin.
  static grpc::ServerWriteReactor<v1::Task>* Refuse(
      grpc::CallbackServerContext* context, const absl::Status& status);

  void End(const absl::Status& status) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  WatchCall(grpc::CallbackServerContext* context, TaskWatchHub* hub,
            LongCallRegistry* calls)
      : context_(context), hub_(hub), calls_(calls) {}

  void OnUpdate(absl::StatusOr<TaskRecord> record);
  // The only caller of StartWrite and Finish; with mutex_ held.
  void Pump();

  grpc::CallbackServerContext* const context_;
  TaskWatchHub* const hub_;
  LongCallRegistry* const calls_;
  std::optional<TaskWatchHub::WatchId> watch_;
  std::shared_ptr<WatchCall> self_;

  std::mutex mutex_;
  std::optional<v1::Task> latest_;
  v1::Task writing_;
  bool write_is_out_ = false;
  std::optional<absl::Status> end_;
  bool finished_ = false;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_RPC_WATCH_CALL_H_
