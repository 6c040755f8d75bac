#include "executor/sdk/session_client.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/concurrency/thread_pool.h"
#include "common/ids/ids.h"
#include "common/logging/log.h"
#include "executor/sdk/outcome_report.h"

namespace leasehold::executor {
namespace {

constexpr absl::Duration kGoodbyeTimeout = absl::Seconds(1);
constexpr absl::Duration kMinConnect = absl::Seconds(2);
// A message that was larger gives its memory back instead of keeping it.
constexpr size_t kKeptMessageBytes = 256 << 10;

SteadyTime Now() { return std::chrono::steady_clock::now(); }

absl::Status ToAbsl(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
}

// Another try of the same thing cannot help: somebody has to change something.
bool IsFinal(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kAborted:  // Superseded by a newer incarnation.
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
      return true;
    default:
      return false;
  }
}

}  // namespace

SessionClient::SessionClient(Options options, const Registry* registry)
    : options_(std::move(options)),
      state_(options_.identity, registry),
      rng_(RandomSeed()),
      reconnect_backoff_(options_.reconnect_initial, options_.reconnect_max),
      connect_log_(absl::Seconds(10)),
      // Executors that start together spread over the replicas.
      next_address_(rng_() % options_.schedulers.size()),
      runner_(std::make_unique<TaskRunner>(options_.runner,
                                           static_cast<RunObserver*>(this))) {}

SessionClient::~SessionClient() {
  Leave();
  runner_.reset();
}

void SessionClient::Start() {
  loop_ = std::thread([this] { Loop(); });
}

// ---- What the runner says -------------------------------------------------

void SessionClient::OnStarted(const std::shared_ptr<TaskRun>& run) {
  const std::lock_guard<std::mutex> lock(mutex_);
  state_.OnStarted(run, Now());
  WakeLocked();
}

void SessionClient::OnFinished(const std::shared_ptr<TaskRun>& run,
                               HandlerResult result) {
  // Without the lock: it may check a large result, and write a line.
  std::optional<Report> report = MakeOutcomeReport(*run, std::move(result));
  if (report.has_value()) failures_.Add(*run, *report);
  const std::lock_guard<std::mutex> lock(mutex_);
  state_.ReportOn(*run, std::move(report));
  UpdatePauseLocked();
  NotifySettledLocked();
  WakeLocked();
}

void SessionClient::OnLeaked(const std::shared_ptr<TaskRun>& run) {
  const std::lock_guard<std::mutex> lock(mutex_);
  state_.OnLeaked(*run);
  WakeLocked();
}

void SessionClient::OnLiveChange() {
  if (live_changed_.exchange(true)) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  state_.OnLiveChange();
  WakeLocked();
}

// ---- What the scheduler says ----------------------------------------------

void SessionClient::OnMessage(v1::SchedulerMessage* message) {
  SessionState::Effects effects;
  SessionState::Runs removed;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stream_ended_) return;
    // The jitter only matters to reports that were refused for now.
    const double jitter =
        static_cast<double>(Now().time_since_epoch().count() % 1000) / 1000;
    effects = state_.OnMessage(message, Now(), jitter);
    ApplyLocked(&effects);
  }
  for (const auto& [run, reason] : effects.cancel) {
    if (runner_->Cancel(run, reason)) removed.push_back(run);
  }
  if (removed.empty()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& run : removed) {
    state_.OnFinished(*run, HandlerResult::Cancelled());
  }
  WakeLocked();
}

void SessionClient::ApplyLocked(SessionState::Effects* effects) {
  for (const auto& run : effects->start) {
    run->on_live_change = [this] { OnLiveChange(); };
  }
  if (!effects->start.empty()) {
    runner_->Push(&effects->start);
    for (const auto& run : effects->start) {
      state_.Release(*run, v1::RELEASE_REASON_REJECTED);
    }
  }
  if (effects->welcomed) {
    reconnect_backoff_ =
        Backoff(options_.reconnect_initial,
                std::min(options_.reconnect_max, state_.reconnect_limit()));
  }
  if (effects->drain_and_reconnect.has_value()) {
    (*effects->drain_and_reconnect ? reconnect_wanted_ : leave_asked_) = true;
  }
  UpdatePauseLocked();
  NotifySettledLocked();
  WakeLocked();
}

void SessionClient::OnWritten() {
  const std::lock_guard<std::mutex> lock(mutex_);
  write_in_flight_ = false;
  WakeLocked();
}

void SessionClient::OnEnded() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stream_ended_ = true;
  WakeLocked();
}

void SessionClient::UpdatePauseLocked() {
  runner_->SetPaused(state_.outbox_full());
}

void SessionClient::NotifySettledLocked() {
  if (state_.draining() && state_.settled()) settled_.notify_all();
}

void SessionClient::WakeLocked() {
  wake_ = true;
  if (loop_waits_) {
    loop_waits_ = false;
    changed_.notify_one();
  }
}

v1::ExecutorLoad SessionClient::LoadLocked() const {
  const TaskRunner::Load load = runner_->load();
  v1::ExecutorLoad message;
  message.set_running(load.running);
  message.set_queued(load.queued);
  message.set_leaked_slots(load.leaked);
  message.set_rejected_total(state_.rejected_total());
  return message;
}

// ---- The loop --------------------------------------------------------------

void SessionClient::Loop() {
  NameThisThread("session");
  for (;;) {
    const std::string& address = options_.schedulers[next_address_];
    next_address_ = (next_address_ + 1) % options_.schedulers.size();
    const absl::Status end = RunSession(address);
    if (!JudgeEnd(address, end)) return;

    std::unique_lock<std::mutex> lock(mutex_);
    const SteadyTime until =
        Now() + absl::ToChronoNanoseconds(reconnect_backoff_.Next(rng_));
    while (!leaving_ && Now() < until) {
      loop_waits_ = true;
      changed_.wait_until(lock, until);
      loop_waits_ = false;
    }
    if (leaving_) return;
  }
}

