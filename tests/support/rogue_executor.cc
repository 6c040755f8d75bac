#include "tests/support/rogue_executor.h"

#include <stdexcept>
#include <utility>

#include "absl/time/clock.h"

namespace leasehold::e2e {

RogueExecutor::RogueExecutor(std::string executor_id, std::string address)
    : address_(std::move(address)), hello_(NewHello(executor_id, "q", "t")) {}

RogueExecutor& RogueExecutor::ServesQueue(const std::string& queue,
                                          const std::string& type) {
  hello_.mutable_subscriptions(0)->set_queue(queue);
  hello_.mutable_subscriptions(0)->set_types(0, type);
  return *this;
}

RogueExecutor& RogueExecutor::HasSlots(int slots) {
  hello_.set_slots(slots);
  hello_.set_max_leases(slots);
  return *this;
}

RogueExecutor& RogueExecutor::NeverReads() {
  reading_ = RawExecutor::Reading::kNever;
  return *this;
}

RogueExecutor& RogueExecutor::Restarts(const std::string& incarnation) {
  hello_.set_incarnation(incarnation);
  return *this;
}

RogueExecutor& RogueExecutor::OpensASession() {
  sessions_.push_back(std::make_unique<RawExecutor>(address_, reading_));
  return *this;
}

RogueExecutor& RogueExecutor::SaysHello() {
  OpensASession();
  session().SayHello(hello_);
  if (reading_ == RawExecutor::Reading::kNever) return *this;
  lease_duration_ =
      absl::Seconds(session().NextWelcome().lease_duration().seconds());
  return *this;
}

RogueExecutor& RogueExecutor::RepeatsHello() {
  session().SayHello(hello_);
  return *this;
}

RogueExecutor& RogueExecutor::BreaksOff() {
  sessions_.pop_back();
  return *this;
}

RogueExecutor& RogueExecutor::TakesALease() {
  return Claims(session().NextLease().lease());
}

RogueExecutor& RogueExecutor::Claims(const v1::LeaseRef& lease) {
  lease_ = lease;
  return *this;
}

RogueExecutor& RogueExecutor::ShiftsLeaseNumber(int64_t by) {
  lease_.set_lease_number(lease_.lease_number() + by);
  return *this;
}

// With room for the reaper's round.
RogueExecutor& RogueExecutor::OutlivesItsLease() {
  absl::SleepFor(lease_duration_ + absl::Seconds(2));
  return *this;
}

RogueExecutor& RogueExecutor::Heartbeats() {
  return HeartbeatsWithSequence(++sequence_);
}

RogueExecutor& RogueExecutor::HeartbeatsWithSequence(int64_t sequence) {
  v1::ExecutorMessage message;
  message.mutable_heartbeat()->set_sequence(sequence);
  if (lease_.lease_number() > 0)
    *message.mutable_heartbeat()->add_leases()->mutable_lease() = lease_;
  session().Send(message);
  return *this;
}

RogueExecutor& RogueExecutor::Reports(const std::string& data) {
  session().SendResult(lease_, data);
  return *this;
}

RogueExecutor& RogueExecutor::Fails(const v1::TaskError& error) {
  session().SendError(lease_, error);
  return *this;
}

RogueExecutor& RogueExecutor::Releases(v1::ReleaseReason reason) {
  v1::ExecutorMessage message;
  v1::LeaseRelease* release = message.mutable_released()->add_leases();
  *release->mutable_lease() = lease_;
  release->set_reason(reason);
  session().Send(message);
  return *this;
}

v1::ReportDisposition RogueExecutor::Answer() {
  return session().NextAck().disposition();
}

v1::HeartbeatAck RogueExecutor::HeartbeatAnswer() {
  return session()
      .Next([](const v1::SchedulerMessage& m) { return m.has_heartbeat_ack(); })
      .heartbeat_ack();
}

grpc::Status RogueExecutor::End() { return session().WaitForEnd(); }

grpc::Status RogueExecutor::EndOfSessionBefore() {
  if (sessions_.size() < 2) throw std::runtime_error("there was none before");
  return sessions_[sessions_.size() - 2]->WaitForEnd();
}

RawExecutor& RogueExecutor::session() {
  if (sessions_.empty()) throw std::runtime_error("no session is open");
  return *sessions_.back();
}

}  // namespace leasehold::e2e
