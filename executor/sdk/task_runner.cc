#include "executor/sdk/task_runner.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <iterator>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/concurrency/thread_pool.h"
#include "common/logging/log.h"

namespace leasehold::executor {
namespace {

SteadyTime Now() { return std::chrono::steady_clock::now(); }

SteadyTime DeadlineFrom(SteadyTime start, absl::Duration timeout) {
  // Far enough to be never, and no arithmetic overflows.
  if (timeout > absl::Hours(24 * 365)) return SteadyTime::max();
  return start + absl::ToChronoNanoseconds(timeout);
}

HandlerResult Invoke(TaskRun& run) {
  HandlerContext ctx(run);
  try {
    return run.handler->Run(ctx);
  } catch (const std::exception& e) {
    return HandlerResult::Error(
        {ErrorClass::kRetryable, "HANDLER_EXCEPTION", e.what(), std::nullopt});
  } catch (...) {
    return HandlerResult::Error({ErrorClass::kRetryable, "HANDLER_EXCEPTION",
                                 "an exception that is no std::exception",
                                 std::nullopt});
  }
}

}  // namespace

class TaskRunner::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(Options options, RunObserver* observer)
      : options_(options), observer_(observer) {}

  void Start();
  void Close();
  void Push(std::vector<std::shared_ptr<TaskRun>>* runs);
  bool Cancel(const std::shared_ptr<TaskRun>& run, CancelReason reason);
  void SetPaused(bool paused);
  std::vector<std::shared_ptr<TaskRun>> StopTaking();
  void CancelRunning(CancelReason reason);
  bool WaitIdle(absl::Duration timeout);
  Load load() const;

 private:
  struct Worker {
    std::thread thread;
    std::shared_ptr<TaskRun> run;  // Null while idle.
    SteadyTime cancelled_at = SteadyTime::max();
    bool leaked = false;
    bool replaced = false;
    bool abandoned = false;  // The runner is gone.
  };

  void AddWorkerLocked();
  void Work(Worker* worker);
  void RunOne(Worker* worker, const std::shared_ptr<TaskRun>& run);
  // False when the worker's thread should end: another has taken its place.
  bool LeaveRunLocked(Worker* worker);
  void Watch();
  SteadyTime NextWatchLocked() const;
  void WatchFromLocked(SteadyTime at);
  std::vector<std::shared_ptr<TaskRun>> TakeOverdueLocked(SteadyTime now);
  std::vector<std::shared_ptr<TaskRun>> TakeLeakedLocked(SteadyTime now);

  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable idle_;
  std::condition_variable watch_;
  RunObserver* const observer_;
  std::deque<std::shared_ptr<TaskRun>> queue_;
  std::list<Worker> workers_;
  std::thread watcher_;
  SteadyTime watch_at_ = SteadyTime::max();
  int running_ = 0;
  int leaked_ = 0;
  bool paused_ = false;
  bool taking_ = true;
  bool closed_ = false;
  // Running and queued. A run leaves it before its report can be sent, so that
  // the lease that follows the report finds room.
  std::atomic<int> runs_{0};
};

void TaskRunner::Core::Start() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (int i = 0; i < options_.slots; ++i) AddWorkerLocked();
  watcher_ = std::thread([this] { Watch(); });
}

void TaskRunner::Core::AddWorkerLocked() {
  workers_.emplace_back();
  Worker* worker = &workers_.back();
  // The reference keeps `this` alive for a thread that outlives the runner.
  worker->thread =
      std::thread([self = shared_from_this(), worker] { self->Work(worker); });
}

void TaskRunner::Core::Work(Worker* worker) {
  NameThisThread("handler");
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    work_.wait(lock, [&] {
      return closed_ || (taking_ && !paused_ && !queue_.empty());
    });
    if (closed_) return;
    const std::shared_ptr<TaskRun> run = std::move(queue_.front());
    queue_.pop_front();
    worker->run = run;
    worker->cancelled_at = SteadyTime::max();
    ++running_;
    run->deadline = DeadlineFrom(Now(), run->attempt_timeout);
    WatchFromLocked(run->deadline);
    lock.unlock();
    RunOne(worker, run);
    lock.lock();
    if (!LeaveRunLocked(worker)) return;
  }
}

