#include "tests/support/raw_executor.h"

#include <chrono>
#include <stdexcept>
#include <utility>

#include "absl/time/clock.h"

namespace leasehold::e2e {

using leasehold::v1::ExecutorMessage;
using leasehold::v1::ExecutorService;
using leasehold::v1::Hello;
using leasehold::v1::Lease;
using leasehold::v1::LeaseRef;
using leasehold::v1::ReportAck;
using leasehold::v1::SchedulerMessage;
using leasehold::v1::TaskError;
using leasehold::v1::Welcome;

Hello NewHello(const std::string& executor_id, const std::string& queue,
               const std::string& type, int slots) {
  Hello hello;
  hello.set_executor_id(executor_id);
  hello.set_incarnation(executor_id + "-1");
  hello.set_slots(slots);
  hello.set_max_leases(slots);
  leasehold::v1::Subscription* subscription = hello.add_subscriptions();
  subscription->set_queue(queue);
  subscription->add_types(type);
  return hello;
}

RawExecutor::RawExecutor(const std::string& address, Reading reading) {
  // A connection of its own, as different executors have.
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(16 << 20);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  stub_ = ExecutorService::NewStub(grpc::CreateCustomChannel(
      address, grpc::InsecureChannelCredentials(), arguments));
  stream_ = stub_->OpenSession(&context_);
  if (reading == Reading::kAlways) reader_ = std::thread([this] { Read(); });
}

RawExecutor::~RawExecutor() {
  if (!finished_) context_.TryCancel();
  if (reader_.joinable()) reader_.join();
  if (!finished_) stream_->Finish();
}

void RawExecutor::Read() {
  SchedulerMessage message;
  while (stream_->Read(&message)) {
    const std::lock_guard<std::mutex> lock(mutex_);
    received_.push_back(std::move(message));
    changed_.notify_all();
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

bool RawExecutor::Send(const ExecutorMessage& message) {
  return stream_->Write(message);
}

bool RawExecutor::SayHello(const Hello& hello) {
  ExecutorMessage message;
  *message.mutable_hello() = hello;
  return Send(message);
}

bool RawExecutor::SendHeartbeat(const std::vector<LeaseRef>& leases,
                                bool started) {
  ExecutorMessage message;
  message.mutable_heartbeat()->set_sequence(++heartbeat_sequence_);
  for (const LeaseRef& lease : leases) {
    leasehold::v1::LeaseStatus* status =
        message.mutable_heartbeat()->add_leases();
    *status->mutable_lease() = lease;
    status->set_started(started);
  }
  return Send(message);
}

bool RawExecutor::SendResult(const LeaseRef& lease, const std::string& data) {
  ExecutorMessage message;
  leasehold::v1::TaskResult* result = message.mutable_results()->add_results();
  *result->mutable_lease() = lease;
  result->mutable_result()->set_data(data);
  return Send(message);
}

bool RawExecutor::SendError(const LeaseRef& lease, const TaskError& error) {
  ExecutorMessage message;
  leasehold::v1::TaskResult* result = message.mutable_results()->add_results();
  *result->mutable_lease() = lease;
  *result->mutable_error() = error;
  return Send(message);
}

SchedulerMessage RawExecutor::Next(
    const std::function<bool(const SchedulerMessage&)>& wanted,
    absl::Duration timeout) {
  const auto deadline =
      std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(timeout);
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    while (!received_.empty()) {
      SchedulerMessage message = std::move(received_.front());
      received_.pop_front();
      if (wanted(message)) return message;
    }
    if (ended_)
      throw std::runtime_error("the stream ended before the message came");
    if (changed_.wait_until(lock, deadline) == std::cv_status::timeout &&
        received_.empty()) {
      throw std::runtime_error("the message did not come in time");
    }
  }
}

Welcome RawExecutor::NextWelcome() {
  return Next([](const SchedulerMessage& m) { return m.has_welcome(); })
      .welcome();
}

Lease RawExecutor::NextLease(absl::Duration timeout) {
  if (leases_.empty()) {
    const SchedulerMessage message = Next(
        [](const SchedulerMessage& m) {
          return m.has_leases() && m.leases().leases_size() > 0;
        },
        timeout);
    leases_.assign(message.leases().leases().begin(),
                   message.leases().leases().end());
  }
  Lease lease = std::move(leases_.front());
  leases_.pop_front();
  return lease;
}

ReportAck RawExecutor::NextAck() {
  return Next([](const SchedulerMessage& m) {
           return m.has_report_acks() && m.report_acks().acks_size() > 0;
         })
      .report_acks()
      .acks(0);
}

bool RawExecutor::GetsLease(absl::Duration timeout) {
  try {
    leases_.push_front(NextLease(timeout));
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

grpc::Status RawExecutor::WaitForEnd() {
  if (reader_.joinable()) {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto deadline =
        std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(kPatience);
    if (!changed_.wait_until(lock, deadline, [this] { return ended_; }))
      context_.TryCancel();
    lock.unlock();
    reader_.join();
  }
  finished_ = true;
  return stream_->Finish();
}

}  // namespace leasehold::e2e
