#include "scheduler/rpc/executor_stream.h"

#include <utility>
#include <variant>
#include <vector>

#include "common/logging/log.h"
#include "common/logging/rate_limited_log.h"
#include "scheduler/rpc/grpc_status.h"
#include "scheduler/rpc/session_conversion.h"

namespace leasehold::scheduler {

ExecutorStream* ExecutorStream::Open(grpc::CallbackServerContext* context,
                                     SessionHost* sessions,
                                     LongCallRegistry* streams,
                                     size_t max_outbox_bytes) {
  auto stream = std::shared_ptr<ExecutorStream>(
      new ExecutorStream(context, streams, max_outbox_bytes));
  stream->self_ = stream;
  stream->weak_ = stream;
  if (absl::Status added = streams->Add(stream.get(), stream); !added.ok()) {
    stream->Close(added);
    return stream.get();
  }
  absl::StatusOr<std::shared_ptr<Session>> session =
      sessions->OpenSession(stream);
  if (!session.ok()) {
    stream->Close(session.status());
    return stream.get();
  }
  stream->session_ = *std::move(session);
  stream->ReadNext();
  return stream.get();
}

void ExecutorStream::Send(SchedulerMessage message) {
  std::vector<v1::SchedulerMessage> converted = ToProto(std::move(message));
  std::lock_guard<std::mutex> lock(mutex_);
  if (end_ || finished_) return;
  for (v1::SchedulerMessage& next : converted) {
    const size_t bytes = next.ByteSizeLong();
    // An empty outbox takes any message, so that a small bound cannot stop the
    // protocol.
    if (!outbox_.empty() && outbox_bytes_ + bytes > max_outbox_bytes_) {
      CutOff("outbox full, the executor does not read");
      return;
    }
    outbox_bytes_ += bytes;
    outbox_.push_back({std::move(next), bytes});
  }
  Pump();
}

void ExecutorStream::Close(absl::Status status) {
  std::lock_guard<std::mutex> lock(mutex_);
  EndWith(std::move(status));
}

void ExecutorStream::EndWith(absl::Status status) {
  if (end_) return;
  end_ = std::move(status);
  Pump();
  if (finished_) return;
  // What is still to be written needs a peer that reads.
  close_alarm_.Set(
      std::chrono::system_clock::now() + kCloseGrace,
      [weak = weak_](bool fired) {
        const auto self = fired ? weak.lock() : nullptr;
        if (self == nullptr) return;
        std::lock_guard<std::mutex> lock(self->mutex_);
        self->CutOff("the executor does not read its last messages");
      });
}

void ExecutorStream::CutOff(const char* why) {
  if (finished_ || cut_off_) return;
  cut_off_ = true;
  static RateLimitedLog log;
  log.Warning("session stream cut off",
              {{"peer", peer_}, {"why", why}, {"outbox_bytes", outbox_bytes_}});
  if (!end_) end_ = absl::ResourceExhaustedError(why);
  // OnCancel follows, and OnWriteDone for the write that is out. The context is
  // alive: Finish has not been called.
  context_->TryCancel();
}

bool ExecutorStream::DeliverIncoming() {
  const bool known =
      incoming_.message_case() != v1::ExecutorMessage::MESSAGE_NOT_SET;
  if (!known && !first_) {
    // What a newer executor says beyond this protocol is not worth its session.
    static RateLimitedLog log;
    log.Warning("unknown executor message ignored", {{"peer", peer_}});
    return true;
  }
  first_ = false;
  absl::StatusOr<ExecutorMessage> message =
      ReadExecutorMessage(&incoming_, peer_);
  if (!message.ok()) {
    Close(message.status());
    return false;
  }
  said_goodbye_ = std::holds_alternative<GoodbyeMessage>(*message);
  session_->OnMessage(*std::move(message));
  return true;
}

void ExecutorStream::ReadNext() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (end_ || finished_) return;
  // A fresh message: a large one would keep its memory while the stream idles.
  incoming_ = v1::ExecutorMessage();
  StartRead(&incoming_);
}

void ExecutorStream::OnReadsEnded() {
  if (said_goodbye_) return Close(absl::OkStatus());
  // gRPC tells a half-close from a message that it cannot parse as little as
  // from a connection that broke, in which case nobody hears this.
  if (!context_->IsCancelled()) {
    static RateLimitedLog log;
    log.Warning("session stream ended without goodbye", {{"peer", peer_}});
  }
  Close(absl::InvalidArgumentError(
      "message: not readable, or the end of the stream without goodbye, want "
      "ExecutorMessage with valid UTF-8 in every string"));
}

void ExecutorStream::OnReadDone(bool ok) {
  if (!ok) return OnReadsEnded();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (end_ || finished_) return;
  }
  if (DeliverIncoming()) ReadNext();
}

void ExecutorStream::OnWriteDone(bool ok) {
  std::lock_guard<std::mutex> lock(mutex_);
  write_is_out_ = false;
  if (!outbox_.empty()) {
    outbox_bytes_ -= outbox_.front().bytes;
    outbox_.pop_front();
  }
  if (!ok) {
    outbox_.clear();
    outbox_bytes_ = 0;
    if (!end_) end_ = absl::CancelledError("stream broke");
  }
  Pump();
}

void ExecutorStream::OnCancel() {
  std::lock_guard<std::mutex> lock(mutex_);
  // The message being written stays until OnWriteDone.
  while (outbox_.size() > (write_is_out_ ? 1u : 0u)) {
    outbox_bytes_ -= outbox_.back().bytes;
    outbox_.pop_back();
  }
  if (!end_) end_ = absl::CancelledError("stream broke");
  Pump();
}

void ExecutorStream::Pump() {
  if (finished_ || write_is_out_) return;
  if (!outbox_.empty()) {
    write_is_out_ = true;
    StartWrite(&outbox_.front().message);
  } else if (end_) {
    finished_ = true;
    Finish(ToGrpcWithPushback(*end_, context_));
  }
}

void ExecutorStream::OnDone() {
  close_alarm_.Cancel();
  streams_->Remove(this);
  if (session_ != nullptr) {
    session_->OnStreamEnded();
    session_.reset();  // The session holds this stream as its sink.
  }
  const std::shared_ptr<ExecutorStream> last = std::move(self_);
}

}  // namespace leasehold::scheduler
