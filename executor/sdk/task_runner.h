// Runs handlers: `slots` threads and a bounded queue in front of them.
//
// A thread that watches the clock cancels attempts that take longer than their
// timeout. A handler that goes on for `leak_grace` after its token was
// cancelled is counted a leaked slot; its thread is left to it and another one
// takes its place, so that handlers which ignore cancellation do not eat up the
// pool.
#ifndef EXECUTOR_SDK_TASK_RUNNER_H_
#define EXECUTOR_SDK_TASK_RUNNER_H_

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "executor/sdk/cancellation.h"
#include "executor/sdk/handler.h"
#include "executor/sdk/task_run.h"

namespace leasehold::executor {

// Called from the runner's threads, without any lock held.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  // The handler starts, and the run was announced as accepted before.
  virtual void OnStarted(const std::shared_ptr<TaskRun>& run) = 0;
  // The handler has ended; its slot is free. Also for a run that was cancelled
  // before its handler started.
  virtual void OnFinished(const std::shared_ptr<TaskRun>& run,
                          HandlerResult result) = 0;
  // The handler is not waited for any more; OnFinished may follow, much later.
  virtual void OnLeaked(const std::shared_ptr<TaskRun>& run) = 0;
};

class TaskRunner {
 public:
  struct Options {
    int slots = 1;
    int max_runs = 2;  // Running and queued together; at least `slots`.
    absl::Duration leak_grace = absl::Seconds(10);
    int max_leaked = 64;  // Further leaked threads are not replaced.
  };

  struct Load {
    int running = 0;
    int queued = 0;
    int leaked = 0;
  };

  // Starts the threads. `observer` outlives the runner.
  TaskRunner(Options options, RunObserver* observer);
  // Waits for the handlers that run, save leaked ones: those go on by
  // themselves and keep using their Handler.
  ~TaskRunner();
  TaskRunner(const TaskRunner&) = delete;
  TaskRunner& operator=(const TaskRunner&) = delete;

  // Takes what fits, from the front; the others stay in `runs`.
  void Push(std::vector<std::shared_ptr<TaskRun>>* runs);

  // Cancels a run. True when it was still queued: it is then removed, and the
  // observer does not hear of it again.
  bool Cancel(const std::shared_ptr<TaskRun>& run, CancelReason reason);

  // While paused, nothing that is queued starts.
  void SetPaused(bool paused);

  // Nothing starts from now on. Returns what was queued.
  std::vector<std::shared_ptr<TaskRun>> StopTaking();
  void CancelRunning(CancelReason reason);
  // True once no handler runs, save leaked ones.
  bool WaitIdle(absl::Duration timeout);

  Load load() const;

 private:
  // Shared with the threads, so that a leaked one that ends after the runner
  // finds it.
  class Core;
  std::shared_ptr<Core> core_;
};

}  // namespace leasehold::executor

#endif  // EXECUTOR_SDK_TASK_RUNNER_H_
