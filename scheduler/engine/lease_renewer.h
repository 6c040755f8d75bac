// Keeps leases alive: heartbeats of all sessions, and the lazy writing of what
// has been accepted or started, on a connection that nothing else uses.
//
// A session has at most one round waiting, since a newer heartbeat names all
// that an older one did; so the queue is never longer than there are sessions.
#ifndef SCHEDULER_ENGINE_LEASE_RENEWER_H_
#define SCHEDULER_ENGINE_LEASE_RENEWER_H_

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "scheduler/engine/loop_probe.h"
#include "scheduler/engine/scheduler_metrics.h"
#include "scheduler/store/task_store.h"

namespace leasehold::scheduler {

// What renews; a session. Called on the renewer's thread only; must not block.
class RenewalSource {
 public:
  virtual ~RenewalSource() = default;
  // Everything that waits to be renewed now. May be empty.
  virtual std::vector<Renewal> TakeRenewals() = 0;
  // What became of those, in their order; an error means that nothing is known
  // to have been renewed.
  virtual void OnRenewed(
      absl::Span<const Renewal> renewals,
      const absl::StatusOr<std::vector<RenewOutcome>>& outcomes) = 0;
};

// Thread-safe.
class LeaseRenewer {
 public:
  // Every `sweep` all sources that `list_sources` gives are asked for what they
  // may have to write without a heartbeat: leases that were accepted or
  // started.
  LeaseRenewer(
      TaskStore& store, absl::Duration sweep,
      std::function<std::vector<std::shared_ptr<RenewalSource>>()> list_sources,
      SchedulerMetrics& metrics, const Clock& clock);
  ~LeaseRenewer() { Stop(); }

  // `source` has something to renew at once.
  void Renew(std::shared_ptr<RenewalSource> source);

  void Stop();

  const LoopProbe& probe() const { return probe_; }

 private:
  void Run();
  // Waits for sources or for the next sweep.
  std::vector<std::shared_ptr<RenewalSource>> NextSources(bool* stopped);
  void RenewAll(std::vector<std::shared_ptr<RenewalSource>> sources);

  TaskStore& store_;
  const absl::Duration sweep_;
  const std::function<std::vector<std::shared_ptr<RenewalSource>>()>
      list_sources_;
  SchedulerMetrics& metrics_;
  LoopProbe probe_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<RenewalSource>> waiting_;
  bool stopped_ = false;
  SteadyTime next_sweep_;  // Of the thread alone.
  std::thread thread_;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_ENGINE_LEASE_RENEWER_H_
