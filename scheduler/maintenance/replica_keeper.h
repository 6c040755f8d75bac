// Keeps this replica in step with the others: reads the queues' settings, says
// that it lives and on which version it acts, and learns who else lives.
#ifndef SCHEDULER_MAINTENANCE_REPLICA_KEEPER_H_
#define SCHEDULER_MAINTENANCE_REPLICA_KEEPER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/time/clock.h"
#include "scheduler/engine/lane_directory.h"
#include "scheduler/engine/loop_probe.h"
#include "scheduler/engine/replica_board.h"

namespace leasehold::scheduler {

// For one thread.
class ReplicaKeeper {
 public:
  struct Config {
    std::string address;
    int64_t start_us = 0;
    // Rounds that began under older settings get as long to end; the newer
    // version is said to be seen in a later turn if they do not.
    absl::Duration quiet = absl::Seconds(2);
  };

  // `leasing`: the loops that lease by the queues' settings. `sessions` counts
  // the executors connected here.
  ReplicaKeeper(Config config, TaskStore& store, LaneDirectory& lanes,
                ReplicaBoard& board, std::vector<const LoopProbe*> leasing,
                std::function<int()> sessions, const Clock& clock)
      : config_(std::move(config)),
        store_(store),
        lanes_(lanes),
        board_(board),
        leasing_(std::move(leasing)),
        sessions_(std::move(sessions)),
        clock_(clock) {}

  absl::Status RunOnce();
  // Says that the replica leaves; what fails is forgotten in time.
  void Leave();

 private:
  // Whether no round runs any more that began before the call.
  bool AwaitOlderRounds() const;

  const Config config_;
  TaskStore& store_;
  LaneDirectory& lanes_;
  ReplicaBoard& board_;
  const std::vector<const LoopProbe*> leasing_;
  const std::function<int()> sessions_;
  const Clock& clock_;
  int64_t acts_on_ = 0;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_MAINTENANCE_REPLICA_KEEPER_H_
