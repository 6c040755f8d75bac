#include "scheduler/maintenance/replica_keeper.h"

#include <chrono>
#include <thread>

#include "common/status/status_macros.h"

namespace leasehold::scheduler {

absl::Status ReplicaKeeper::RunOnce() {
  LEASEHOLD_RETURN_IF_ERROR(lanes_.RefreshQueues());
  const int64_t version = lanes_.version();
  // A round that began before may lease yet by what it read then; whoever
  // pauses a queue is told only after it.
  if (version > acts_on_ && AwaitOlderRounds()) acts_on_ = version;
  ReplicaRow row;
  row.id = board_.own_id();
  row.address = config_.address;
  row.start_us = config_.start_us;
  row.seen_version = acts_on_;
  row.sessions = sessions_();
  const SteadyTime said_at = clock_.SteadyNow();
  LEASEHOLD_ASSIGN_OR_RETURN(
      std::vector<ReplicaRow> replicas,
      store_.TouchReplica(row, absl::ToInt64Microseconds(kReplicaAlive)));
  board_.Update(std::move(replicas), said_at);
  return absl::OkStatus();
}

bool ReplicaKeeper::AwaitOlderRounds() const {
  const SteadyTime until =
      clock_.SteadyNow() + absl::ToChronoNanoseconds(config_.quiet);
  for (const LoopProbe* probe : leasing_) {
    const int64_t round = probe->CurrentRound();
    while (round != 0 && probe->CurrentRound() == round) {
      if (clock_.SteadyNow() >= until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  return true;
}

void ReplicaKeeper::Leave() {
  store_.RemoveReplica(board_.own_id()).IgnoreError();
}

}  // namespace leasehold::scheduler
