// Which replicas live, as far as this one knows, and from which version of the
// queues' settings on all of them act.
#ifndef SCHEDULER_ENGINE_REPLICA_BOARD_H_
#define SCHEDULER_ENGINE_REPLICA_BOARD_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/time/clock.h"
#include "scheduler/store/task_store.h"

namespace leasehold::scheduler {

// A replica that has not said for as long that it lives is counted out by the
// others, and stops leasing that much earlier by its own clock.
inline constexpr absl::Duration kReplicaAlive = absl::Seconds(10);
inline constexpr absl::Duration kReplicaMargin = absl::Seconds(2);

// Thread-safe.
class ReplicaBoard {
 public:
  explicit ReplicaBoard(std::string own_id) : own_id_(std::move(own_id)) {}

  const std::string& own_id() const { return own_id_; }

  // `said_at`: no later than this one said that it lives.
  void Update(std::vector<ReplicaRow> replicas, SteadyTime said_at) {
    {
      std::lock_guard lock(mutex_);
      replicas_ = std::move(replicas);
      said_at_ = said_at;
      ++updates_;
    }
    updated_.notify_all();
  }
  // Counts Updates, so that a reader can tell news from what it has seen.
  int64_t updates() const {
    std::lock_guard lock(mutex_);
    return updates_;
  }
  // Until there have been more than `seen`, or the time is up.
  void WaitForNews(int64_t seen, absl::Duration limit) const {
    std::unique_lock lock(mutex_);
    updated_.wait_for(lock, absl::ToChronoNanoseconds(limit),
                      [&] { return updates_ > seen; });
  }

  // Whether the others still count this replica among the living. One that was
  // frozen may not lease before it has heard what changed meanwhile.
  bool Current(SteadyTime now) const {
    std::lock_guard lock(mutex_);
    return updates_ > 0 && now - said_at_ < absl::ToChronoNanoseconds(
                                                kReplicaAlive - kReplicaMargin);
  }
  std::vector<ReplicaRow> replicas() const {
    std::lock_guard lock(mutex_);
    return replicas_;
  }

  // Those that have not said yet that they act on `version`.
  std::vector<std::string> Behind(int64_t version) const {
    std::lock_guard lock(mutex_);
    std::vector<std::string> behind;
    for (const ReplicaRow& replica : replicas_) {
      if (replica.seen_version < version) behind.push_back(replica.id);
    }
    return behind;
  }

  // This replica's share of the ids: replicas that have executors divide them
  // evenly, in the order of their ids. All of them while this one has none or
  // is not listed, so that nobody's share is left out.
  IdShare Share() const {
    std::lock_guard lock(mutex_);
    IdShare share{-1, 0};
    for (const ReplicaRow& replica : replicas_) {
      if (replica.sessions == 0) continue;
      if (replica.id == own_id_) share.index = share.of;
      ++share.of;
    }
    return share.index < 0 ? IdShare{} : share;
  }

 private:
  const std::string own_id_;
  mutable std::mutex mutex_;
  mutable std::condition_variable updated_;
  std::vector<ReplicaRow> replicas_;
  SteadyTime said_at_;
  int64_t updates_ = 0;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_ENGINE_REPLICA_BOARD_H_
