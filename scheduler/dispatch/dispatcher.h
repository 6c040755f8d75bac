// Leases waiting tasks to sessions: one thread that takes from the ready index
// what sessions have room for, claims it with one guarded statement, and sends
// it.
//
// Which guard protects what: a task is claimed only if its lease_number is
// still the one that the index knew, so that no two replicas, and no two rounds
// of one, ever win the same lease.
#ifndef SCHEDULER_DISPATCH_DISPATCHER_H_
#define SCHEDULER_DISPATCH_DISPATCHER_H_

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "scheduler/dispatch/direct_leases.h"
#include "scheduler/dispatch/dispatch_target.h"
#include "scheduler/dispatch/lease_builder.h"
#include "scheduler/dispatch/placement.h"
#include "scheduler/dispatch/ready_index.h"
#include "scheduler/engine/db_clock.h"
#include "scheduler/engine/lane_directory.h"
#include "scheduler/engine/loop_probe.h"
#include "scheduler/engine/options.h"
#include "scheduler/engine/scheduler_metrics.h"
#include "scheduler/engine/task_changer.h"

namespace leasehold::scheduler {

class Dispatcher {
 public:
  using Targets = std::vector<std::shared_ptr<DispatchTarget>>;

  // `list_targets` gives the sessions that are ready. Start must follow.
  Dispatcher(TaskStore& store, TaskChanger& changer, LaneDirectory& lanes,
             DbClock& clock, const EngineBounds& bounds,
             std::function<Targets()> list_targets, SchedulerMetrics& metrics);
  ~Dispatcher() { Stop(); }

  ReadyIndex& index() { return index_; }
  // For the submits that lease at once.
  DirectLeases& direct_leases() { return direct_leases_; }

  void Start();
  // A session has more room, or the index more tasks. Cheap; thread-safe.
  void Wake();
  void Stop();

  const LoopProbe& probe() const { return probe_; }

 private:
  struct Session {
    std::shared_ptr<DispatchTarget> target;
    DispatchTarget::Room room;
  };
  // What a round is about: sessions with room, in step with the placement.
  struct Round {
    std::vector<Session> sessions;
    Placement placement;
  };

  void Run();
  // False when nothing could be leased.
  bool RunOnce();
  Round BeginRound();
  // The database failed: no round for a moment.
  void Pause();
  void PollHeads(const Placement& placement);
  // Reads on where shelves are low; true if any page was read.
  bool ReadPages(const Placement& placement);
  // Takes room for each; those whose room has gone meanwhile wait again.
  std::vector<ReadyIndex::Taken> ReserveRoom(
      Round& round, std::vector<ReadyIndex::Taken> taken);
  void Lease(Round& round, std::vector<ReadyIndex::Taken> taken);
  std::vector<ReadyIndex::Taken> Claim(const Round& round,
                                       std::vector<ReadyIndex::Taken> taken);
  void Send(Round& round, std::vector<ReadyIndex::Taken> won);
  void DeliverTo(Session& session, std::vector<LeaseMessage> leases);
  // Leases that were never sent go back, uncharged; what cannot be given back
  // now is tried again with the next poll.
  void GiveBack(std::vector<std::pair<LeaseRef, HolderId>> unsent);
  // The same for any thread: this one's next round gives them back.
  void GiveBackSoon(std::vector<std::pair<LeaseRef, HolderId>> unsent);
  void WaitForWork(int64_t next_due_us);

  TaskStore& store_;
  TaskChanger& changer_;
  LaneDirectory& lanes_;
  DbClock& clock_;
  const EngineBounds bounds_;
  const std::function<Targets()> list_targets_;
  SchedulerMetrics& metrics_;
  ReadyIndex index_;
  LeaseBuilder builder_;
  DirectLeases direct_leases_;
  LoopProbe probe_;

  // Of the one thread.
  SteadyTime next_poll_;
  SteadyTime failing_until_;
  std::vector<std::pair<LeaseRef, HolderId>> unsent_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
  std::vector<std::pair<LeaseRef, HolderId>> returned_;  // By GiveBackSoon.
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_DISPATCH_DISPATCHER_H_
