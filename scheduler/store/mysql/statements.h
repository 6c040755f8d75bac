// The SQL of the hot path, as functions of its values. The store runs exactly
// these texts, and the EXPLAIN test checks them.
//
// Lists of ids hold at most kMaxIds: a longer IN list changes the plan on
// MariaDB. Row locks are taken by primary key, ids ascending, in task_live
// first; scans take none, and what acts on what they found is guarded.
#ifndef SCHEDULER_STORE_MYSQL_STATEMENTS_H_
#define SCHEDULER_STORE_MYSQL_STATEMENTS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "scheduler/store/task_store.h"

namespace leasehold::scheduler {

inline constexpr size_t kMaxIds = 400;

// Microseconds since 1970 of this statement's start, by the database's clock.
// The session runs in UTC, so that no local time is ambiguous.
inline constexpr char kNowUs[] =
    "CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)";

// Bits of task_live.flags.
inline constexpr int kFlagRetryPolicy = 1;
inline constexpr int kFlagExpiry = 2;
inline constexpr int kFlagCheckpoint = 4;

// ---- Submit ----
// Locks them; idempotency_key, id, content_hash.
std::string LockKeysSql(const std::string& queue,
                        absl::Span<const std::string> keys);
// id of every task that is live or has ended.
std::string ExistingTasksSql(absl::Span<const TaskId> ids);
// id, create_us.
std::string StoredBodiesSql(absl::Span<const TaskId> ids);

// ---- Dispatch ----
// lane_id, priority, run_us.
std::string ListReadyHeadsSql();
// id, run_us, lease_number, attempt, now.
std::string ScanReadySql(LaneId lane_id, int priority, int64_t after_run_us,
                         TaskId after_id, int64_t until_us, int limit,
                         const IdShare& share = {});
// LAST_INSERT_ID becomes the time of the claim.
std::string ClaimSql(absl::Span<const Claim> claims);
// id, lease_number, holder, state_us: who won.
std::string ClaimWinnersSql(absl::Span<const TaskId> ids);
// Columns as kBodyColumns, then payload, checkpoint.
std::string LeaseBodiesSql(absl::Span<const TaskId> ids);

// ---- Leases ----
// Renews leases for which no cancellation was asked for.
std::string RenewSql(absl::Span<const Renewal> renewals);
// Renews leases that are to be cancelled, until their deadline.
std::string RenewCancelledSql(absl::Span<const Renewal> renewals);
// DISPATCHED becomes RUNNING, and the lease is renewed.
std::string StartSql(absl::Span<const Renewal> renewals);
// id, lease_number, holder, cancel_expire_us, attempt has time left: what is
// leased now.
std::string LeaseStatesSql(absl::Span<const TaskId> ids);
// Locks what nobody else has locked; id.
std::string LockFreeRowsSql(absl::Span<const TaskId> ids);
std::string FlagCheckpointsSql(absl::Span<const TaskId> ids);
// As kLeasedColumns. At most `limit`, in no order.
std::string FindExpiredLeasesSql(int limit);
std::string FindOverdueCancelsSql(int limit);
std::string ListLeasesSql(HolderId holder);
std::string FindExpiredTasksSql(int limit);

// ---- Change ----
// As kLiveColumns, then flags, now. Locks the rows.
std::string LockLiveSql(absl::Span<const TaskId> ids);
// Of tasks that have ended, without result and error: id, state, reason,
// lease_number, lease_expire_us, holder, attempt, start_us, finish_us.
std::string EndedStatesSql(absl::Span<const TaskId> ids);
// id, retry_policy, expire_us.
std::string BodyOptionsSql(absl::Span<const TaskId> ids);
// id, expire_us.
std::string ExpiryTimesSql(absl::Span<const TaskId> ids);
// id, cancel_reason, of those that have one.
std::string CancelReasonsSql(absl::Span<const TaskId> ids);
std::string DeleteSql(const char* table, absl::Span<const TaskId> ids);

// ---- Reads ----
// Live and ended in one statement, so that a task that moves is never missed.
std::string GetTasksSql(absl::Span<const TaskId> ids,
                        const ReadOptions& options);

// id, descending; the caller filters what they find.
std::string ListByPartitionKeySql(const std::string& partition_key,
                                  TaskId below, int limit);
std::string ListByStateSql(absl::Span<const int64_t> lanes,
                           absl::Span<const TaskState> states, TaskId below,
                           int limit);
std::string ListLiveSql(TaskId below, int limit);
std::string ListBodiesSql(TaskId below, int limit);

inline constexpr char kLeasedColumns[] =
    "id, lease_number, lane_id, holder, state, lease_expire_us, state_us, "
    "cancel_expire_us";
inline constexpr char kLiveColumns[] =
    "id, lane_id, phase, state, priority, run_us, attempt, rate_limited_count, "
    "expiry_count, lease_number, holder, lease_end, lease_expire_us, "
    "attempt_expire_us, cancel_expire_us, state_us, start_us, first_start_us";
inline constexpr size_t kLiveColumnCount = 18;

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_STORE_MYSQL_STATEMENTS_H_
