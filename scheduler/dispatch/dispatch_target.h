// What the dispatcher gives leases to: a session, as far as it concerns it.
#ifndef SCHEDULER_DISPATCH_DISPATCH_TARGET_H_
#define SCHEDULER_DISPATCH_DISPATCH_TARGET_H_

#include <cstdint>
#include <vector>

#include "scheduler/domain/task.h"
#include "scheduler/session/messages.h"

namespace leasehold::scheduler {

// Thread-safe.
class DispatchTarget {
 public:
  struct Room {
    int free_leases = 0;  // 0 when it takes none: draining, unhealthy, closed.
    int free_slots = 0;   // Less than 0 when its queue is in use.
    // The latest heartbeat received; read before the leases are made, because
    // executors count the leases' duration from its sending.
    int64_t heartbeat_sequence = 0;
  };

  virtual ~DispatchTarget() = default;
  virtual HolderId holder() const = 0;
  virtual const std::vector<LaneId>& lanes() const = 0;
  // Only Reserve makes it smaller.
  virtual Room GetRoom() const = 0;
  // Takes room for up to `leases` more; returns for how many. The dispatcher
  // and the submits that lease at once both do, so the room seen before may be
  // gone.
  virtual int Reserve(int leases) = 0;
  // Gives back what was reserved and not delivered.
  virtual void Unreserve(int leases) = 0;
  // Sends the leases, each of which uses up a reservation; false, and nothing
  // was sent, when the session has ended.
  virtual bool Deliver(std::vector<LeaseMessage> leases,
                       int64_t heartbeat_sequence) = 0;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_DISPATCH_DISPATCH_TARGET_H_
