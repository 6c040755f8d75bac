// The executor's side of the session protocol: what is said, and when.
//
//   arrives                     here                          leaves
//   Welcome, Leases     ->  LeaseKeeper: what is held   ->  Hello, Heartbeat,
//   HeartbeatAck            unannounced_: not yet said      Accepted, Started,
//   ReportAcks          ->  ResultOutbox: unacknowledged -> Results, Released
//
// Outlives streams: MakeHello begins each of them. Nothing but hello is said
// before the welcome.
//
// Pure: no I/O, no threads, no clock reads. Not thread-safe.
#ifndef EXECUTOR_SDK_SESSION_STATE_H_
#define EXECUTOR_SDK_SESSION_STATE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/time/clock.h"
#include "executor/sdk/handler.h"
#include "executor/sdk/lease_keeper.h"
#include "executor/sdk/registry.h"
#include "executor/sdk/result_outbox.h"
#include "executor/sdk/task_run.h"
#include "leasehold/v1/executor_service.pb.h"

namespace leasehold::executor {

// Who this executor is.
struct SessionIdentity {
  std::string executor_id;
  std::string incarnation;
  std::string version;
  std::map<std::string, std::string> labels;
  int slots = 1;
  int max_leases = 2;
};

class SessionState {
 public:
  using Runs = std::vector<std::shared_ptr<TaskRun>>;

  // What a message asks the caller to do.
  struct Effects {
    Runs start;
    std::vector<std::pair<std::shared_ptr<TaskRun>, CancelReason>> cancel;
    bool welcomed = false;
    // Set by Drain: true to reconnect elsewhere, false to finish and leave.
    std::optional<bool> drain_and_reconnect;
  };

  // `registry` outlives this.
  SessionState(SessionIdentity identity, const Registry* registry,
               ResultOutbox::Limits limits = {});

  // First message of a new stream, sent at `now`.
  v1::ExecutorMessage MakeHello(SteadyTime now);

  // `jitter` in [0, 1). Moves what it keeps out of `message`.
  Effects OnMessage(v1::SchedulerMessage* message, SteadyTime now,
                    double jitter);

  // What the runner says.
  void OnStarted(const std::shared_ptr<TaskRun>& run, SteadyTime now);
  void OnFinished(TaskRun& run, HandlerResult result);
  // The same, for a report that was made without this.
  void ReportOn(TaskRun& run, std::optional<Report> report);
  void OnLeaked(TaskRun& run);
  // A handler has reported progress or a checkpoint.
  void OnLiveChange();

  // Gives back a lease whose handler does not run.
  void Release(TaskRun& run, v1::ReleaseReason reason);
  // Leases that arrive from now on are given back.
  void StartDraining() { draining_ = true; }

  // The next message to send; false when there is none for now.
  bool NextMessage(SteadyTime now, const v1::ExecutorLoad& load,
                   v1::ExecutorMessage* message);
  bool HeartbeatDue(SteadyTime now) const {
    return welcomed_ && next_heartbeat_ <= now;
  }
  // When NextMessage may have something without further events.
  SteadyTime NextWake() const;

  // No acknowledgement has come for longer than a lease lasts: the stream is
  // dead, whatever the transport says.
  bool IsSilent(SteadyTime now) const;

  bool draining() const { return draining_; }
  bool welcomed() const { return welcomed_; }
  // No longer between two attempts to reach a scheduler: one that comes back
  // waits a lease's duration to be told who still works, and this leaves time
  // for two attempts more. Infinite before the first welcome.
  absl::Duration reconnect_limit() const {
    return lease_duration_ == absl::ZeroDuration() ? absl::InfiniteDuration()
                                                   : lease_duration_ / 3;
  }
  bool outbox_full() const { return outbox_.full(); }
  // Every report is acknowledged and no lease is held, lost ones apart.
  bool settled() const;
  int64_t rejected_total() const { return rejected_total_; }
  size_t leases_held() const { return keeper_.size(); }
  const std::string& session_id() const { return session_id_; }

 private:
  void OnWelcome(v1::Welcome* welcome, SteadyTime now, Effects* effects);
  void OnLeases(v1::Leases* leases, SteadyTime now, Effects* effects);
  void TakeLease(v1::Lease* lease, int64_t heartbeat_sequence, SteadyTime now,
                 Effects* effects);
  void OnHeartbeatAck(const v1::HeartbeatAck& ack, SteadyTime now,
                      Effects* effects);
  void OnReportAcks(const v1::ReportAcks& acks, SteadyTime now, double jitter);
  void Lose(const LeaseKey& key, Effects* effects);
  void CancelHeld(const LeaseKey& key, Effects* effects);
  void FillHeartbeat(SteadyTime now, const v1::ExecutorLoad& load,
                     v1::Heartbeat* heartbeat);
  bool FillAnnouncement(v1::ExecutorMessage* message);
  void AnnounceFrom(SteadyTime now);

  const SessionIdentity identity_;
  const Registry& registry_;
  LeaseKeeper keeper_;
  ResultOutbox outbox_;

  bool draining_ = false;
  bool welcomed_ = false;
  std::string session_id_;
  absl::Duration heartbeat_interval_;
  absl::Duration lease_duration_;
  absl::Duration accept_timeout_;
  absl::Duration silence_limit_;
  SteadyTime last_heard_;
  SteadyTime last_heartbeat_;
  SteadyTime next_heartbeat_ = SteadyTime::max();

  // Leases that are neither accepted nor started in the scheduler's eyes, and
  // runs that started after they were accepted.
  Runs unannounced_;
  Runs started_;
  SteadyTime announce_at_ = SteadyTime::max();

  int64_t rejected_total_ = 0;
  // Lost leases whose handlers still run.
  int lost_running_ = 0;
};

}  // namespace leasehold::executor

#endif  // EXECUTOR_SDK_SESSION_STATE_H_
