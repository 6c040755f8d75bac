#include "tests/executor/fake_scheduler.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

namespace leasehold::executor {
namespace {

constexpr std::chrono::seconds kPatience(10);

}  // namespace

FakeScheduler::FakeScheduler() {
  welcome_.mutable_heartbeat_interval()->set_nanos(50'000'000);
  welcome_.mutable_lease_duration()->set_seconds(15);
  welcome_.mutable_accept_timeout()->set_seconds(10);
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port_);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
}

FakeScheduler::~FakeScheduler() {
  server_->Shutdown(std::chrono::system_clock::now());
}

std::string FakeScheduler::address() const {
  return absl::StrCat("127.0.0.1:", port_);
}

void FakeScheduler::SetWelcome(v1::Welcome welcome) {
  const std::lock_guard<std::mutex> lock(mutex_);
  welcome_ = std::move(welcome);
}

void FakeScheduler::RefuseWith(grpc::Status status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  refusal_ = std::move(status);
  if (refusal_->ok()) refusal_.reset();
}

void FakeScheduler::SetAcknowledgesHeartbeats(bool acknowledges) {
  const std::lock_guard<std::mutex> lock(mutex_);
  acknowledges_heartbeats_ = acknowledges;
}

bool FakeScheduler::WaitForSession(int n) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(
      lock, kPatience, [&] { return sessions_ >= n && stream_ != nullptr; });
}

void FakeScheduler::Send(const v1::SchedulerMessage& message) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stream_ != nullptr) stream_->Write(message);
}

void FakeScheduler::SendLease(const std::string& task_id, int64_t lease_number,
                              const std::string& type,
                              const std::string& json) {
  v1::SchedulerMessage message;
  v1::Lease* lease = message.mutable_leases()->add_leases();
  lease->mutable_lease()->set_task_id(task_id);
  lease->mutable_lease()->set_lease_number(lease_number);
  lease->set_queue("q");
  lease->set_type(type);
  lease->set_attempt(1);
  lease->set_max_attempts(4);
  lease->mutable_payload()->set_json(json);
  lease->mutable_lease_duration()->set_seconds(15);
  Send(message);
}

void FakeScheduler::Acknowledge(const v1::LeaseRef& lease,
                                v1::ReportDisposition disposition) {
  v1::SchedulerMessage message;
  v1::ReportAck* ack = message.mutable_report_acks()->add_acks();
  *ack->mutable_lease() = lease;
  ack->set_disposition(disposition);
  Send(message);
}

void FakeScheduler::End(grpc::Status status) {
  std::unique_lock<std::mutex> lock(mutex_);
  end_ = std::move(status);
  changed_.wait_for(lock, kPatience, [&] { return !end_.has_value(); });
}

std::optional<v1::ExecutorMessage> FakeScheduler::WaitFor(
    const std::function<bool(const v1::ExecutorMessage&)>& condition) {
  std::unique_lock<std::mutex> lock(mutex_);
  std::optional<v1::ExecutorMessage> found;
  size_t seen = 0;
  changed_.wait_for(lock, kPatience, [&] {
    for (; seen < received_.size() && !found.has_value(); ++seen) {
      if (condition(received_[seen])) found = received_[seen];
    }
    return found.has_value();
  });
  return found;
}

std::optional<v1::TaskResult> FakeScheduler::WaitForResult(
    const std::string& task_id, int nth) {
  std::optional<v1::TaskResult> result;
  WaitFor([&](const v1::ExecutorMessage& message) {
    for (const v1::TaskResult& entry : message.results().results()) {
      if (entry.lease().task_id() == task_id && --nth == 0) result = entry;
    }
    return result.has_value();
  });
  return result;
}

std::vector<v1::ExecutorMessage> FakeScheduler::received() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return received_;
}

bool FakeScheduler::Greet(Stream* stream, grpc::Status* refusal) {
  v1::ExecutorMessage hello;
  if (!stream->Read(&hello)) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  received_.push_back(std::move(hello));
  changed_.notify_all();
  if (refusal_.has_value()) {
    *refusal = *refusal_;
    return false;
  }
  v1::SchedulerMessage message;
  *message.mutable_welcome() = welcome_;
  stream->Write(message);
  stream_ = stream;
  ++sessions_;
  changed_.notify_all();
  return true;
}

grpc::Status FakeScheduler::OpenSession(grpc::ServerContext* /*context*/,
                                        Stream* stream) {
  grpc::Status refusal;
  if (!Greet(stream, &refusal)) return refusal;
  v1::ExecutorMessage message;
  while (stream->Read(&message)) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (message.has_heartbeat() && acknowledges_heartbeats_) {
      v1::SchedulerMessage ack;
      ack.mutable_heartbeat_ack()->set_sequence(message.heartbeat().sequence());
      stream->Write(ack);
    }
    received_.push_back(message);
    changed_.notify_all();
    // Heartbeats come all the time, so this is soon.
    if (end_.has_value()) break;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  stream_ = nullptr;
  const grpc::Status status = end_.value_or(grpc::Status::OK);
  end_.reset();
  changed_.notify_all();
  return status;
}

}  // namespace leasehold::executor
