// What a session remembers of the leases that its executor holds, and what of
// it has yet to be written. Pure; not thread-safe.
#ifndef SCHEDULER_SESSION_HELD_LEASES_H_
#define SCHEDULER_SESSION_HELD_LEASES_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "scheduler/domain/state_machine.h"
#include "scheduler/session/messages.h"
#include "scheduler/store/task_store.h"

namespace leasehold::scheduler {

class HeldLeases {
 public:
  // A lease was sent, or named in a hello or a heartbeat.
  void Add(const LeaseRef& lease, int64_t lease_duration_us,
           int64_t attempt_timeout_us, int64_t now_us);
  // True if it was held.
  bool Remove(const LeaseRef& lease);
  // Whether exactly this lease is held.
  bool Contains(const LeaseRef& lease) const;
  size_t size() const { return leases_.size(); }

  // The executor has taken it; at `now_us`.
  void Accept(const LeaseRef& lease, int64_t now_us);
  // Its handler has started. Only the first time counts.
  void Start(const LeaseRef& lease, int64_t now_us);
  // When the handler started; 0 if unknown.
  int64_t StartUs(const LeaseRef& lease) const;
  // A heartbeat named it: it is renewed with the next Take.
  void Name(const LeaseRef& lease, int64_t now_us);
  // Whether the executor is known to have taken it.
  bool Accepted(const LeaseRef& lease) const;
  // Drops what the executor has not spoken of for a lease's duration: it is
  // over, and whoever took it back may not have told this replica. Returns the
  // leases that were never accepted.
  std::vector<LeaseRef> DropUnheard(int64_t now_us);

  // What has to be written: everything named since the last Take, and what was
  // accepted or started `lazy_us` ago or earlier and is not known to be
  // written. Tasks that end sooner are never written as started.
  std::vector<Renewal> Take(HolderId holder, int64_t now_us, int64_t lazy_us);
  // That could not be written: heartbeats to come name the lease again, and
  // what was accepted or started is taken again.
  void NotWritten(const Renewal& renewal);

 private:
  struct Held {
    int64_t lease_duration_us = 0;
    int64_t attempt_timeout_us = 0;
    int64_t heard_us = 0;   // When it was sent, or spoken of last.
    int64_t accept_us = 0;  // 0: not accepted yet.
    int64_t start_us = 0;   // 0: not started yet.
    bool named = false;
    bool accept_written = false;
    bool start_written = false;
  };
  Held* Find(const LeaseRef& lease);

  // By lease, not by task: an executor may still name an older lease of a task
  // that it has just been given anew.
  absl::flat_hash_map<LeaseRef, Held> leases_;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_SESSION_HELD_LEASES_H_
