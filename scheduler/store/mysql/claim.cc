// From the ready index's refill to a claimed lease's body.
#include <algorithm>
#include <unordered_map>

#include "common/status/status_macros.h"
#include "scheduler/store/mysql/database_error.h"
#include "scheduler/store/mysql/mysql_task_store.h"
#include "scheduler/store/mysql/rows.h"
#include "scheduler/store/mysql/statements.h"

namespace leasehold::scheduler {
namespace {

// Fills `won` for claims that a short count left open.
absl::Status FindWinners(Connection& connection, absl::Span<const Claim> claims,
                         int64_t claim_us, std::vector<bool>* won,
                         size_t offset) {
  std::vector<TaskId> ids;
  for (const Claim& claim : claims) ids.push_back(claim.id);
  LEASEHOLD_ASSIGN_OR_RETURN(
      const Rows rows,
      connection.Select("claim_winners", ClaimWinnersSql(ids), "iiii"));
  std::unordered_map<TaskId, size_t> row_of;
  for (size_t i = 0; i < rows.size(); ++i) row_of[rows.Int(i, 0)] = i;
  for (size_t i = 0; i < claims.size(); ++i) {
    const auto it = row_of.find(claims[i].id);
    // The time tells this claim from another replica's for the same holder.
    (*won)[offset + i] =
        it != row_of.end() &&
        rows.Int(it->second, 1) == claims[i].lease_number + 1 &&
        rows.Int(it->second, 2) == claims[i].holder &&
        rows.Int(it->second, 3) == claim_us;
  }
  return absl::OkStatus();
}

// A guarded UPDATE waits for locked rows. After a second it leaves them out:
// they are in somebody's hands.
absl::StatusOr<int64_t> ClaimUnlocked(Connection& connection,
                                      absl::Span<const Claim> claims) {
  std::vector<TaskId> ids;
  for (const Claim& claim : claims) ids.push_back(claim.id);
  LEASEHOLD_RETURN_IF_ERROR(connection.Execute("begin", "BEGIN").status());
  auto locked = connection.Select("lock_free_rows", LockFreeRowsSql(ids), "i");
  std::vector<Claim> free;
  if (locked.ok()) {
    for (size_t i = 0; i < locked->size(); ++i) {
      const auto it = std::find_if(
          claims.begin(), claims.end(),
          [&](const Claim& claim) { return claim.id == locked->Int(i, 0); });
      if (it != claims.end()) free.push_back(*it);
    }
  }
  int64_t claim_us = 0;
  absl::Status status = locked.status();
  if (status.ok() && !free.empty()) {
    status = connection.Execute("claim_leases", ClaimSql(free)).status();
    claim_us = connection.LastInsertId();
  }
  if (status.ok()) status = connection.Execute("commit", "COMMIT").status();
  if (!status.ok()) {
    const unsigned number = connection.last_error();
    // Whatever was begun ends here, or with the connection.
    if (!connection.broken() &&
        !connection.Execute("rollback", "ROLLBACK").ok()) {
      connection.MarkBroken();
    }
    return number == kErrLockWaitTimeout ? absl::AbortedError(status.message())
                                         : status;
  }
  return claim_us;
}

absl::Status ClaimChunk(Connection& connection, absl::Span<const Claim> claims,
                        size_t offset, ClaimResult* result) {
  auto matched = connection.Execute("claim_leases", ClaimSql(claims));
  int64_t claim_us = 0;
  if (matched.ok()) {
    claim_us = connection.LastInsertId();
    if (*matched == 0) claim_us = 0;
  } else if (connection.last_error() == kErrLockWaitTimeout) {
    LEASEHOLD_ASSIGN_OR_RETURN(claim_us, ClaimUnlocked(connection, claims));
  } else {
    return matched.status();
  }
  if (result->now_us == 0) result->now_us = claim_us;
  if (matched.ok() && *matched == static_cast<int64_t>(claims.size())) {
    std::fill_n(result->won.begin() + static_cast<std::ptrdiff_t>(offset),
                claims.size(), true);
    return absl::OkStatus();
  }
  if (claim_us == 0) return absl::OkStatus();  // None of them.
  return FindWinners(connection, claims, claim_us, &result->won, offset);
}

}  // namespace

absl::StatusOr<std::vector<ReadyHead>> MySqlTaskStore::ListReadyHeads() {
  LEASEHOLD_ASSIGN_OR_RETURN(
      const Rows rows,
      Read(Role::kRead, "list_ready_heads", ListReadyHeadsSql(), "iii"));
  std::vector<ReadyHead> heads;
  for (size_t i = 0; i < rows.size(); ++i) {
    heads.push_back({static_cast<LaneId>(rows.Int(i, 0)),
                     static_cast<int>(rows.Int(i, 1)), rows.Int(i, 2)});
  }
  return heads;
}

absl::StatusOr<ReadyPage> MySqlTaskStore::ScanReady(
    LaneId lane_id, int priority, int64_t after_run_us, TaskId after_id,
    int64_t until_us, int limit, const IdShare& share) {
  ReadyPage page;
  LEASEHOLD_RETURN_IF_ERROR(RunStatement(
      read_, "scan_ready", on_retry_,
      [&](Connection& connection) -> absl::Status {
        page = {};
        LEASEHOLD_ASSIGN_OR_RETURN(
            const Rows rows,
            connection.Select("scan_ready",
                              ScanReadySql(lane_id, priority, after_run_us,
                                           after_id, until_us, limit, share),
                              "iiiii"));
        for (size_t i = 0; i < rows.size(); ++i) {
          page.tasks.push_back({rows.Int(i, 0), lane_id, priority,
                                rows.Int(i, 1), rows.Int(i, 2),
                                static_cast<int>(rows.Int(i, 3))});
        }
        page.complete = rows.size() < static_cast<size_t>(limit);
        if (!rows.empty()) {
          page.now_us = rows.Int(0, 4);
          return absl::OkStatus();
        }
        LEASEHOLD_ASSIGN_OR_RETURN(page.now_us, SelectNowUs(connection));
        return absl::OkStatus();
      }));
  return page;
}

absl::StatusOr<ClaimResult> MySqlTaskStore::ClaimLeases(
    absl::Span<const Claim> claims) {
  ClaimResult result;
  result.won.assign(claims.size(), false);
  for (size_t i = 0; i < claims.size(); i += kMaxIds) {
    const auto chunk = claims.subspan(i, kMaxIds);
    const absl::Status status = RunStatement(
        claim_, "claim_leases", on_retry_, [&](Connection& connection) {
          return ClaimChunk(connection, chunk, i, &result);
        });
    // What earlier chunks won stands, so it is reported; callers claim the rest
    // again.
    if (!status.ok() && i == 0) return status;
    if (!status.ok()) break;
  }
  if (result.now_us == 0) {
    LEASEHOLD_RETURN_IF_ERROR(RunStatement(
        claim_, "claim_leases", on_retry_,
        [&](Connection& connection) -> absl::Status {
          LEASEHOLD_ASSIGN_OR_RETURN(result.now_us, SelectNowUs(connection));
          return absl::OkStatus();
        }));
  }
  return result;
}

absl::StatusOr<std::vector<LeaseBody>> MySqlTaskStore::LoadLeaseBodies(
    absl::Span<const TaskId> ids, int64_t max_bytes) {
  std::vector<LeaseBody> bodies;
  int64_t bytes = 0;
  // Bodies of 1 MiB must not come by the hundred, nor small ones in many
  // statements.
  size_t step = 32;
  for (size_t i = 0; i < ids.size() && bytes <= max_bytes;) {
    const auto chunk = ids.subspan(i, step);
    i += chunk.size();
    LEASEHOLD_ASSIGN_OR_RETURN(
        Rows rows, Read(Role::kRead, "load_lease_bodies", LeaseBodiesSql(chunk),
                        kBodyTypes));
    int64_t chunk_bytes = 0;
    for (size_t row = 0; row < rows.size() && bytes <= max_bytes; ++row) {
      LeaseBody body;
      body.id = rows.Int(row, 0);
      LEASEHOLD_ASSIGN_OR_RETURN(body.spec, SpecFromRow(rows, row));
      body.spec.payload.bytes = rows.TakeText(row, kSpecColumnCount);
      body.checkpoint = rows.TakeText(row, kSpecColumnCount + 1);
      const auto size = static_cast<int64_t>(body.spec.payload.bytes.size() +
                                             body.checkpoint.size());
      bytes += size;
      chunk_bytes += size;
      bodies.push_back(std::move(body));
    }
    step = chunk_bytes < (1 << 20) ? std::min(step * 4, kMaxIds) : size_t{8};
  }
  return bodies;
}

}  // namespace leasehold::scheduler
