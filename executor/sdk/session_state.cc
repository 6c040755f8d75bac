#include "executor/sdk/session_state.h"

#include <algorithm>
#include <utility>

#include "common/logging/log.h"
#include "executor/sdk/outcome_report.h"

namespace leasehold::executor {
namespace {

// Tasks that end sooner need neither Accepted nor Started: their report says it
// all. Results never wait.
constexpr absl::Duration kAnnounceDelay = absl::Milliseconds(20);
// Progress shows up within this, without a heartbeat for each change.
constexpr absl::Duration kProgressInterval = absl::Seconds(1);
constexpr size_t kMaxCheckpointBytesPerHeartbeat = 2 << 20;
// A third of the lease, so that two lost heartbeats leave time for a third.
constexpr int kHeartbeatsPerLease = 3;

SteadyTime After(SteadyTime start, absl::Duration duration) {
  return start + absl::ToChronoNanoseconds(duration);
}

bool IsStillOurs(v1::ReportDisposition disposition) {
  return disposition == v1::REPORT_DISPOSITION_RECORDED ||
         disposition == v1::REPORT_DISPOSITION_TRY_AGAIN ||
         disposition == v1::REPORT_DISPOSITION_UNSPECIFIED;
}

}  // namespace

SessionState::SessionState(SessionIdentity identity, const Registry* registry,
                           ResultOutbox::Limits limits)
    : identity_(std::move(identity)), registry_(*registry), outbox_(limits) {}

v1::ExecutorMessage SessionState::MakeHello(SteadyTime now) {
  welcomed_ = false;
  next_heartbeat_ = SteadyTime::max();
  last_heard_ = now;
  keeper_.OnHelloSent(now);
  outbox_.OnNewStream();
  // The first heartbeat of the stream says which leases have started.
  started_.clear();

  v1::ExecutorMessage message;
  v1::Hello* hello = message.mutable_hello();
  hello->set_executor_id(identity_.executor_id);
  hello->set_incarnation(identity_.incarnation);
  hello->set_version(identity_.version);
  hello->set_slots(identity_.slots);
  hello->set_max_leases(identity_.max_leases);
  hello->mutable_labels()->insert(identity_.labels.begin(),
                                  identity_.labels.end());
  for (const auto& [queue, types] : registry_.subscriptions()) {
    v1::Subscription* subscription = hello->add_subscriptions();
    subscription->set_queue(queue);
    for (const std::string& type : types) subscription->add_types(type);
  }
  for (const auto& [key, held] : keeper_.held()) {
    FillRef(key, hello->add_held_leases());
  }
  return message;
}

SessionState::Effects SessionState::OnMessage(v1::SchedulerMessage* message,
                                              SteadyTime now, double jitter) {
  Effects effects;
  switch (message->message_case()) {
    case v1::SchedulerMessage::kWelcome:
      OnWelcome(message->mutable_welcome(), now, &effects);
      break;
    case v1::SchedulerMessage::kLeases:
      OnLeases(message->mutable_leases(), now, &effects);
      break;
    case v1::SchedulerMessage::kHeartbeatAck:
      OnHeartbeatAck(message->heartbeat_ack(), now, &effects);
      break;
    case v1::SchedulerMessage::kReportAcks:
      OnReportAcks(message->report_acks(), now, jitter);
      break;
    case v1::SchedulerMessage::kCancelLeases:
      for (const v1::LeaseRef& ref : message->cancel_leases().leases()) {
        CancelHeld(KeyOf(ref), &effects);
      }
      break;
    case v1::SchedulerMessage::kDrain:
      effects.drain_and_reconnect = message->drain().reconnect();
      break;
    case v1::SchedulerMessage::MESSAGE_NOT_SET:
      break;  // Of a newer scheduler: nothing that we need to know.
  }
  return effects;
}

void SessionState::OnWelcome(v1::Welcome* welcome, SteadyTime now,
                             Effects* effects) {
  welcomed_ = true;
  effects->welcomed = true;
  session_id_ = welcome->session_id();
  heartbeat_interval_ =
      std::max(ToDuration(welcome->has_heartbeat_interval(),
                          welcome->heartbeat_interval(), absl::Seconds(5)),
               absl::Milliseconds(10));
  lease_duration_ = ToDuration(welcome->has_lease_duration(),
                               welcome->lease_duration(), absl::Seconds(15));
  accept_timeout_ = ToDuration(welcome->has_accept_timeout(),
                               welcome->accept_timeout(), absl::Seconds(10));
  silence_limit_ = std::max(lease_duration_, 2 * heartbeat_interval_);
  last_heard_ = now;
  next_heartbeat_ = now;
  for (const v1::ReportAck& ack : welcome->held_leases()) {
    if (!IsStillOurs(ack.disposition())) Lose(KeyOf(ack.lease()), effects);
  }
}

void SessionState::OnLeases(v1::Leases* leases, SteadyTime now,
                            Effects* effects) {
  if (!welcomed_) return;
  effects->start.reserve(static_cast<size_t>(leases->leases_size()));
  for (v1::Lease& lease : *leases->mutable_leases()) {
    TakeLease(&lease, leases->heartbeat_sequence(), now, effects);
  }
}

void SessionState::TakeLease(v1::Lease* lease, int64_t heartbeat_sequence,
                             SteadyTime now, Effects* effects) {
  const absl::Duration duration = ToDuration(
      lease->has_lease_duration(), lease->lease_duration(), lease_duration_);
  // Until a heartbeat names it, the scheduler holds it for no longer than this.
  const absl::Duration first_duration = std::min(duration, accept_timeout_);
  std::shared_ptr<TaskRun> run = MakeTaskRun(lease);
  const bool still_runs =
      lost_running_ > 0 && keeper_.HoldsTask(run->input.task_id);
  switch (keeper_.Add(run, first_duration, duration, heartbeat_sequence, now)) {
    case LeaseKeeper::Added::kKnown:
      return;
    case LeaseKeeper::Added::kOver:
      LogDebug("lease over on arrival", {{"task", run->input.task_id}});
      return;
    case LeaseKeeper::Added::kHeld:
      break;
  }
  next_heartbeat_ = std::min(next_heartbeat_,
                             After(now, first_duration / kHeartbeatsPerLease));
  run->handler = registry_.Find(run->input.queue, run->input.type);
  if (draining_) {
    Release(*run, v1::RELEASE_REASON_DRAINING);
  } else if (run->handler == nullptr) {
    Release(*run, v1::RELEASE_REASON_UNKNOWN_TYPE);
  } else if (still_runs) {
    // The handler of an earlier, lost lease of this task has not stopped yet.
    Release(*run, v1::RELEASE_REASON_REJECTED);
  } else {
    unannounced_.push_back(run);
    AnnounceFrom(now);
    effects->start.push_back(std::move(run));
  }
}

void SessionState::OnHeartbeatAck(const v1::HeartbeatAck& ack, SteadyTime now,
                                  Effects* effects) {
  last_heard_ = now;
  for (const v1::LeaseRef& ref : ack.lost()) Lose(KeyOf(ref), effects);
  for (const v1::LeaseRef& ref : ack.cancelled()) {
    CancelHeld(KeyOf(ref), effects);
  }
  keeper_.OnHeartbeatAck(ack.sequence());
}

void SessionState::OnReportAcks(const v1::ReportAcks& acks, SteadyTime now,
                                double jitter) {
  for (const v1::ReportAck& ack : acks.acks()) {
    if (ack.row_results_sequence() != 0) continue;
    const LeaseKey key = KeyOf(ack.lease());
    if (ack.disposition() == v1::REPORT_DISPOSITION_REFUSED) {
      LogWarning("report refused", {{"task", key.task_id}});
    }
    if (outbox_.OnAck(key, ack.disposition(), now, jitter)) keeper_.Remove(key);
  }
}

void SessionState::Lose(const LeaseKey& key, Effects* effects) {
  LeaseKeeper::Held* held = keeper_.Find(key);
  if (held == nullptr || held->lost) return;
  held->lost = true;
  // A finished result in the outbox is still sent.
  if (held->reported) return;
  ++lost_running_;
  effects->cancel.emplace_back(held->run, CancelReason::kLeaseLost);
}

void SessionState::CancelHeld(const LeaseKey& key, Effects* effects) {
  const LeaseKeeper::Held* held = keeper_.Find(key);
  if (held == nullptr || held->reported || held->lost) return;
  effects->cancel.emplace_back(held->run, CancelReason::kCancelled);
}

void SessionState::OnStarted(const std::shared_ptr<TaskRun>& run,
                             SteadyTime now) {
  if (!welcomed_) return;  // The next stream's first heartbeat says it.
  started_.push_back(run);
  AnnounceFrom(now);
}

void SessionState::AnnounceFrom(SteadyTime now) {
  announce_at_ = std::min(announce_at_, After(now, kAnnounceDelay));
}

void SessionState::OnFinished(TaskRun& run, HandlerResult result) {
  ReportOn(run, MakeOutcomeReport(run, std::move(result)));
}

void SessionState::OnLeaked(TaskRun& run) {
  std::optional<Report> report = MakeLeakReport(run);
  if (report.has_value()) ReportOn(run, std::move(report));
}

void SessionState::Release(TaskRun& run, v1::ReleaseReason reason) {
  if (reason == v1::RELEASE_REASON_REJECTED) ++rejected_total_;
  ReportOn(run, MakeRelease(run, reason));
}

void SessionState::ReportOn(TaskRun& run, std::optional<Report> report) {
  const LeaseKey key = run.key();
  LeaseKeeper::Held* held = keeper_.Find(key);
  if (held == nullptr || held->reported) return;
  if (held->lost) --lost_running_;
  if (!report.has_value()) {
    keeper_.Remove(key);
    return;
  }
  held->reported = true;
  outbox_.Add(key, *std::move(report));
}

void SessionState::OnLiveChange() {
  if (!welcomed_) return;
  next_heartbeat_ =
      std::min(next_heartbeat_, After(last_heartbeat_, kProgressInterval));
}

bool SessionState::NextMessage(SteadyTime now, const v1::ExecutorLoad& load,
                               v1::ExecutorMessage* message) {
  if (!welcomed_) return false;
  if (next_heartbeat_ <= now) {
    FillHeartbeat(now, load, message->mutable_heartbeat());
    return true;
  }
  if (outbox_.NextMessage(now, message)) return true;
  return announce_at_ <= now && FillAnnouncement(message);
}

void SessionState::FillHeartbeat(SteadyTime now, const v1::ExecutorLoad& load,
                                 v1::Heartbeat* heartbeat) {
  keeper_.FillHeartbeat(now, kMaxCheckpointBytesPerHeartbeat, heartbeat);
  *heartbeat->mutable_load() = load;
  absl::Duration interval = heartbeat_interval_;
  if (const auto shortest = keeper_.ShortestDuration(); shortest.has_value()) {
    interval = std::min(interval, *shortest / kHeartbeatsPerLease);
  }
  last_heartbeat_ = now;
  next_heartbeat_ = After(now, std::max(interval, absl::Milliseconds(1)));
}

bool SessionState::FillAnnouncement(v1::ExecutorMessage* message) {
  // One message at a time: the accepted first, then those that have started.
  bool accepted_any = false;
  for (std::shared_ptr<TaskRun>& run : unannounced_) {
    const LeaseKeeper::Held* held = keeper_.Find(run->key());
    if (held == nullptr || held->reported) continue;
    TaskRun::Phase phase = TaskRun::Phase::kQueued;
    if (run->phase.compare_exchange_strong(phase, TaskRun::Phase::kAccepted)) {
      FillRef(run->key(), message->mutable_accepted()->add_leases());
      accepted_any = true;
    } else {
      started_.push_back(std::move(run));
    }
  }
  unannounced_.clear();
  if (accepted_any) return true;

  bool started_any = false;
  for (const std::shared_ptr<TaskRun>& run : started_) {
    const LeaseKeeper::Held* held = keeper_.Find(run->key());
    if (held == nullptr || held->reported) continue;
    FillRef(run->key(), message->mutable_started()->add_leases());
    started_any = true;
  }
  started_.clear();
  announce_at_ = SteadyTime::max();
  return started_any;
}

SteadyTime SessionState::NextWake() const {
  if (!welcomed_) return SteadyTime::max();
  SteadyTime wake = std::min(next_heartbeat_, announce_at_);
  if (const auto retry = outbox_.NextRetry(); retry.has_value()) {
    wake = std::min(wake, *retry);
  }
  return std::min(wake, After(last_heard_, silence_limit_));
}

bool SessionState::IsSilent(SteadyTime now) const {
  return welcomed_ && now >= After(last_heard_, silence_limit_);
}

bool SessionState::settled() const {
  if (!outbox_.empty()) return false;
  return std::all_of(keeper_.held().begin(), keeper_.held().end(),
                     [](const auto& entry) { return entry.second.lost; });
}

}  // namespace leasehold::executor
