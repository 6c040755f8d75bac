#include "executor/sdk/session_stream.h"

#include <chrono>

#include "executor/sdk/limits.h"

namespace leasehold::executor {
namespace {

constexpr std::chrono::milliseconds kStatusWait(500);

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  // Notices a peer that is gone without a word, also while nothing is said.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Reconnecting is the session client's; a connection that another stream gave
  // up, with its own backoff, is not to be found again here.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetMaxReceiveMessageSize(kMaxReceivedMessageBytes);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(),
                                   arguments);
}

}  // namespace

SessionStream::SessionStream(const std::string& address, Listener* listener)
    : listener_(listener),
      channel_(OpenChannel(address)),
      stub_(v1::ExecutorService::NewStub(channel_)) {
  stub_->async()->OpenSession(&context_, this);
  // Writes come from outside of reactions: gRPC holds OnDone back until Finish.
  AddHold();
  StartRead(&incoming_);
  StartCall();
}

SessionStream::~SessionStream() {
  if (!finished_) Finish();
}

void SessionStream::Write(const v1::ExecutorMessage& message) {
  StartWrite(&message);
}

void SessionStream::HalfClose() { StartWritesDone(); }

void SessionStream::Cancel() { context_.TryCancel(); }

grpc::Status SessionStream::Finish() {
  finished_ = true;
  RemoveHold();
  std::unique_lock<std::mutex> lock(mutex_);
  // The status may be a moment behind the end of the messages, and a cancel
  // would hide it.
  if (!done_changed_.wait_for(lock, kStatusWait, [&] { return done_; })) {
    lock.unlock();
    context_.TryCancel();
    lock.lock();
    done_changed_.wait(lock, [&] { return done_; });
  }
  return status_;
}

void SessionStream::OnReadDone(bool ok) {
  if (!ok) {
    listener_->OnEnded();
    return;
  }
  listener_->OnMessage(&incoming_);
  StartRead(&incoming_);
}

void SessionStream::OnWriteDone(bool /*ok*/) { listener_->OnWritten(); }

void SessionStream::OnDone(const grpc::Status& status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  done_ = true;
  status_ = status;
  done_changed_.notify_all();
}

}  // namespace leasehold::executor