void TaskRunner::Core::RunOne(Worker* worker,
                              const std::shared_ptr<TaskRun>& run) {
  HandlerResult result = HandlerResult::Cancelled();
  if (!run->token.cancelled()) {
    const TaskRun::Phase before = run->phase.exchange(TaskRun::Phase::kStarted);
    if (before == TaskRun::Phase::kAccepted) observer_->OnStarted(run);
    result = Invoke(*run);
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (worker->abandoned) return;
    if (!worker->leaked) --runs_;
    worker->run = nullptr;
  }
  observer_->OnFinished(run, std::move(result));
}

bool TaskRunner::Core::LeaveRunLocked(Worker* worker) {
  if (worker->leaked) {
    --leaked_;
    if (worker->replaced) return false;
    worker->leaked = false;
  } else {
    --running_;
  }
  if (running_ == 0) idle_.notify_all();
  return true;
}

void TaskRunner::Core::WatchFromLocked(SteadyTime at) {
  if (at >= watch_at_) return;
  watch_at_ = at;
  watch_.notify_one();
}

SteadyTime TaskRunner::Core::NextWatchLocked() const {
  SteadyTime next = SteadyTime::max();
  for (const Worker& worker : workers_) {
    if (worker.run == nullptr || worker.leaked) continue;
    next = std::min(
        next, worker.cancelled_at == SteadyTime::max()
                  ? worker.run->deadline
                  : DeadlineFrom(worker.cancelled_at, options_.leak_grace));
  }
  return next;
}

void TaskRunner::Core::Watch() {
  NameThisThread("deadlines");
  std::unique_lock<std::mutex> lock(mutex_);
  while (!closed_) {
    if (watch_at_ == SteadyTime::max()) {
      watch_.wait(lock);
    } else {
      watch_.wait_until(lock, watch_at_);
    }
    const SteadyTime now = Now();
    if (closed_ || now < watch_at_) continue;
    const auto overdue = TakeOverdueLocked(now);
    const auto leaked = TakeLeakedLocked(now);
    watch_at_ = NextWatchLocked();
    lock.unlock();
    for (const auto& run : overdue) {
      run->cancellation.Cancel(CancelReason::kTimeout);
    }
    for (const auto& run : leaked) {
      LogError("handler ignores cancellation, slot leaked",
               {{"task", run->input.task_id},
                {"queue", run->input.queue},
                {"type", run->input.type},
                {"reason", CancelReasonName(run->token.reason())}});
      observer_->OnLeaked(run);
    }
    lock.lock();
  }
}

std::vector<std::shared_ptr<TaskRun>> TaskRunner::Core::TakeOverdueLocked(
    SteadyTime now) {
  std::vector<std::shared_ptr<TaskRun>> overdue;
  for (Worker& worker : workers_) {
    if (worker.run == nullptr || worker.cancelled_at != SteadyTime::max() ||
        worker.run->deadline > now) {
      continue;
    }
    worker.cancelled_at = now;
    overdue.push_back(worker.run);
  }
  return overdue;
}

std::vector<std::shared_ptr<TaskRun>> TaskRunner::Core::TakeLeakedLocked(
    SteadyTime now) {
  std::vector<std::shared_ptr<TaskRun>> leaked;
  int to_add = 0;
  for (Worker& worker : workers_) {
    if (worker.run == nullptr || worker.leaked ||
        worker.cancelled_at == SteadyTime::max() ||
        DeadlineFrom(worker.cancelled_at, options_.leak_grace) > now) {
      continue;
    }
    worker.leaked = true;
    --running_;
    --runs_;
    worker.replaced = ++leaked_ <= options_.max_leaked;
    if (worker.replaced) ++to_add;
    leaked.push_back(worker.run);
  }
  for (; to_add > 0; --to_add) AddWorkerLocked();
  if (running_ == 0) idle_.notify_all();
  return leaked;
}

