// Which leases this executor holds, and when each of them ends.
//
// A lease's end is counted on the steady clock from the SENDING of the
// heartbeat that the scheduler names, never from receipt: so whatever stalls on
// the way makes the lease shorter here, and never longer than the scheduler
// knows it.
//
//   hello or heartbeat n sent ----- duration -----> end
//        \--> lease, or ack of n, arrives any time later
//
// Pure: no I/O, no threads, no clock reads. Not thread-safe.
#ifndef EXECUTOR_SDK_LEASE_KEEPER_H_
#define EXECUTOR_SDK_LEASE_KEEPER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "common/time/clock.h"
#include "executor/sdk/task_run.h"
#include "leasehold/v1/executor_service.pb.h"

namespace leasehold::executor {

class LeaseKeeper {
 public:
  struct Held {
    std::shared_ptr<TaskRun> run;
    absl::Duration duration;
    SteadyTime end;
    // First heartbeat that names the lease; 0 while none has.
    int64_t first_sequence = 0;
    bool lost = false;      // Not ours any more; its handler may still run.
    bool reported = false;  // The handler has ended; its report is on its way.
    int64_t progress_sent = 0, progress_sent_in = 0, progress_acked = 0;
    int64_t checkpoint_sent = 0, checkpoint_sent_in = 0, checkpoint_acked = 0;
  };

  enum class Added {
    kHeld,
    kKnown,  // Held already: a repetition.
    kOver,   // Ended before it arrived, or names no heartbeat of this stream.
  };

  // A stream begins; its hello is sent at `now`. Sequence 0 means this hello.
  void OnHelloSent(SteadyTime now);

  // Starts a heartbeat that names every lease that is not lost, with progress
  // and checkpoints that the scheduler may not have yet; checkpoints up to
  // `max_checkpoint_bytes` together, the others with a later heartbeat.
  void FillHeartbeat(SteadyTime now, size_t max_checkpoint_bytes,
                     v1::Heartbeat* heartbeat);

  // Every lease that heartbeat `sequence` named runs anew from its sending.
  void OnHeartbeatAck(int64_t sequence);

  Added Add(std::shared_ptr<TaskRun> run, absl::Duration first_duration,
            absl::Duration duration, int64_t heartbeat_sequence,
            SteadyTime now);

  // Null when not held. Valid until the next Add or Remove.
  Held* Find(const LeaseKey& key);
  void Remove(const LeaseKey& key);

  // The shortest duration among the leases held; nullopt when there are none.
  std::optional<absl::Duration> ShortestDuration() const;

  // Whether a lease of this task is held under any number.
  bool HoldsTask(const std::string& task_id) const;

  size_t size() const { return held_.size(); }
  bool empty() const { return held_.empty(); }
  const absl::flat_hash_map<LeaseKey, Held>& held() const { return held_; }
  int64_t last_sequence() const { return last_sequence_; }

 private:
  std::optional<SteadyTime> SentAt(int64_t sequence) const;
  void FillStatus(Held& held, int64_t sequence, size_t* checkpoint_budget,
                  v1::LeaseStatus* status);

  absl::flat_hash_map<LeaseKey, Held> held_;
  int64_t last_sequence_ = 0;
  SteadyTime hello_sent_;
  // Sending times of this stream's heartbeats, oldest first. Bounded: with that
  // many unacknowledged, the stream is given up long before.
  std::deque<std::pair<int64_t, SteadyTime>> sent_;
};

LeaseKey KeyOf(const v1::LeaseRef& ref);
void FillRef(const LeaseKey& key, v1::LeaseRef* ref);

}  // namespace leasehold::executor

#endif  // EXECUTOR_SDK_LEASE_KEEPER_H_
