// TaskWatchHub on one thread: reads the tasks that changed here at once, and
// everything that is watched once a second, and compares with what each watcher
// was shown last.
#ifndef SCHEDULER_ENGINE_POLLING_WATCH_HUB_H_
#define SCHEDULER_ENGINE_POLLING_WATCH_HUB_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "scheduler/engine/change_listener.h"
#include "scheduler/engine/loop_probe.h"
#include "scheduler/engine/options.h"
#include "scheduler/engine/task_watch_hub.h"

namespace leasehold::scheduler {

class PollingWatchHub : public TaskWatchHub, public ChangeListener {
 public:
  PollingWatchHub(TaskStore& store, const EngineBounds& bounds,
                  const Clock& clock);
  ~PollingWatchHub() override { Stop(); }

  absl::StatusOr<WatchId> Watch(TaskId id, OnUpdate on_update) override;
  void Unwatch(WatchId watch) override;

  // Of watched tasks only; what is not watched costs one look-up.
  void OnChanged(absl::Span<const CommittedChange> changes) override;
  // Progress or a start was written, which no CommittedChange tells of.
  void OnTouched(absl::Span<const TaskId> ids);

  // Ends every watch with UNAVAILABLE and joins. Idempotent.
  void Stop();

  const LoopProbe& probe() const { return probe_; }

 private:
  // What a watcher can see change; heartbeats move lease_expire_us all the time
  // and do not count.
  struct Shown {
    TaskState state;
    int64_t lease_number;
    int attempt;
    bool cancel_requested;
    std::optional<Progress> progress;
    friend bool operator==(const Shown&, const Shown&) = default;
  };
  struct Watcher {
    TaskId task_id = 0;
    OnUpdate on_update;
    std::optional<Shown> shown;
    SteadyTime shown_at;
  };

  static Shown ShownOf(const TaskRecord& task);

  void Run();
  // The tasks to read now: the changed ones whose watchers may hear of it, or
  // all.
  std::vector<TaskId> NextTasks(bool* all);
  bool Due(const Watcher& watcher, SteadyTime now) const;
  void ReadAndTell(absl::Span<const TaskId> ids);
  void Tell(TaskId id, const TaskRecord* task);
  void End(WatchId watch, const absl::Status& status);

  TaskStore& store_;
  const size_t max_watches_;
  const Clock& clock_;
  LoopProbe probe_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  WatchId next_id_ = 1;
  absl::flat_hash_map<WatchId, std::shared_ptr<Watcher>> watchers_;
  absl::flat_hash_map<TaskId, std::vector<WatchId>> by_task_;
  absl::flat_hash_set<TaskId> dirty_;
  absl::flat_hash_set<TaskId>
      ended_;            // Told at once: who waits waits for this.
  bool fresh_ = false;   // Something came into these since the last look.
  WatchId telling_ = 0;  // Whose on_update runs now; Unwatch waits for it.
  std::condition_variable told_;
  std::thread::id hub_thread_;  // thread_'s own; that one is for Stop alone.
  std::thread thread_;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_ENGINE_POLLING_WATCH_HUB_H_