absl::Status SessionClient::RunSession(const std::string& address) {
  SessionStream stream(address, this);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stream_ended_ = false;
    reconnect_wanted_ = false;
    write_in_flight_ = true;
    outgoing_ = state_.MakeHello(Now());
  }
  stream.Write(outgoing_);
  const absl::Status wanted_end = Pump(stream);
  {
    // What still arrives belongs to an older stream from here on.
    const std::lock_guard<std::mutex> lock(mutex_);
    stream_ended_ = true;
  }
  if (!wanted_end.ok()) stream.Cancel();
  const absl::Status status = ToAbsl(stream.Finish());
  return wanted_end.ok() ? status : wanted_end;
}

absl::Status SessionClient::Pump(SessionStream& stream) {
  bool greeted = false;
  std::unique_lock<std::mutex> lock(mutex_);
  const SteadyTime hello_deadline =
      Now() + absl::ToChronoNanoseconds(
                  std::min(options_.connect_timeout,
                           std::max(state_.reconnect_limit(), kMinConnect)));
  while (!stream_ended_) {
    const SteadyTime now = Now();
    wake_ = false;
    if (state_.welcomed() && !greeted) {
      greeted = true;
      LogInfo("session opened", {{"session", state_.session_id()},
                                 {"leases", state_.leases_held()}});
    }
    if (leave_asked_) {
      leave_asked_ = false;
      options_.on_leave(absl::OkStatus());
    }
    if (leaving_) {
      SayGoodbye(stream, lock);
      return absl::CancelledError("leaving");
    }
    if (reconnect_wanted_) return absl::UnavailableError("scheduler drains");
    if (state_.IsSilent(now)) {
      return absl::UnavailableError(
          "no acknowledgement for a lease's duration");
    }
    if (!state_.welcomed() && now >= hello_deadline) {
      return absl::UnavailableError("no answer to hello");
    }
    if (!write_in_flight_) {
      if (outgoing_.SpaceUsedLong() > kKeptMessageBytes) {
        outgoing_ = v1::ExecutorMessage();
      } else {
        outgoing_.Clear();
      }
      // Cleared before the heartbeat reads what handlers said: whatever changes
      // from here on asks for another one.
      if (state_.HeartbeatDue(now)) live_changed_ = false;
      if (state_.NextMessage(now, LoadLocked(), &outgoing_)) {
        write_in_flight_ = true;
        lock.unlock();
        stream.Write(outgoing_);
        lock.lock();
        continue;
      }
    }
    if (wake_) continue;
    SteadyTime until = state_.welcomed() ? state_.NextWake() : hello_deadline;
    // A timer that cannot be served before the write ends must not spin.
    if (write_in_flight_) {
      until = std::max(until, now + std::chrono::milliseconds(50));
    }
    loop_waits_ = true;
    changed_.wait_until(lock, until);
    loop_waits_ = false;
  }
  return absl::OkStatus();
}

void SessionClient::SayGoodbye(SessionStream& stream,
                               std::unique_lock<std::mutex>& lock) {
  const SteadyTime until = Now() + absl::ToChronoNanoseconds(kGoodbyeTimeout);
  const auto wait_for = [&](auto condition) {
    while (!condition() && Now() < until) {
      loop_waits_ = true;
      changed_.wait_until(lock, until);
      loop_waits_ = false;
    }
    return condition();
  };
  const auto can_write = [&] { return stream_ended_ || !write_in_flight_; };
  if (!state_.welcomed() || !wait_for(can_write) || stream_ended_) return;
  outgoing_.Clear();
  outgoing_.mutable_goodbye();
  write_in_flight_ = true;
  lock.unlock();
  stream.Write(outgoing_);
  lock.lock();
  if (!wait_for(can_write) || stream_ended_) return;
  lock.unlock();
  stream.HalfClose();
  lock.lock();
  wait_for([&] { return stream_ended_; });
}

bool SessionClient::JudgeEnd(const std::string& address,
                             const absl::Status& status) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (leaving_) {
      over_ = true;
      settled_.notify_all();
      return false;
    }
  }
  if (!IsFinal(status.code())) {
    connect_log_.Warning("session ended, will reconnect",
                         {{"scheduler", address}, {"error", status}});
    return true;
  }
  LogError("session refused for good",
           {{"scheduler", address}, {"error", status}});
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    over_ = true;
    settled_.notify_all();
  }
  options_.on_leave(absl::Status(
      status.code(),
      absl::StrCat("scheduler ", address, ": ", status.message())));
  return false;
}

// ---- Leaving ---------------------------------------------------------------

void SessionClient::StartDraining() {
  const std::lock_guard<std::mutex> lock(mutex_);
  state_.StartDraining();
  for (const auto& run : runner_->StopTaking()) {
    state_.Release(*run, v1::RELEASE_REASON_DRAINING);
  }
  WakeLocked();
}

bool SessionClient::WaitSettled(absl::Duration timeout) {
  std::unique_lock<std::mutex> lock(mutex_);
  settled_.wait_for(lock, absl::ToChronoNanoseconds(timeout),
                    [&] { return over_ || state_.settled(); });
  return state_.settled();
}

void SessionClient::Leave() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    leaving_ = true;
    changed_.notify_all();
  }
  if (loop_.joinable()) loop_.join();
}

}  // namespace leasehold::executor
