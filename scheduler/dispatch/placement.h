// Who gets the next task of a lane: the session with the most free slots, then
// the one with the most room in its queue. Pure.
#ifndef SCHEDULER_DISPATCH_PLACEMENT_H_
#define SCHEDULER_DISPATCH_PLACEMENT_H_

#include <cstddef>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "scheduler/domain/task.h"

namespace leasehold::scheduler {

// Not thread-safe. Made anew for every round of the dispatcher.
class Placement {
 public:
  // A session with room for `free_leases` more leases, of which `free_slots`
  // would start at once (less than 0 when its queue is in use). Returns its
  // index: 0, 1, 2, ..
  size_t AddSession(int free_leases, int free_slots,
                    const std::vector<LaneId>& lanes);

  // Lanes that some session with room is subscribed to.
  std::vector<LaneId> Lanes() const;

  // Takes room for a task of `lane`; nullopt when nobody has any.
  std::optional<size_t> Place(LaneId lane);

  bool has_room() const { return total_free_ > 0; }

 private:
  struct Session {
    int free_leases;
    int free_slots;
  };
  // What a session had when it was queued. Its real room only shrinks, so an
  // outdated entry is put back where it belongs when it comes to the top.
  struct Ranked {
    int free_slots;
    int free_leases;
    size_t session;
    friend bool operator<(const Ranked& a, const Ranked& b) {
      if (a.free_slots != b.free_slots) return a.free_slots < b.free_slots;
      if (a.free_leases != b.free_leases) return a.free_leases < b.free_leases;
      return a.session > b.session;
    }
  };

  Ranked Rank(size_t session) const {
    return {sessions_[session].free_slots, sessions_[session].free_leases,
            session};
  }

  std::vector<Session> sessions_;
  absl::flat_hash_map<LaneId, std::priority_queue<Ranked>> by_lane_;
  int64_t total_free_ = 0;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_DISPATCH_PLACEMENT_H_
