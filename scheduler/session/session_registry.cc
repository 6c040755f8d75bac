#include "scheduler/session/session_registry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/ids/ids.h"
#include "common/logging/log.h"
#include "scheduler/engine/shutting_down.h"

namespace leasehold::scheduler {
namespace {

constexpr int64_t kForgetHolderUs = kMicrosPerHour;
constexpr size_t kRemembered = 10'000;

}  // namespace

SessionRegistry::SessionRegistry(size_t max_sessions, Hooks hooks)
    : max_sessions_(max_sessions), hooks_(std::move(hooks)) {}

absl::StatusOr<std::shared_ptr<Session>> SessionRegistry::OpenSession(
    std::shared_ptr<SessionSink> sink) {
  auto session = std::make_shared<ExecutorSession>(RandomHex(8), *services_,
                                                   std::move(sink));
  std::lock_guard lock(mutex_);
  if (draining_) {
    return ShuttingDown();
  }
  if (sessions_.size() >= max_sessions_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "this replica has ", max_sessions_, " sessions, try another one"));
  }
  sessions_.insert(session);
  return session;
}

absl::Status SessionRegistry::Supersede(
    const std::shared_ptr<ExecutorSession>& session) {
  std::shared_ptr<ExecutorSession> older;
  {
    std::lock_guard lock(mutex_);
    if (!sessions_.contains(session)) {
      return absl::CancelledError("the stream ended before welcome");
    }
    std::shared_ptr<ExecutorSession>& current =
        current_[session->executor_id()];
    // Holder ids are given out in order, so the greater is the newer process.
    if (current != nullptr && current->holder() > session->holder()) {
      return absl::AbortedError(absl::StrCat(
          "executor ", session->executor_id(),
          ": superseded by a newer incarnation, do not reconnect"));
    }
    older = std::exchange(current, session);
  }
  if (older == nullptr || older == session) return absl::OkStatus();
  older->Close(absl::AbortedError(
      absl::StrCat("executor ", session->executor_id(),
                   older->holder() == session->holder()
                       ? ": superseded by a newer session"
                       : ": superseded by a newer incarnation, do not "
                         "reconnect")));
  return absl::OkStatus();
}

void SessionRegistry::AddReady(
    const std::shared_ptr<ExecutorSession>& session) {
  bool draining;
  {
    std::lock_guard lock(mutex_);
    // One that has ended meanwhile has been, or will be, removed by
    // OnSessionEnded; that must not come before this.
    if (!session->ready() || !sessions_.contains(session)) return;
    ready_[session->holder()] = session;
    // Under the lock, so that it comes before the unserve of the session's end.
    hooks_.serve(session->lanes());
    draining = draining_;
  }
  if (draining) session->SendDrain(/*reconnect=*/true);
}

void SessionRegistry::OnSessionEnded(
    const std::shared_ptr<ExecutorSession>& session) {
  bool was_ready = false;
  {
    std::lock_guard lock(mutex_);
    if (sessions_.erase(session) == 0) return;
    const auto current = current_.find(session->executor_id());
    if (current != current_.end() && current->second == session) {
      current_.erase(current);
    }
    const auto ready = ready_.find(session->holder());
    if (ready != ready_.end() && ready->second == session) {
      ready_.erase(ready);
      hooks_.unserve(session->lanes());
      was_ready = true;
    }
    if (session->holder() != 0) {
      const int64_t now_us = session->last_heard_us();
      last_heard_us_[session->holder()] = now_us;
      if (last_heard_us_.size() > kRemembered) {
        absl::erase_if(last_heard_us_, [now_us](const auto& heard) {
          return heard.second < now_us - kForgetHolderUs;
        });
      }
    }
  }
  changed_.notify_all();
  if (!was_ready) return;
  LogInfo("session ended", {{"executor", session->executor_id()},
                            {"session", session->session_id()},
                            {"leases", session->held_leases()}});
}

std::vector<std::shared_ptr<ExecutorSession>> SessionRegistry::ReadySessions()
    const {
  std::vector<std::shared_ptr<ExecutorSession>> sessions;
  std::lock_guard lock(mutex_);
  sessions.reserve(ready_.size());
  for (const auto& [holder, session] : ready_) sessions.push_back(session);
  return sessions;
}

void SessionRegistry::OnChanged(absl::Span<const CommittedChange> changes) {
  for (const CommittedChange& change : changes) {
    if (change.reported || change.lease_number == 0) continue;
    const LeaseRef lease{change.id, change.lease_number};
    std::shared_ptr<ExecutorSession> session;
    {
      std::lock_guard lock(mutex_);
      const auto it = ready_.find(change.holder);
      if (it != ready_.end()) session = it->second;
    }
    if (session == nullptr) continue;
    if (change.after.has_value() &&
        change.after->lease_end == LeaseEnd::kOpen) {
      if (change.after->cancel_expire_us != 0) {
        session->OnCancelRequested(lease);
      }
      continue;
    }
    const bool never_accepted = change.after.has_value() &&
                                change.state_before == TaskState::kDispatched;
    session->OnLeaseTaken(lease, !never_accepted);
  }
}

bool SessionRegistry::HeardSince(HolderId holder, int64_t since_us) const {
  std::lock_guard lock(mutex_);
  if (const auto it = ready_.find(holder); it != ready_.end()) {
    return it->second->last_heard_us() > since_us;
  }
  const auto it = last_heard_us_.find(holder);
  return it != last_heard_us_.end() && it->second > since_us;
}

size_t SessionRegistry::session_count() const {
  std::lock_guard lock(mutex_);
  return sessions_.size();
}

void SessionRegistry::Drain(absl::Duration patience) {
  std::vector<std::shared_ptr<ExecutorSession>> sessions;
  {
    std::lock_guard lock(mutex_);
    draining_ = true;
    sessions.assign(sessions_.begin(), sessions_.end());
  }
  for (const auto& session : sessions) session->SendDrain(/*reconnect=*/true);
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, absl::ToChronoNanoseconds(patience),
                    [&] { return sessions_.empty(); });
  sessions.assign(sessions_.begin(), sessions_.end());
  lock.unlock();
  for (const auto& session : sessions) {
    session->Close(absl::UnavailableError(
        "scheduler is shutting down, reconnect to another replica"));
  }
}

}  // namespace leasehold::scheduler
