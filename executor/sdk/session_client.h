// Keeps a session open with one scheduler or another, for as long as the
// executor lives.
//
//   runner's threads --OnFinished--> |         | <--OnMessage-- gRPC's threads
//                                    |  state  |
//            one thread, Loop:  connect, write, heartbeat, reconnect
//
// Everything that is written is written by the loop's thread: while one message
// is under way the next one gathers, and when nothing is under way a report
// leaves at once.
//
// Lock order: this class's mutex, then the runner's. No handler, and no
// callback of a cancellation token, runs with this class's mutex held.
#ifndef EXECUTOR_SDK_SESSION_CLIENT_H_
#define EXECUTOR_SDK_SESSION_CLIENT_H_

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/backoff/backoff.h"
#include "common/logging/rate_limited_log.h"
#include "executor/sdk/failure_log.h"
#include "executor/sdk/session_state.h"
#include "executor/sdk/session_stream.h"
#include "executor/sdk/task_runner.h"

namespace leasehold::executor {

class SessionClient : private SessionStream::Listener, private RunObserver {
 public:
  struct Options {
    std::vector<std::string> schedulers;  // host:port, at least one.
    SessionIdentity identity;
    TaskRunner::Options runner;
    absl::Duration connect_timeout = absl::Seconds(10);
    absl::Duration reconnect_initial = absl::Milliseconds(100);
    absl::Duration reconnect_max = absl::Seconds(5);
    // Called once, from the loop's thread, when the executor should leave: OK
    // when the scheduler drains it, else the error after which no session is
    // opened any more.
    std::function<void(absl::Status)> on_leave;
  };

  // `registry` outlives this.
  SessionClient(Options options, const Registry* registry);
  ~SessionClient() override;

  // Starts connecting.
  void Start();

  // Gives back what has not started and whatever arrives from now on.
  void StartDraining();
  TaskRunner& runner() { return *runner_; }
  // True once every report is acknowledged; false when `timeout` has passed or
  // no session will be opened any more.
  bool WaitSettled(absl::Duration timeout);
  // Says goodbye if there is a session, and ends. Idempotent.
  void Leave();

 private:
  // SessionStream::Listener
  void OnMessage(v1::SchedulerMessage* message) override;
  void OnWritten() override;
  void OnEnded() override;
  // RunObserver
  void OnStarted(const std::shared_ptr<TaskRun>& run) override;
  void OnFinished(const std::shared_ptr<TaskRun>& run,
                  HandlerResult result) override;
  void OnLeaked(const std::shared_ptr<TaskRun>& run) override;

  void OnLiveChange();
  void Loop();
  // Runs one session from hello to its end.
  absl::Status RunSession(const std::string& address);
  // Writes what is due until the stream should end; OK when it ended by itself.
  absl::Status Pump(SessionStream& stream);
  void SayGoodbye(SessionStream& stream, std::unique_lock<std::mutex>& lock);
  // False when no further session may be opened.
  bool JudgeEnd(const std::string& address, const absl::Status& status);
  void ApplyLocked(SessionState::Effects* effects);
  v1::ExecutorLoad LoadLocked() const;
  void UpdatePauseLocked();
  void NotifySettledLocked();
  // Wakes the loop if it waits.
  void WakeLocked();

  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable settled_;
  SessionState state_;  // Guarded by mutex_, as is everything down to `over_`.
  bool loop_waits_ = false;
  bool wake_ = false;
  bool stream_ended_ = false;
  bool write_in_flight_ = false;
  bool reconnect_wanted_ = false;
  bool leave_asked_ = false;
  bool leaving_ = false;
  bool over_ = false;  // No session will be opened any more.

  FailureLog failures_;
  std::atomic<bool> live_changed_{false};
  v1::ExecutorMessage outgoing_;  // The loop's, while no write is in flight.
  // The loop's own.
  std::mt19937_64 rng_;
  Backoff reconnect_backoff_;
  RateLimitedLog connect_log_;
  size_t next_address_ = 0;

  std::unique_ptr<TaskRunner> runner_;
  std::thread loop_;
};

}  // namespace leasehold::executor

#endif  // EXECUTOR_SDK_SESSION_CLIENT_H_
