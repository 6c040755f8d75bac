// A Session as the scheduler keeps it.
//
//   waiting for hello --hello--> opening --welcome--> ready --> closed
//
// While it opens, which takes a few statements on another thread, messages wait
// in a short list. Everything the session remembers of leases is a hint: for
// how much room its executor has, and what has to be written lazily. The
// database decides.
//
// Lock order: the registry's lock may be held when a session's is taken, never
// the other way round; neither is held while the sink or a batcher is called
// back into. The sink and the batchers never call the session with their own
// locks held.
#ifndef SCHEDULER_SESSION_EXECUTOR_SESSION_H_
#define SCHEDULER_SESSION_EXECUTOR_SESSION_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/dispatch/dispatch_target.h"
#include "scheduler/engine/finish_batcher.h"
#include "scheduler/engine/lease_renewer.h"
#include "scheduler/session/held_leases.h"
#include "scheduler/session/session.h"
#include "scheduler/session/session_services.h"

namespace leasehold::scheduler {

class ExecutorSession : public Session,
                        public DispatchTarget,
                        public ReportSource,
                        public RenewalSource,
                        public std::enable_shared_from_this<ExecutorSession> {
 public:
  // `services` outlives every session.
  ExecutorSession(std::string session_id, SessionServices& services,
                  std::shared_ptr<SessionSink> sink);

  // --- Session ---
  void OnMessage(ExecutorMessage message) override;
  void OnStreamEnded() override;

  // --- DispatchTarget ---
  HolderId holder() const override { return holder_; }
  const std::vector<LaneId>& lanes() const override { return lanes_; }
  Room GetRoom() const override;
  int Reserve(int leases) override;
  void Unreserve(int leases) override;
  bool Deliver(std::vector<LeaseMessage> leases,
               int64_t heartbeat_sequence) override;

  // --- ReportSource, RenewalSource ---
  void OnReportsDecided(std::vector<DecidedReport> decided) override;
  std::vector<Renewal> TakeRenewals() override;
  void OnRenewed(
      absl::Span<const Renewal> renewals,
      const absl::StatusOr<std::vector<RenewOutcome>>& outcomes) override;

  // --- For the opener, once, before anybody else knows the session ---
  const HelloMessage& hello() const { return hello_; }
  const std::string& session_id() const { return session_id_; }
  // Sets what never changes from then on.
  void SetIdentity(HolderId holder, std::vector<LaneId> lanes);
  // The session becomes ready: `held` are the leases of hello that are still
  // the executor's. False if the stream has ended meanwhile.
  bool Open(std::vector<ReportAck> held);

  // --- For the registry ---
  const std::string& executor_id() const { return hello_.executor_id; }
  // Ends the session: no more leases, and the stream ends with `status`.
  void Close(const absl::Status& status);
  void SendDrain(bool reconnect);
  bool ready() const;
  // The lease was taken from the executor. `accepted_in_time` is false for one
  // that was never accepted: the executor then gets none until it accepts one,
  // for a lease's duration, or until it reconnects.
  void OnLeaseTaken(const LeaseRef& lease, bool accepted_in_time);
  void OnCancelRequested(const LeaseRef& lease);
  int held_leases() const;
  int slots() const { return hello_.slots; }
  // Of the database's clock; when the executor was last heard.
  int64_t last_heard_us() const;

 private:
  enum class State { kWaitingForHello, kOpening, kReady, kClosed };

  void Dispatch(ExecutorMessage message);
  void OnAccepted(const AcceptedMessage& message);
  void OnStarted(const StartedMessage& message);
  void OnHeartbeat(HeartbeatMessage message);
  void OnOutcomes(OutcomesMessage message);
  void OnGoodbye();
  // Under the lock, both.
  Room RoomAt(int64_t now_us) const;
  void BecomeUnhealthy(const LeaseRef& lease, int64_t now_us);
  void SendHeartbeatAck(int64_t sequence, std::vector<LeaseRef> lost,
                        std::vector<LeaseRef> cancelled);

  const std::string session_id_;
  SessionServices& services_;
  const std::shared_ptr<SessionSink> sink_;
  // Written under the lock on the way from waiting to opening; constant from
  // then on.
  HelloMessage hello_;
  // Written by SetIdentity; constant once the session is ready. Whoever ends a
  // session that opens still may read the holder meanwhile.
  std::atomic<HolderId> holder_ = 0;
  std::vector<LaneId> lanes_;

  mutable std::mutex mutex_;
  State state_ = State::kWaitingForHello;
  std::vector<ExecutorMessage> early_;  // Came while opening.
  HeldLeases held_;
  int reserved_ = 0;  // Leases that are being made for this executor.
  bool draining_ = false;
  // Then it is tried again, since one that holds nothing has nothing to accept.
  int64_t unhealthy_until_us_ = 0;
  int64_t rejected_until_us_ = 0;
  int64_t last_heard_us_ = 0;
  int64_t heartbeat_sequence_ = 0;
  std::optional<int64_t> unacknowledged_;  // Heartbeat to be acknowledged next.
  std::optional<int64_t> renewing_;        // The one that is being written.
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_SESSION_EXECUTOR_SESSION_H_
