#include "scheduler/session/session_opener.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "common/logging/log.h"
#include "common/status/status_macros.h"

namespace leasehold::scheduler {
namespace {

constexpr int kThreads = 2;

// ABORTED tells an executor that it was superseded and must not come back; a
// deadlock in the database must not.
absl::Status OfStore(const absl::Status& status) {
  if (status.code() != absl::StatusCode::kAborted) return status;
  return absl::UnavailableError(status.message());
}

}  // namespace

SessionOpener::SessionOpener(TaskStore& store, TaskChanger& changer,
                             LaneDirectory& lanes, SessionRegistry& registry,
                             size_t max_waiting)
    : store_(store),
      changer_(changer),
      lanes_(lanes),
      registry_(registry),
      pool_("open-session", kThreads, max_waiting) {}

void SessionOpener::Open(const std::shared_ptr<ExecutorSession>& session) {
  const bool queued = pool_.TryRun([this, session] {
    absl::Status status = Identify(session);
    if (status.ok()) status = registry_.Supersede(session);
    if (status.ok()) status = OfStore(Welcome(session));
    if (status.ok()) return;
    LogWarning("session refused",
               {{"executor", session->executor_id()}, {"error", status}});
    session->Close(status);
  });
  if (!queued) {
    session->Close(absl::UnavailableError(
        "too many executors are connecting, reconnect with backoff"));
  }
}

absl::Status SessionOpener::Identify(
    const std::shared_ptr<ExecutorSession>& session) {
  const HelloMessage& hello = session->hello();
  absl::StatusOr<std::vector<LaneId>> lanes = lanes_.Intern(hello.lanes);
  if (!lanes.ok()) return OfStore(lanes.status());
  const absl::StatusOr<HolderId> holder =
      store_.InternHolder(hello.executor_id, hello.incarnation);
  if (!holder.ok()) return OfStore(holder.status());
  session->SetIdentity(*holder, *std::move(lanes));
  return absl::OkStatus();
}

absl::Status SessionOpener::Welcome(
    const std::shared_ptr<ExecutorSession>& session) {
  const HelloMessage& hello = session->hello();
  const HolderId holder = session->holder();
  LEASEHOLD_RETURN_IF_ERROR(GiveBackUnnamed(hello, holder));
  LEASEHOLD_ASSIGN_OR_RETURN(std::vector<ReportAck> held,
                             RenewNamed(hello, holder));
  const size_t held_count = held.size();
  if (!session->Open(std::move(held))) return absl::OkStatus();
  registry_.AddReady(session);
  LogInfo("executor connected", {{"executor", hello.executor_id},
                                 {"session", session->session_id()},
                                 {"address", hello.address},
                                 {"version", hello.version},
                                 {"slots", hello.slots},
                                 {"max_leases", hello.max_leases},
                                 {"held_leases", held_count}});
  return absl::OkStatus();
}

absl::Status SessionOpener::GiveBackUnnamed(const HelloMessage& hello,
                                            HolderId holder) {
  LEASEHOLD_ASSIGN_OR_RETURN(const std::vector<LeasedTask> leased,
                             store_.ListLeases(holder));
  const absl::flat_hash_set<LeaseRef> named(hello.held_leases.begin(),
                                            hello.held_leases.end());
  std::vector<LeaseRef> unnamed;
  std::vector<TaskId> ids;
  for (const LeasedTask& task : leased) {
    if (named.contains(task.lease)) continue;
    unnamed.push_back(task.lease);
    ids.push_back(task.lease.task_id);
  }
  if (ids.empty()) return absl::OkStatus();
  LogInfo("leases that the executor does not name go back",
          {{"executor", hello.executor_id}, {"leases", ids.size()}});
  return changer_.ChangeTasks(
      ids, /*reported=*/false,
      [&](size_t i, const TaskView& task) {
        return DecideNotHeld(task, unnamed[i], holder);
      },
      Role::kControl);
}

absl::StatusOr<std::vector<ReportAck>> SessionOpener::RenewNamed(
    const HelloMessage& hello, HolderId holder) {
  std::vector<Renewal> renewals;
  renewals.reserve(hello.held_leases.size());
  for (const LeaseRef& lease : hello.held_leases) {
    renewals.push_back({.lease = lease,
                        .holder = holder,
                        .lease_us = lanes_.DefaultLeaseUs()});
  }
  std::vector<ReportAck> acks;
  if (renewals.empty()) return acks;
  LEASEHOLD_ASSIGN_OR_RETURN(const std::vector<RenewOutcome> outcomes,
                             store_.RenewLeases(renewals));
  for (size_t i = 0; i < outcomes.size(); ++i) {
    acks.push_back({renewals[i].lease, outcomes[i] == RenewOutcome::kLost
                                           ? ReportDisposition::kStale
                                           : ReportDisposition::kRecorded});
  }
  return acks;
}

}  // namespace leasehold::scheduler
