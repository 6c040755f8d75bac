#include "scheduler/engine/polling_watch_hub.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/concurrency/thread_pool.h"
#include "common/ids/ids.h"
#include "common/logging/rate_limited_log.h"
#include "scheduler/engine/shutting_down.h"

namespace leasehold::scheduler {
namespace {

// Changes within this time of an update are merged into the next one.
constexpr auto kMergeTime = std::chrono::milliseconds(200);
// How soon the changes of other replicas are found; the contract says 1 s.
constexpr auto kPollTime = std::chrono::milliseconds(800);
constexpr absl::Duration kReadLimit = absl::Seconds(60);
constexpr size_t kTasksPerRead = 400;

}  // namespace

PollingWatchHub::PollingWatchHub(TaskStore& store, const EngineBounds& bounds,
                                 const Clock& clock)
    : store_(store),
      max_watches_(bounds.watches),
      clock_(clock),
      probe_("watch", kReadLimit, clock),
      thread_([this] { Run(); }) {}

void PollingWatchHub::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

absl::StatusOr<TaskWatchHub::WatchId> PollingWatchHub::Watch(
    TaskId id, OnUpdate on_update) {
  auto watcher = std::make_shared<Watcher>();
  watcher->task_id = id;
  watcher->on_update = std::move(on_update);
  WatchId watch;
  {
    std::lock_guard lock(mutex_);
    if (stopped_) {
      return ShuttingDown();
    }
    if (watchers_.size() >= max_watches_) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "this replica has ", max_watches_, " watches, try another one"));
    }
    watch = next_id_++;
    watchers_.emplace(watch, std::move(watcher));
    by_task_[id].push_back(watch);
    dirty_.insert(id);
    fresh_ = true;
  }
  changed_.notify_one();
  return watch;
}

void PollingWatchHub::Unwatch(WatchId watch) {
  std::unique_lock lock(mutex_);
  const auto it = watchers_.find(watch);
  if (it != watchers_.end()) {
    const TaskId id = it->second->task_id;
    watchers_.erase(it);
    std::vector<WatchId>& of_task = by_task_[id];
    std::erase(of_task, watch);
    if (of_task.empty()) by_task_.erase(id);
  }
  if (std::this_thread::get_id() == hub_thread_) return;
  told_.wait(lock, [&] { return telling_ != watch; });
}

void PollingWatchHub::OnChanged(absl::Span<const CommittedChange> changes) {
  bool any = false;
  {
    std::lock_guard lock(mutex_);
    if (by_task_.empty()) return;
    for (const CommittedChange& change : changes) {
      if (!by_task_.contains(change.id)) continue;
      any |=
          (change.after.has_value() ? dirty_ : ended_).insert(change.id).second;
    }
    if (any) fresh_ = true;
  }
  if (any) changed_.notify_one();
}

void PollingWatchHub::OnTouched(absl::Span<const TaskId> ids) {
  bool any = false;
  {
    std::lock_guard lock(mutex_);
    if (by_task_.empty()) return;
    for (const TaskId id : ids) {
      if (by_task_.contains(id)) any |= dirty_.insert(id).second;
    }
    if (any) fresh_ = true;
  }
  if (any) changed_.notify_one();
}

PollingWatchHub::Shown PollingWatchHub::ShownOf(const TaskRecord& task) {
  if (task.ended.has_value()) {
    return {task.ended->state, task.ended->lease_number, task.ended->attempt,
            false, task.progress};
  }
  return {task.live->state, task.live->lease_number, task.live->attempt,
          task.live->cancel_expire_us != 0, task.progress};
}

bool PollingWatchHub::Due(const Watcher& watcher, SteadyTime now) const {
  return !watcher.shown.has_value() || now - watcher.shown_at >= kMergeTime;
}