void TaskRunner::Core::Push(std::vector<std::shared_ptr<TaskRun>>* runs) {
  size_t taken = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    while (taking_ && taken < runs->size() && runs_ < options_.max_runs) {
      ++runs_;
      queue_.push_back(std::move((*runs)[taken++]));
    }
  }
  runs->erase(runs->begin(), runs->begin() + static_cast<ptrdiff_t>(taken));
  const size_t to_wake = std::min<size_t>(taken, options_.slots);
  for (size_t i = 0; i < to_wake; ++i) work_.notify_one();
}

bool TaskRunner::Core::Cancel(const std::shared_ptr<TaskRun>& run,
                              CancelReason reason) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto queued = std::find(queue_.begin(), queue_.end(), run);
    if (queued != queue_.end()) {
      queue_.erase(queued);
      --runs_;
      run->cancellation.Cancel(reason);
      return true;
    }
    for (Worker& worker : workers_) {
      if (worker.run == run && worker.cancelled_at == SteadyTime::max()) {
        worker.cancelled_at = Now();
        WatchFromLocked(DeadlineFrom(worker.cancelled_at, options_.leak_grace));
      }
    }
  }
  // Without the lock: the handler's callbacks run here.
  run->cancellation.Cancel(reason);
  return false;
}

void TaskRunner::Core::SetPaused(bool paused) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (paused_ == paused) return;
    paused_ = paused;
  }
  if (!paused) work_.notify_all();
}

std::vector<std::shared_ptr<TaskRun>> TaskRunner::Core::StopTaking() {
  const std::lock_guard<std::mutex> lock(mutex_);
  taking_ = false;
  std::vector<std::shared_ptr<TaskRun>> queued(
      std::make_move_iterator(queue_.begin()),
      std::make_move_iterator(queue_.end()));
  queue_.clear();
  runs_ -= static_cast<int>(queued.size());
  return queued;
}

void TaskRunner::Core::CancelRunning(CancelReason reason) {
  std::vector<std::shared_ptr<TaskRun>> running;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Worker& worker : workers_) {
      if (worker.run != nullptr && !worker.leaked)
        running.push_back(worker.run);
    }
  }
  for (const auto& run : running) Cancel(run, reason);
}

bool TaskRunner::Core::WaitIdle(absl::Duration timeout) {
  std::unique_lock<std::mutex> lock(mutex_);
  return idle_.wait_for(lock, absl::ToChronoNanoseconds(timeout),
                        [&] { return running_ == 0 && queue_.empty(); });
}

TaskRunner::Load TaskRunner::Core::load() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {running_, static_cast<int>(queue_.size()), leaked_};
}

void TaskRunner::Core::Close() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
  }
  work_.notify_all();
  watch_.notify_all();
  watcher_.join();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (Worker& worker : workers_) {
      worker.abandoned = worker.leaked && worker.run != nullptr;
      if (worker.abandoned) worker.thread.detach();
    }
  }
  for (Worker& worker : workers_) {
    if (worker.thread.joinable()) worker.thread.join();
  }
}

TaskRunner::TaskRunner(Options options, RunObserver* observer)
    : core_(std::make_shared<Core>(options, observer)) {
  core_->Start();
}

TaskRunner::~TaskRunner() { core_->Close(); }

void TaskRunner::Push(std::vector<std::shared_ptr<TaskRun>>* runs) {
  core_->Push(runs);
}
bool TaskRunner::Cancel(const std::shared_ptr<TaskRun>& run,
                        CancelReason reason) {
  return core_->Cancel(run, reason);
}
void TaskRunner::SetPaused(bool paused) { core_->SetPaused(paused); }
std::vector<std::shared_ptr<TaskRun>> TaskRunner::StopTaking() {
  return core_->StopTaking();
}
void TaskRunner::CancelRunning(CancelReason reason) {
  core_->CancelRunning(reason);
}
bool TaskRunner::WaitIdle(absl::Duration timeout) {
  return core_->WaitIdle(timeout);
}
TaskRunner::Load TaskRunner::load() const { return core_->load(); }

}  // namespace leasehold::executor
