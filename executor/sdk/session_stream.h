// One gRPC stream to one scheduler.
//
// gRPC's reactions only pass on what arrives; the owner writes, one message at
// a time, and ends the stream.
//
//   SessionStream stream("127.0.0.1:7070", &listener);
//   stream.Write(hello);             // then after each OnWritten
//   ...                              // until OnEnded, or Cancel()
//   grpc::Status status = stream.Finish();
#ifndef EXECUTOR_SDK_SESSION_STREAM_H_
#define EXECUTOR_SDK_SESSION_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "leasehold/v1/executor_service.grpc.pb.h"

namespace leasehold::executor {

class SessionStream : private grpc::ClientBidiReactor<v1::ExecutorMessage,
                                                      v1::SchedulerMessage> {
 public:
  // Called by gRPC's threads; must not block.
  class Listener {
   public:
    virtual ~Listener() = default;
    // May move out of `message`.
    virtual void OnMessage(v1::SchedulerMessage* message) = 0;
    // The message of the last Write may be reused.
    virtual void OnWritten() = 0;
    // Nothing more will arrive; Finish tells why.
    virtual void OnEnded() = 0;
  };

  // Opens the stream. `listener` outlives it.
  SessionStream(const std::string& address, Listener* listener);
  ~SessionStream() override;
  SessionStream(const SessionStream&) = delete;
  SessionStream& operator=(const SessionStream&) = delete;

  // `message` stays untouched until OnWritten. Also OnWritten comes when the
  // stream is broken.
  void Write(const v1::ExecutorMessage& message);
  // No Write after this.
  void HalfClose();
  // Breaks the stream off. Thread-safe.
  void Cancel();
  // After OnEnded or Cancel: waits for the last reaction and returns how the
  // stream ended. Once.
  grpc::Status Finish();

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  Listener* const listener_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::ExecutorService::Stub> stub_;
  grpc::ClientContext context_;
  v1::SchedulerMessage incoming_;
  bool finished_ = false;

  std::mutex mutex_;
  std::condition_variable done_changed_;
  bool done_ = false;
  grpc::Status status_;
};

}  // namespace leasehold::executor

#endif  // EXECUTOR_SDK_SESSION_STREAM_H_
