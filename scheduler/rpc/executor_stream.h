// One OpenSession stream: bytes in and out of a Session, whose rules are in
// scheduler/session.
//
//      gRPC                     ExecutorStream                      Session
//
//   OnReadDone(ok) ------> ReadExecutorMessage ----------------> OnMessage
//        ^                      | not valid: Close(INVALID_ARGUMENT)
//        +---- StartRead <------+
//
//                          outbox_ += messages <---------------- Send
//                          end_ = status <---------------------- Close
//   OnWriteDone(ok) --+         |
//   OnReadDone(!ok)   |         v
//   OnCancel ---------+------> Pump, with mutex_ held, alone calls:
//                               a write is out -> nothing; OnWriteDone comes
//                               outbox_ not empty -> StartWrite(front)
//                               end_ set -> Finish(end_), once
//   OnDone ------------------------------------------------------>
//   OnStreamEnded
//
// The session is never called with mutex_ held; it may call Send and Close with
// locks of its own. A stream that has ended is a stub to whoever still holds
// it.
//
// Bounds: the outbox in bytes. A peer that reads too slowly is cut off, and so
// is one that does not read the end of its stream within kCloseGrace.
#ifndef SCHEDULER_RPC_EXECUTOR_STREAM_H_
#define SCHEDULER_RPC_EXECUTOR_STREAM_H_

#include <grpcpp/alarm.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "leasehold/v1/executor_service.pb.h"
#include "scheduler/rpc/long_calls.h"
#include "scheduler/session/session.h"

namespace leasehold::scheduler {

// Owns itself from Open to OnDone.
class ExecutorStream
    : public grpc::ServerBidiReactor<v1::ExecutorMessage, v1::SchedulerMessage>,
      public SessionSink,
      public LongCall {
 public:
  static constexpr std::chrono::seconds kCloseGrace{5};

  static ExecutorStream* Open(grpc::CallbackServerContext* context,
                              SessionHost* sessions, LongCallRegistry* streams,
                              size_t max_outbox_bytes);

  // SessionSink
  void Send(SchedulerMessage message) override;
  void Close(absl::Status status) override;

  // LongCall
  void End(const absl::Status& status) override { Close(status); }

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  struct Outgoing {
    v1::SchedulerMessage message;
    size_t bytes = 0;
  };

  ExecutorStream(grpc::CallbackServerContext* context,
                 LongCallRegistry* streams, size_t max_outbox_bytes)
      : context_(context),
        streams_(streams),
        max_outbox_bytes_(max_outbox_bytes),
        peer_(context->peer()) {}

  // Hands `incoming_` to the session. False when the stream ends.
  bool DeliverIncoming();
  void ReadNext();
  void OnReadsEnded();
  // All three with mutex_ held.
  void Pump();
  void EndWith(absl::Status status);
  void CutOff(const char* why);

  grpc::CallbackServerContext* const context_;
  LongCallRegistry* const streams_;
  const size_t max_outbox_bytes_;
  const std::string peer_;
  std::shared_ptr<ExecutorStream> self_;
  std::weak_ptr<ExecutorStream> weak_;
  // Set before the first read and only used by reactions.
  std::shared_ptr<Session> session_;
  v1::ExecutorMessage incoming_;
  bool first_ = true;
  bool said_goodbye_ = false;

  std::mutex mutex_;
  std::deque<Outgoing> outbox_;  // The front is the one being written, if any.
  size_t outbox_bytes_ = 0;
  bool write_is_out_ = false;
  std::optional<absl::Status> end_;
  bool cut_off_ = false;
  bool finished_ = false;
  grpc::Alarm close_alarm_;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_RPC_EXECUTOR_STREAM_H_
