// An executor in a process of its own:
//
//   leasehold::SignalWaiter signals;  // before any thread starts
//   Registry registry;
//   ... registry.Register(queue, type, handler) ...
//   auto executor = Executor::Create({.schedulers = {"127.0.0.1:7070"}},
//                                    std::move(registry));
//   absl::Status status = (*executor)->RunUntilSignal(signals);
//
// executor/example/main.cc is a whole one.
#ifndef EXECUTOR_SDK_EXECUTOR_H_
#define EXECUTOR_SDK_EXECUTOR_H_

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/process/signals.h"
#include "executor/sdk/registry.h"

namespace leasehold::executor {

class SessionClient;

struct ExecutorOptions {
  std::vector<std::string> schedulers;  // host:port of the replicas.
  // Unlike that of any other executor that runs: of two with one name the older
  // is told to leave. Default: the host name and a random part.
  std::string executor_id = {};
  std::string version = {};
  std::map<std::string, std::string> labels = {};
  int slots = 0;       // Handlers at once, 1-1024. Default: one per processor.
  int max_leases = 0;  // Slots plus local queue. Default: twice the slots.
  // How long handlers that run may go on once the executor was told to leave,
  absl::Duration drain_timeout = absl::Seconds(25);
  // and how long after their token was cancelled.
  absl::Duration leak_grace = absl::Seconds(10);
  // For the acknowledgements of the last reports, before the executor leaves.
  absl::Duration settle_timeout = absl::Seconds(5);
  absl::Duration reconnect_initial = absl::Milliseconds(100);
  // Nor longer than a third of the lease duration that the scheduler said.
  absl::Duration reconnect_max = absl::Seconds(5);
};

// INVALID_ARGUMENT with a line for every option that is wrong, defaults filled
// in.
absl::Status CheckOptions(ExecutorOptions options);

class Executor {
 public:
  // INVALID_ARGUMENT as CheckOptions says, or when nothing is registered.
  // Unreachable schedulers are no error: the executor keeps trying.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(
      ExecutorOptions options, Registry registry);
  ~Executor();

  // Works until Stop, or until a scheduler tells it to leave; then drains. OK
  // after a drain; else why no scheduler may be asked any more, such as ABORTED
  // when a newer executor of this name has come. Once.
  absl::Status Run();

  // As Run; SIGTERM and SIGINT stop it. A second one cuts the drain short.
  absl::Status RunUntilSignal(SignalWaiter& signals);

  // Starts the drain; again, cuts it short. Thread-safe.
  void Stop();

  // Handlers that ignored cancellation and still run. They use their Handler,
  // so while there are any, leave the process by _Exit instead of destroying
  // this.
  int leaked_slots() const;

 private:
  Executor(ExecutorOptions options, Registry registry);

  bool finished() const;
  void WaitForStop();
  // True when asked to cut the drain short before `timeout` has passed.
  bool WaitIdle(absl::Duration timeout);
  void Drain();

  const ExecutorOptions options_;
  const Registry registry_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int stops_ = 0;
  bool finished_ = false;
  absl::Status reason_;

  std::unique_ptr<SessionClient> client_;
};

}  // namespace leasehold::executor

#endif  // EXECUTOR_SDK_EXECUTOR_H_
