// Heartbeats: leases renewed, starts written, progress and checkpoints saved.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "common/status/status_macros.h"
#include "scheduler/store/mysql/database_error.h"
#include "scheduler/store/mysql/mysql_task_store.h"
#include "scheduler/store/mysql/rows.h"
#include "scheduler/store/mysql/sql_text.h"
#include "scheduler/store/mysql/statements.h"

namespace leasehold::scheduler {
namespace {

std::vector<TaskId> IdsOf(absl::Span<const Renewal> renewals) {
  std::vector<TaskId> ids;
  for (const Renewal& renewal : renewals) ids.push_back(renewal.lease.task_id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

// What of `renewals` nobody else has locked, locked by this transaction; the
// ids of the others go to `skipped`.
absl::StatusOr<std::vector<Renewal>> LockFree(
    Connection& connection, absl::Span<const Renewal> renewals,
    std::unordered_set<TaskId>* skipped) {
  LEASEHOLD_ASSIGN_OR_RETURN(
      const Rows rows,
      connection.Select("lock_free_rows", LockFreeRowsSql(IdsOf(renewals)),
                        "i"));
  std::unordered_set<TaskId> locked;
  for (size_t i = 0; i < rows.size(); ++i) locked.insert(rows.Int(i, 0));
  std::vector<Renewal> free;
  for (const Renewal& renewal : renewals) {
    if (locked.contains(renewal.lease.task_id)) {
      free.push_back(renewal);
    } else {
      skipped->insert(renewal.lease.task_id);
    }
  }
  return free;
}

// The next renewals that fit one statement: as many as a list may hold, and no
// task twice, since a statement has one lease_number for each.
absl::Span<const Renewal> NextChunk(absl::Span<const Renewal> renewals) {
  std::unordered_set<TaskId> ids;
  size_t size = 0;
  while (size < std::min(renewals.size(), kMaxIds) &&
         ids.insert(renewals[size].lease.task_id).second) {
    ++size;
  }
  return renewals.first(size);
}

absl::Status WriteLeaseUpdates(
    Connection& connection, absl::Span<const LeaseUpdate> updates,
    const std::unordered_map<TaskId, LiveTask>& live) {
  SqlText sql(
      "INSERT INTO task_checkpoint (id, checkpoint, progress_done, "
      "progress_total, progress_message) VALUES ");
  std::vector<TaskId> ids;
  constexpr SqlText::SqlNull kNull;
  for (const LeaseUpdate& update : updates) {
    const auto it = live.find(update.lease.task_id);
    // Guard: a lease that is over must not overwrite what a newer one said.
    if (it == live.end() || it->second.phase != Phase::kLeased ||
        it->second.lease_number != update.lease.lease_number ||
        it->second.holder != update.holder) {
      continue;
    }
    const TaskId id = update.lease.task_id;
    if (update.progress.has_value() && update.checkpoint.has_value()) {
      sql.Row(id, *update.checkpoint, update.progress->done,
              update.progress->total, update.progress->message);
    } else if (update.progress.has_value()) {
      sql.Row(id, kNull, update.progress->done, update.progress->total,
              update.progress->message);
    } else if (update.checkpoint.has_value()) {
      sql.Row(id, *update.checkpoint, kNull, kNull, kNull);
    } else {
      continue;
    }
    ids.push_back(id);
  }
  if (ids.empty()) return absl::OkStatus();
  sql.Raw(
      " ON DUPLICATE KEY UPDATE "
      "checkpoint = COALESCE(VALUES(checkpoint), checkpoint), "
      "progress_done = COALESCE(VALUES(progress_done), progress_done), "
      "progress_total = COALESCE(VALUES(progress_total), progress_total), "
      "progress_message = COALESCE(VALUES(progress_message), "
      "progress_message)");
  LEASEHOLD_RETURN_IF_ERROR(
      connection.Execute("save_lease_updates", sql.str()).status());
  std::sort(ids.begin(), ids.end());
  for (const auto chunk : IdChunks(ids)) {
    LEASEHOLD_RETURN_IF_ERROR(
        connection.Execute("flag_checkpoints", FlagCheckpointsSql(chunk))
            .status());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int64_t> MySqlTaskStore::RenewWith(
    std::string (*statement)(absl::Span<const Renewal>),
    absl::Span<const Renewal> renewals, std::unordered_set<TaskId>* skipped) {
  if (renewals.empty()) return 0;
  int64_t matched = 0;
  bool lock_wait = false;
  LEASEHOLD_RETURN_IF_ERROR(RunStatement(
      renew_, "renew_leases", on_retry_,
      [&](Connection& connection) -> absl::Status {
        auto result = connection.Execute("renew_leases", statement(renewals));
        lock_wait =
            !result.ok() && connection.last_error() == kErrLockWaitTimeout;
        if (lock_wait) return absl::OkStatus();
        LEASEHOLD_ASSIGN_OR_RETURN(matched, std::move(result));
        return absl::OkStatus();
      }));
  if (!lock_wait) return matched;
  // Somebody has held a row for a second; the others must not lose their leases
  // for it.
  if (on_retry_) on_retry_("renew_leases", "lock_wait");
  LEASEHOLD_RETURN_IF_ERROR(RunTransaction(
      renew_, "renew_leases", on_retry_,
      [&](Connection& connection) -> absl::Status {
        LEASEHOLD_ASSIGN_OR_RETURN(const std::vector<Renewal> free,
                                   LockFree(connection, renewals, skipped));
        if (free.empty()) return absl::OkStatus();
        LEASEHOLD_ASSIGN_OR_RETURN(
            matched, connection.Execute("renew_leases", statement(free)));
        return absl::OkStatus();
      }));
  return matched;
}

absl::Status MySqlTaskStore::RenewStarts(absl::Span<const Renewal> renewals,
                                         std::unordered_set<TaskId>* skipped) {
  std::vector<Renewal> starts;
  for (const Renewal& renewal : renewals) {
    if (renewal.start_us != 0) starts.push_back(renewal);
  }
  // Each start is a value of its own, which the database searches one by one.
  constexpr size_t kStartsPerStatement = 50;
  for (size_t i = 0; i < starts.size(); i += kStartsPerStatement) {
    LEASEHOLD_RETURN_IF_ERROR(
        RenewWith(StartSql,
                  absl::MakeConstSpan(starts).subspan(i, kStartsPerStatement),
                  skipped)
            .status());
  }
  return absl::OkStatus();
}

absl::Status MySqlTaskStore::RenewChunk(absl::Span<const Renewal> renewals,
                                        std::vector<RenewOutcome>* outcomes) {
  std::unordered_set<TaskId> skipped;
  LEASEHOLD_RETURN_IF_ERROR(RenewStarts(renewals, &skipped));
  LEASEHOLD_ASSIGN_OR_RETURN(const int64_t matched,
                             RenewWith(RenewSql, renewals, &skipped));
  if (matched == static_cast<int64_t>(renewals.size())) {
    outcomes->insert(outcomes->end(), renewals.size(), RenewOutcome::kRenewed);
    return absl::OkStatus();
  }
  LEASEHOLD_ASSIGN_OR_RETURN(const Rows rows,
                             Read(Role::kRenew, "lease_states",
                                  LeaseStatesSql(IdsOf(renewals)), "iiiii"));
  std::unordered_map<TaskId, size_t> row_of;
  for (size_t i = 0; i < rows.size(); ++i) row_of[rows.Int(i, 0)] = i;
  std::vector<Renewal> cancelled;
  bool unknown = false;
  for (const Renewal& renewal : renewals) {
    const TaskId id = renewal.lease.task_id;
    const auto it = row_of.find(id);
    RenewOutcome outcome = RenewOutcome::kLost;
    if (it != row_of.end() &&
        rows.Int(it->second, 1) == renewal.lease.lease_number &&
        rows.Int(it->second, 2) == renewal.holder) {
      if (rows.Int(it->second, 3) != 0) {
        outcome = RenewOutcome::kCancelRequested;
        cancelled.push_back(renewal);
      } else if (rows.Int(it->second, 4) != 0) {
        outcome = RenewOutcome::kRenewed;
        unknown = unknown || skipped.contains(id);
      }
    }
    outcomes->push_back(outcome);
  }
  LEASEHOLD_RETURN_IF_ERROR(
      RenewWith(RenewCancelledSql, cancelled, &skipped).status());
  // Neither renewed nor lost: nothing that an outcome could say is true.
  if (unknown) {
    return absl::AbortedError("renew_leases: a lease is locked by another");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<RenewOutcome>> MySqlTaskStore::RenewLeases(
    absl::Span<const Renewal> renewals) {
  std::vector<RenewOutcome> outcomes;
  outcomes.reserve(renewals.size());
  absl::Status status;
  while (!renewals.empty()) {
    const auto chunk = NextChunk(renewals);
    renewals.remove_prefix(chunk.size());
    status.Update(RenewChunk(chunk, &outcomes));
    if (!status.ok() && !absl::IsAborted(status)) return status;
  }
  if (!status.ok()) return status;
  return outcomes;
}

absl::Status MySqlTaskStore::SaveLeaseUpdates(
    absl::Span<const LeaseUpdate> updates) {
  std::vector<TaskId> ids;
  for (const LeaseUpdate& update : updates) ids.push_back(update.lease.task_id);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  if (ids.empty()) return absl::OkStatus();
  return RunTransaction(
      control_, "save_lease_updates", on_retry_,
      [&](Connection& connection) -> absl::Status {
        std::unordered_map<TaskId, LiveTask> live;
        for (const auto chunk : IdChunks(ids)) {
          LEASEHOLD_ASSIGN_OR_RETURN(
              const Rows rows,
              connection.Select("lock_live", LockLiveSql(chunk), kLockTypes));
          for (size_t i = 0; i < rows.size(); ++i) {
            live[rows.Int(i, 0)] = LiveFromRow(rows, i, 0);
          }
        }
        return WriteLeaseUpdates(connection, updates, live);
      });
}

}  // namespace leasehold::scheduler
