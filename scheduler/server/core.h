// The scheduler without its faces: everything between the store and the
// services, built and started in order, drained and stopped in reverse.
//
//   auto core = SchedulerCore::Start(options, std::move(store), metrics,
//   clock);
//   (*core)->submitter() ... serve ...
//   (*core)->Drain(absl::Seconds(8));
#ifndef SCHEDULER_SERVER_CORE_H_
#define SCHEDULER_SERVER_CORE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/metrics/metrics.h"
#include "common/time/clock.h"
#include "scheduler/engine/options.h"
#include "scheduler/engine/queue_control.h"
#include "scheduler/engine/task_control.h"
#include "scheduler/engine/task_reader.h"
#include "scheduler/engine/task_submitter.h"
#include "scheduler/engine/task_watch_hub.h"
#include "scheduler/session/session.h"
#include "scheduler/store/task_store.h"

namespace leasehold::scheduler {

// How long a loop's current round has been running, or has not come round.
struct LoopAge {
  std::string name;
  absl::Duration age;
  absl::Duration limit;  // Unhealthy beyond.
};

// Thread-safe after Start.
class SchedulerCore {
 public:
  // Reads lanes and queues, then starts every thread. The store's database must
  // be reachable: UNAVAILABLE otherwise. `metrics` and `clock` outlive the
  // core.
  static absl::StatusOr<std::unique_ptr<SchedulerCore>> Start(
      const EngineOptions& options, std::unique_ptr<TaskStore> store,
      MetricRegistry& metrics, const Clock& clock);

  virtual ~SchedulerCore() = default;

  virtual TaskSubmitter& submitter() = 0;
  virtual TaskReader& reader() = 0;
  virtual TaskControl& control() = 0;
  virtual QueueControl& queues() = 0;
  virtual TaskWatchHub& watch_hub() = 0;
  virtual SessionHost& sessions() = 0;

  virtual std::vector<LoopAge> LoopAges() const = 0;
  // The latest statement of the reaper, which runs twice a second, succeeded.
  virtual bool DatabaseUp() const = 0;

  // Step 1 of shutting down: refuses new sessions, sends Drain to the open ones
  // and closes them with UNAVAILABLE once their executors have left or half of
  // `limit` has passed; refuses new submits and reads, ends watches, and writes
  // what is queued. Blocks for at most about `limit`.
  virtual void Drain(absl::Duration limit) = 0;
  // Step 2, after the gRPC server has shut down: joins every thread.
  virtual void Stop() = 0;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_SERVER_CORE_H_
