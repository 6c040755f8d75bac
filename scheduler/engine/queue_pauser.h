// QueueControl on a few threads: a queue is paused when every replica that
// lives has said that it leases nothing of it any more.
#ifndef SCHEDULER_ENGINE_QUEUE_PAUSER_H_
#define SCHEDULER_ENGINE_QUEUE_PAUSER_H_

#include <atomic>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/concurrency/thread_pool.h"
#include "scheduler/engine/lane_directory.h"
#include "scheduler/engine/queue_control.h"
#include "scheduler/engine/replica_board.h"

namespace leasehold::scheduler {

// Thread-safe.
class QueuePauser : public QueueControl {
 public:
  // A replica that has neither confirmed nor died after `patience` fails the
  // call; longer than it takes a replica that died to be counted out.
  QueuePauser(TaskStore& store, LaneDirectory& lanes, const ReplicaBoard& board,
              absl::Duration patience = absl::Seconds(15));
  ~QueuePauser() override { Stop(); }

  void Pause(std::string queue, Done done) override;
  void Resume(std::string queue, Done done) override;

  // Refuses new calls, ends those that wait with UNAVAILABLE. Idempotent.
  void Stop();

 private:
  void Run(std::string queue, bool paused, const Done& done);
  absl::StatusOr<QueueRow> SetPaused(const std::string& queue, bool paused);
  absl::Status AwaitReplicas(const QueueRow& queue);

  TaskStore& store_;
  LaneDirectory& lanes_;
  const ReplicaBoard& board_;
  const absl::Duration patience_;
  std::atomic<bool> stopped_ = false;
  ThreadPool pool_;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_ENGINE_QUEUE_PAUSER_H_
