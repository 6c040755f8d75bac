#include "scheduler/session/executor_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/logging/log.h"

namespace leasehold::scheduler {
namespace {

// Started leases are written this long after, so that short tasks never are;
// the contract allows a second.
constexpr int64_t kLazyWriteUs = 500 * kMicrosPerMilli;
// An executor that rejects gets nothing more for this long.
constexpr int64_t kAfterRejectionUs = kMicrosPerSecond;
// Of leases that another session sent. The row has its own since its start;
// this is for the rare one whose start was never written.
constexpr int64_t kUnknownAttemptTimeoutUs = kMaxAttemptTimeoutUs;
constexpr size_t kMaxEarlyMessages = 1'000;

const char* NameOf(const ExecutorMessage& message) {
  static constexpr const char* kNames[] = {
      "hello",  "accepted", "started", "heartbeat", "results or released",
      "goodbye"};
  return kNames[message.index()];
}

bool IsRelease(const LeaseOutcome& outcome, ReleaseReason reason) {
  const auto* release = std::get_if<Release>(&outcome.outcome);
  return release != nullptr && release->reason == reason;
}

}  // namespace

ExecutorSession::ExecutorSession(std::string session_id,
                                 SessionServices& services,
                                 std::shared_ptr<SessionSink> sink)
    : session_id_(std::move(session_id)),
      services_(services),
      sink_(std::move(sink)) {}

void ExecutorSession::OnMessage(ExecutorMessage message) {
  {
    std::unique_lock lock(mutex_);
    last_heard_us_ = services_.clock.NowUs();
    auto* hello = std::get_if<HelloMessage>(&message);
    switch (state_) {
      case State::kClosed:
        return;
      case State::kWaitingForHello:
        if (hello != nullptr) {
          hello_ = std::move(*hello);
          state_ = State::kOpening;
          lock.unlock();
          return services_.open(shared_from_this());
        }
        lock.unlock();
        return Close(absl::InvalidArgumentError(absl::StrCat(
            NameOf(message), ": the first message must be hello")));
      case State::kOpening:
      case State::kReady:
        if (hello != nullptr) {
          lock.unlock();
          return Close(absl::InvalidArgumentError(
              "hello: sent twice, want it exactly once"));
        }
        if (state_ == State::kReady) break;
        if (early_.size() < kMaxEarlyMessages) {
          early_.push_back(std::move(message));
          return;
        }
        lock.unlock();
        return Close(absl::ResourceExhaustedError(absl::StrCat(
            "more than ", kMaxEarlyMessages, " messages before welcome")));
    }
  }
  Dispatch(std::move(message));
}

void ExecutorSession::SetIdentity(HolderId holder, std::vector<LaneId> lanes) {
  holder_ = holder;
  lanes_ = std::move(lanes);
}

bool ExecutorSession::Open(std::vector<ReportAck> held) {
  {
    std::lock_guard lock(mutex_);
    if (state_ != State::kOpening) return false;
    const int64_t lease_us =
        absl::ToInt64Microseconds(services_.times.lease_duration);
    const int64_t now_us = services_.clock.NowUs();
    for (const ReportAck& ack : held) {
      if (ack.disposition == ReportDisposition::kRecorded) {
        held_.Add(ack.lease, lease_us, kUnknownAttemptTimeoutUs, now_us);
      }
    }
  }
  sink_->Send(WelcomeMessage{
      .session_id = session_id_,
      .heartbeat_interval_us =
          absl::ToInt64Microseconds(services_.times.heartbeat_interval),
      .lease_duration_us =
          absl::ToInt64Microseconds(services_.times.lease_duration),
      .accept_timeout_us =
          absl::ToInt64Microseconds(services_.times.accept_timeout),
      .held_leases = std::move(held)});
  // Messages that came early go first, then the session is open to new ones.
  // The transport hands messages in one at a time, but on another thread.
  while (true) {
    std::vector<ExecutorMessage> early;
    {
      std::lock_guard lock(mutex_);
      if (state_ != State::kOpening) return false;
      early = std::exchange(early_, {});
      if (early.empty()) {
        state_ = State::kReady;
        return true;
      }
    }
    for (ExecutorMessage& message : early) Dispatch(std::move(message));
  }
}

void ExecutorSession::Dispatch(ExecutorMessage message) {
  if (auto* outcomes = std::get_if<OutcomesMessage>(&message)) {
    OnOutcomes(std::move(*outcomes));
  } else if (auto* heartbeat = std::get_if<HeartbeatMessage>(&message)) {
    OnHeartbeat(std::move(*heartbeat));
  } else if (const auto* accepted = std::get_if<AcceptedMessage>(&message)) {
    OnAccepted(*accepted);
  } else if (const auto* started = std::get_if<StartedMessage>(&message)) {
    OnStarted(*started);
  } else if (std::holds_alternative<GoodbyeMessage>(message)) {
    OnGoodbye();
  }
}

void ExecutorSession::OnAccepted(const AcceptedMessage& message) {
  const int64_t now_us = services_.clock.NowUs();
  bool recovered;
  {
    std::lock_guard lock(mutex_);
    for (const LeaseRef& lease : message.leases) held_.Accept(lease, now_us);
    recovered = std::exchange(unhealthy_until_us_, 0) > now_us;
  }
  if (recovered) services_.wake_dispatcher();
}

void ExecutorSession::OnStarted(const StartedMessage& message) {
  const int64_t now_us = services_.clock.NowUs();
  bool recovered;
  {
    std::lock_guard lock(mutex_);
    for (const LeaseRef& lease : message.leases) {
      held_.Accept(lease, now_us);
      held_.Start(lease, now_us);
    }
    recovered = std::exchange(unhealthy_until_us_, 0) > now_us;
  }
  if (recovered) services_.wake_dispatcher();
}

void ExecutorSession::OnHeartbeat(HeartbeatMessage message) {
  const int64_t now_us = services_.clock.NowUs();
  std::vector<LeaseUpdate> updates;
  std::vector<LeaseRef> unknown;
  bool nothing_held;
  bool accepted = false;
  {
    std::lock_guard lock(mutex_);
    heartbeat_sequence_ = std::max(heartbeat_sequence_, message.sequence);
    for (LeaseStatus& status : message.leases) {
      // A lease that this session has not sent may still be the executor's: the
      // database knows.
      const bool known = held_.Contains(status.lease);
      accepted |= known && !held_.Accepted(status.lease);
      if (!known) {
        held_.Add(status.lease,
                  absl::ToInt64Microseconds(services_.times.lease_duration),
                  kUnknownAttemptTimeoutUs, now_us);
      }
      held_.Accept(status.lease, now_us);
      if (status.started) held_.Start(status.lease, now_us);
      held_.Name(status.lease, now_us);
      if (status.progress.has_value() || status.checkpoint.has_value()) {
        updates.push_back({.lease = status.lease,
                           .holder = holder_,
                           .progress = std::move(status.progress),
                           .checkpoint = std::move(status.checkpoint)});
      }
    }
    nothing_held = message.leases.empty();
    if (!nothing_held) unacknowledged_ = message.sequence;
    if (accepted) unhealthy_until_us_ = 0;
    for (const LeaseRef& lease : held_.DropUnheard(now_us)) {
      BecomeUnhealthy(lease, now_us);
    }
  }
  if (!updates.empty()) services_.updates.Write(std::move(updates));
  if (nothing_held) return SendHeartbeatAck(message.sequence, {}, {});
  services_.renewer.Renew(shared_from_this());
}

std::vector<Renewal> ExecutorSession::TakeRenewals() {
  const int64_t now_us = services_.clock.NowUs();
  std::lock_guard lock(mutex_);
  renewing_ = std::exchange(unacknowledged_, std::nullopt);
  if (state_ != State::kReady && state_ != State::kOpening) return {};
  return held_.Take(holder_, now_us, kLazyWriteUs);
}

void ExecutorSession::OnRenewed(
    absl::Span<const Renewal> renewals,
    const absl::StatusOr<std::vector<RenewOutcome>>& outcomes) {
  std::vector<LeaseRef> lost;
  std::vector<LeaseRef> cancelled;
  std::optional<int64_t> sequence;
  {
    std::lock_guard lock(mutex_);
    sequence = std::exchange(renewing_, std::nullopt);
    for (size_t i = 0; i < renewals.size(); ++i) {
      if (!outcomes.ok()) {
        held_.NotWritten(renewals[i]);
      } else if ((*outcomes)[i] == RenewOutcome::kLost) {
        // Unless its report is under way, which the executor knows best.
        if (held_.Remove(renewals[i].lease)) lost.push_back(renewals[i].lease);
      } else if ((*outcomes)[i] == RenewOutcome::kCancelRequested) {
        cancelled.push_back(renewals[i].lease);
      }
    }
  }
  if (!outcomes.ok()) return;  // Nothing was renewed: no acknowledgement.
  if (sequence.has_value()) {
    SendHeartbeatAck(*sequence, std::move(lost), std::move(cancelled));
  } else if (!cancelled.empty()) {
    sink_->Send(
        CancelLeasesMessage{.leases = std::move(cancelled), .reason = ""});
  }
}

void ExecutorSession::SendHeartbeatAck(int64_t sequence,
                                       std::vector<LeaseRef> lost,
                                       std::vector<LeaseRef> cancelled) {
  sink_->Send(HeartbeatAckMessage{.sequence = sequence,
                                  .lost = std::move(lost),
                                  .cancelled = std::move(cancelled)});
}

void ExecutorSession::OnOutcomes(OutcomesMessage message) {
  const int64_t now_us = services_.clock.NowUs();
  std::vector<Report> reports;
  reports.reserve(message.outcomes.size());
  {
    std::lock_guard lock(mutex_);
    for (LeaseOutcome& outcome : message.outcomes) {
      if (IsRelease(outcome, ReleaseReason::kDraining)) draining_ = true;
      if (IsRelease(outcome, ReleaseReason::kRejected)) {
        rejected_until_us_ = now_us + kAfterRejectionUs;
      }
      Report report;
      report.lease = outcome.lease;
      report.holder = holder_;
      report.start_us = held_.StartUs(outcome.lease);
      report.outcome = std::move(outcome.outcome);
      report.refused = outcome.refused;
      report.checkpoint = std::move(outcome.checkpoint);
      reports.push_back(std::move(report));
      held_.Remove(outcome.lease);
    }
  }
  services_.finisher.Report(std::move(reports), shared_from_this());
  services_.wake_dispatcher();
}

void ExecutorSession::OnReportsDecided(std::vector<DecidedReport> decided) {
  ReportAcksMessage message;
  message.acks.reserve(decided.size());
  {
    std::lock_guard lock(mutex_);
    for (const DecidedReport& report : decided) {
      message.acks.push_back({report.lease, report.disposition});
      // A heartbeat that came with the report under way has named it again.
      if (report.disposition != ReportDisposition::kTryAgain) {
        held_.Remove(report.lease);
      }
    }
  }
  sink_->Send(std::move(message));
}

void ExecutorSession::OnGoodbye() {
  LogInfo("executor left",
          {{"executor", executor_id()}, {"session", session_id_}});
  Close(absl::OkStatus());
}

DispatchTarget::Room ExecutorSession::GetRoom() const {
  const int64_t now_us = services_.clock.NowUs();
  std::lock_guard lock(mutex_);
  return RoomAt(now_us);
}

DispatchTarget::Room ExecutorSession::RoomAt(int64_t now_us) const {
  if (state_ != State::kReady || draining_ || now_us < unhealthy_until_us_ ||
      now_us < rejected_until_us_) {
    return {};
  }
  const int held = static_cast<int>(held_.size()) + reserved_;
  return {.free_leases = hello_.max_leases - held,
          .free_slots = hello_.slots - held,
          .heartbeat_sequence = heartbeat_sequence_};
}

int ExecutorSession::Reserve(int leases) {
  const int64_t now_us = services_.clock.NowUs();
  std::lock_guard lock(mutex_);
  const int got = std::clamp(RoomAt(now_us).free_leases, 0, leases);
  reserved_ += got;
  return got;
}

void ExecutorSession::Unreserve(int leases) {
  {
    std::lock_guard lock(mutex_);
    reserved_ -= leases;
  }
  services_.wake_dispatcher();
}

bool ExecutorSession::Deliver(std::vector<LeaseMessage> leases,
                              int64_t heartbeat_sequence) {
  const int64_t now_us = services_.clock.NowUs();
  {
    std::lock_guard lock(mutex_);
    reserved_ -= static_cast<int>(leases.size());
    if (state_ != State::kReady) return false;
    for (const LeaseMessage& lease : leases) {
      held_.Add(lease.lease, lease.lease_duration_us, lease.attempt_timeout_us,
                now_us);
    }
  }
  sink_->Send(LeasesMessage{.leases = std::move(leases),
                            .heartbeat_sequence = heartbeat_sequence});
  return true;
}

void ExecutorSession::OnLeaseTaken(const LeaseRef& lease,
                                   bool accepted_in_time) {
  const int64_t now_us = services_.clock.NowUs();
  std::lock_guard lock(mutex_);
  // What has been accepted may wait for its start as long as it likes.
  const bool accepted = accepted_in_time || held_.Accepted(lease);
  if (!held_.Remove(lease) || accepted) return;
  BecomeUnhealthy(lease, now_us);
}

void ExecutorSession::BecomeUnhealthy(const LeaseRef& lease, int64_t now_us) {
  if (now_us >= unhealthy_until_us_) {
    LogWarning("executor unhealthy, it did not accept a lease in time",
               {{"executor", executor_id()}, {"task", lease.task_id}});
  }
  unhealthy_until_us_ =
      now_us + absl::ToInt64Microseconds(services_.times.lease_duration);
}

void ExecutorSession::OnCancelRequested(const LeaseRef& lease) {
  {
    std::lock_guard lock(mutex_);
    if (state_ != State::kReady || !held_.Contains(lease)) return;
  }
  sink_->Send(CancelLeasesMessage{.leases = {lease}, .reason = ""});
}

void ExecutorSession::Close(const absl::Status& status) {
  {
    std::lock_guard lock(mutex_);
    if (state_ == State::kClosed) return;
    state_ = State::kClosed;
    early_.clear();
  }
  sink_->Close(status);
  services_.ended(shared_from_this());
}

void ExecutorSession::OnStreamEnded() {
  {
    std::lock_guard lock(mutex_);
    if (state_ == State::kClosed) return;
    state_ = State::kClosed;
    early_.clear();
  }
  services_.ended(shared_from_this());
}

void ExecutorSession::SendDrain(bool reconnect) {
  {
    std::lock_guard lock(mutex_);
    draining_ = true;
    if (state_ != State::kReady) return;
  }
  sink_->Send(DrainMessage{.reconnect = reconnect});
}

bool ExecutorSession::ready() const {
  std::lock_guard lock(mutex_);
  return state_ == State::kReady;
}

int ExecutorSession::held_leases() const {
  std::lock_guard lock(mutex_);
  return static_cast<int>(held_.size());
}

int64_t ExecutorSession::last_heard_us() const {
  std::lock_guard lock(mutex_);
  return last_heard_us_;
}

}  // namespace leasehold::scheduler