void PollingWatchHub::Run() {
  NameThisThread("watch");
  {
    std::lock_guard lock(mutex_);
    hub_thread_ = std::this_thread::get_id();
  }
  SteadyTime next_poll = clock_.SteadyNow() + kPollTime;
  while (true) {
    bool all = false;
    {
      std::unique_lock lock(mutex_);
      if (stopped_) break;
      // With something dirty that has to wait out its merge time, look again
      // soon; the wake-up of a new change comes at once.
      const auto wait =
          dirty_.empty() ? next_poll - clock_.SteadyNow()
                         : SteadyTime::duration(std::chrono::milliseconds(20));
      changed_.wait_for(lock, wait, [&] { return stopped_ || fresh_; });
      if (stopped_) break;
      fresh_ = false;
    }
    if (clock_.SteadyNow() >= next_poll) {
      next_poll = clock_.SteadyNow() + kPollTime;
      all = true;
    }
    LoopProbe::Round round(probe_);
    const std::vector<TaskId> ids = NextTasks(&all);
    for (size_t i = 0; i < ids.size(); i += kTasksPerRead) {
      ReadAndTell(absl::MakeConstSpan(ids).subspan(i, kTasksPerRead));
    }
  }
  std::vector<WatchId> left;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [watch, watcher] : watchers_) left.push_back(watch);
  }
  for (const WatchId watch : left) {
    End(watch, ShuttingDown());
  }
}

std::vector<TaskId> PollingWatchHub::NextTasks(bool* all) {
  const SteadyTime now = clock_.SteadyNow();
  std::vector<TaskId> ids;
  std::lock_guard lock(mutex_);
  if (*all) {
    for (const auto& [id, watches] : by_task_) ids.push_back(id);
    dirty_.clear();
    ended_.clear();
  } else {
    for (const TaskId id : ended_) {
      dirty_.erase(id);
      ids.push_back(id);
    }
    ended_.clear();
    for (const TaskId id : dirty_) {
      const auto watches = by_task_.find(id);
      if (watches == by_task_.end()) {
        ids.push_back(id);  // Only to be erased from dirty_ below.
        continue;
      }
      for (const WatchId watch : watches->second) {
        if (Due(*watchers_[watch], now)) {
          ids.push_back(id);
          break;
        }
      }
    }
    for (const TaskId id : ids) dirty_.erase(id);
  }
  std::erase_if(ids, [&](TaskId id) { return !by_task_.contains(id); });
  std::sort(ids.begin(), ids.end());
  return ids;
}

void PollingWatchHub::ReadAndTell(absl::Span<const TaskId> ids) {
  if (ids.empty()) return;
  absl::StatusOr<std::vector<TaskRecord>> tasks =
      store_.GetTasks(ids, ReadOptions{.result = true});
  if (!tasks.ok()) {
    // Watchers wait: the next poll tries again.
    static RateLimitedLog log;
    log.Warning("watched tasks not read, trying again",
                {{"tasks", ids.size()}, {"error", tasks.status()}});
    return;
  }
  auto task = tasks->begin();
  for (const TaskId id : ids) {
    while (task != tasks->end() && task->id < id) ++task;
    const bool found = task != tasks->end() && task->id == id;
    Tell(id, found ? &*task : nullptr);
  }
}

void PollingWatchHub::Tell(TaskId id, const TaskRecord* task) {
  std::vector<WatchId> watches;
  {
    std::lock_guard lock(mutex_);
    const auto it = by_task_.find(id);
    if (it != by_task_.end()) watches = it->second;
  }
  for (const WatchId watch : watches) {
    if (task == nullptr) {
      End(watch, absl::NotFoundError(
                     absl::StrCat("task ", FormatTaskId(id), ": not found")));
      continue;
    }
    std::shared_ptr<Watcher> watcher;
    {
      std::lock_guard lock(mutex_);
      const auto it = watchers_.find(watch);
      if (it == watchers_.end()) continue;
      watcher = it->second;
      const SteadyTime now = clock_.SteadyNow();
      const Shown shown = ShownOf(*task);
      if (watcher->shown == shown) continue;
      if (!IsTerminal(shown.state) && !Due(*watcher, now)) {
        dirty_.insert(id);
        continue;
      }
      watcher->shown = shown;
      watcher->shown_at = now;
      telling_ = watch;
    }
    watcher->on_update(*task);
    {
      std::lock_guard lock(mutex_);
      telling_ = 0;
    }
    told_.notify_all();
    if (task->ended.has_value()) Unwatch(watch);
  }
}

void PollingWatchHub::End(WatchId watch, const absl::Status& status) {
  std::shared_ptr<Watcher> watcher;
  {
    std::lock_guard lock(mutex_);
    const auto it = watchers_.find(watch);
    if (it == watchers_.end()) return;
    watcher = it->second;
    telling_ = watch;
  }
  watcher->on_update(status);
  {
    std::lock_guard lock(mutex_);
    telling_ = 0;
  }
  told_.notify_all();
  Unwatch(watch);
}

}  // namespace leasehold::scheduler
