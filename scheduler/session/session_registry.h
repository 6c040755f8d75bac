// All sessions of this replica: who is ready for work, who superseded whom, and
// when each executor was last heard.
#ifndef SCHEDULER_SESSION_SESSION_REGISTRY_H_
#define SCHEDULER_SESSION_SESSION_REGISTRY_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "scheduler/engine/change_listener.h"
#include "scheduler/session/executor_session.h"
#include "scheduler/session/session.h"

namespace leasehold::scheduler {

// Thread-safe.
class SessionRegistry : public SessionHost, public ChangeListener {
 public:
  struct Hooks {
    // A session became ready for these lanes, or stopped being so. Called with
    // the registry's lock held, in that order; must not call back.
    std::function<void(const std::vector<LaneId>&)> serve;
    std::function<void(const std::vector<LaneId>&)> unserve;
  };

  SessionRegistry(size_t max_sessions, Hooks hooks);

  // Once, before the first OpenSession.
  void SetServices(SessionServices* services) { services_ = services; }

  // --- SessionHost ---
  absl::StatusOr<std::shared_ptr<Session>> OpenSession(
      std::shared_ptr<SessionSink> sink) override;

  // --- For the opener ---
  // `session`, which has its identity, takes its executor's place: an older one
  // of the same executor is closed with ABORTED. ABORTED when `session` is
  // itself the older incarnation, CANCELLED when its stream has ended.
  absl::Status Supersede(const std::shared_ptr<ExecutorSession>& session);
  // It may be given leases from now on, unless it has ended.
  void AddReady(const std::shared_ptr<ExecutorSession>& session);

  // --- For sessions ---
  void OnSessionEnded(const std::shared_ptr<ExecutorSession>& session);

  // --- For everybody ---
  std::vector<std::shared_ptr<ExecutorSession>> ReadySessions() const;
  // Leases that were taken from their executors.
  void OnChanged(absl::Span<const CommittedChange> changes) override;
  // Whether the holder's incarnation was heard here after `since_us`.
  bool HeardSince(HolderId holder, int64_t since_us) const;
  size_t session_count() const;

  // Refuses new sessions, tells all to reconnect elsewhere, closes with
  // UNAVAILABLE those that are left after `patience`.
  void Drain(absl::Duration patience);

 private:
  const size_t max_sessions_;
  const Hooks hooks_;
  SessionServices* services_ = nullptr;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool draining_ = false;
  absl::flat_hash_set<std::shared_ptr<ExecutorSession>> sessions_;
  absl::flat_hash_map<std::string, std::shared_ptr<ExecutorSession>> current_;
  absl::flat_hash_map<HolderId, std::shared_ptr<ExecutorSession>> ready_;
  // Of sessions that have ended. Forgotten after an hour.
  absl::flat_hash_map<HolderId, int64_t> last_heard_us_;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_SESSION_SESSION_REGISTRY_H_
