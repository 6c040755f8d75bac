#include "scheduler/store/mysql/statements.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "scheduler/domain/limits.h"
#include "scheduler/store/mysql/sql_text.h"

namespace leasehold::scheduler {
namespace {

// A value for each id, grouped by value: a CASE over IN lists, which the
// servers search by halves, or the value alone when all ids share it.
template <typename Item, typename GetId, typename GetValue>
void AppendById(SqlText& sql, absl::Span<const Item> items, GetId get_id,
                GetValue get_value) {
  std::map<int64_t, std::vector<int64_t>> ids_by_value;
  for (const Item& item : items) {
    ids_by_value[get_value(item)].push_back(get_id(item));
  }
  // The commonest value needs no list.
  const auto common =
      std::max_element(ids_by_value.begin(), ids_by_value.end(),
                       [](const auto& a, const auto& b) {
                         return a.second.size() < b.second.size();
                       });
  if (ids_by_value.size() == 1) {
    sql.Int(common->first);
    return;
  }
  sql.Raw("CASE");
  for (auto it = ids_by_value.begin(); it != ids_by_value.end(); ++it) {
    if (it == common) continue;
    sql.Raw(" WHEN id IN ").IdList(it->second).Raw(" THEN ").Int(it->first);
  }
  sql.Raw(" ELSE ").Int(common->first).Raw(" END");
}

template <typename Item, typename GetId>
std::vector<TaskId> SortedIds(absl::Span<const Item> items, GetId get_id) {
  std::vector<TaskId> ids;
  ids.reserve(items.size());
  for (const Item& item : items) ids.push_back(get_id(item));
  std::sort(ids.begin(), ids.end());
  return ids;
}

TaskId RenewalId(const Renewal& renewal) { return renewal.lease.task_id; }

// SET lease_expire_us: never shortens a lease.
void AppendLeaseEnd(SqlText& sql, absl::Span<const Renewal> renewals) {
  sql.Raw("lease_expire_us = GREATEST(lease_expire_us, ")
      .Raw(kNowUs)
      .Raw(" + ");
  AppendById(sql, renewals, RenewalId,
             [](const Renewal& r) { return r.lease_us; });
  sql.Raw(")");
}

// Guard: the lease is this holder's, and its attempt has time left.
void AppendHeldGuard(SqlText& sql, absl::Span<const Renewal> renewals) {
  sql.Raw(" WHERE id IN ")
      .IdList(SortedIds(renewals, RenewalId))
      .Raw(" AND phase = 1 AND lease_end = 0 AND lease_number = ");
  AppendById(sql, renewals, RenewalId,
             [](const Renewal& r) { return r.lease.lease_number; });
  sql.Raw(" AND holder = ");
  AppendById(sql, renewals, RenewalId,
             [](const Renewal& r) { return int64_t{r.holder}; });
  sql.Raw(" AND (attempt_expire_us = 0 OR attempt_expire_us > ")
      .Raw(kNowUs)
      .Raw(")");
}

std::string SelectByIds(absl::string_view head, absl::Span<const TaskId> ids,
                        absl::string_view tail = "") {
  return SqlText(head).Raw(" WHERE id IN ").IdList(ids).Raw(tail).str();
}

}  // namespace

std::string LockKeysSql(const std::string& queue,
                        absl::Span<const std::string> keys) {
  SqlText sql(
      "SELECT idempotency_key, id, content_hash FROM task_key "
      "FORCE INDEX (PRIMARY) WHERE queue = ");
  sql.Text(queue).Raw(" AND idempotency_key IN ");
  char separator = '(';
  for (const std::string& key : keys) {
    sql.Raw(absl::string_view(&separator, 1)).Text(key);
    separator = ',';
  }
  return sql.Raw(") FOR UPDATE").str();
}

std::string ExistingTasksSql(absl::Span<const TaskId> ids) {
  SqlText sql("SELECT id FROM task_live FORCE INDEX (PRIMARY) WHERE id IN ");
  sql.IdList(ids)
      .Raw(
          " UNION ALL SELECT id FROM task_result FORCE INDEX (PRIMARY) "
          "WHERE id IN ")
      .IdList(ids);
  return sql.str();
}

std::string StoredBodiesSql(absl::Span<const TaskId> ids) {
  return SelectByIds(
      "SELECT id, create_us FROM task_body FORCE INDEX (PRIMARY)", ids);
}

std::string ListReadyHeadsSql() {
  return "SELECT lane_id, priority, MIN(run_us) FROM task_live "
         "FORCE INDEX (ready) WHERE phase = 0 "
         "GROUP BY phase, lane_id, priority";
}

std::string ScanReadySql(LaneId lane_id, int priority, int64_t after_run_us,
                         TaskId after_id, int64_t until_us, int limit,
                         const IdShare& share) {
  // (run_us, id) > (?, ?) would give the index no bound to start from.
  SqlText sql("SELECT id, run_us, lease_number, attempt, ");
  sql.Raw(kNowUs)
      .Raw(" FROM task_live FORCE INDEX (ready) WHERE phase = 0 AND lane_id = ")
      .Int(lane_id)
      .Raw(" AND priority = ")
      .Int(priority)
      .Raw(" AND run_us >= ")
      .Int(after_run_us)
      .Raw(" AND run_us <= ")
      .Int(until_us)
      .Raw(" AND (run_us > ")
      .Int(after_run_us)
      .Raw(" OR id > ")
      .Int(after_id)
      .Raw(")");
  if (share.of > 1) {
    sql.Raw(" AND id % ").Int(share.of).Raw(" = ").Int(share.index);
  }
  sql.Raw(" ORDER BY run_us, id LIMIT ").Int(limit);
  return sql.str();
}

std::string ClaimSql(absl::Span<const Claim> claims) {
  const auto get_id = [](const Claim& claim) { return claim.id; };
  SqlText sql(
      "UPDATE task_live FORCE INDEX (PRIMARY) SET state_us = "
      "LAST_INSERT_ID(");
  sql.Raw(kNowUs).Raw("), lease_expire_us = ").Raw(kNowUs).Raw(" + ");
  AppendById(sql, claims, get_id,
             [](const Claim& claim) { return claim.lease_us; });
  sql.Raw(", holder = ");
  AppendById(sql, claims, get_id,
             [](const Claim& claim) { return int64_t{claim.holder}; });
  sql.Raw(
      ", phase = 1, state = 2, attempt = attempt + 1, "
      "lease_number = lease_number + 1, lease_end = 0, "
      "attempt_expire_us = 0, cancel_expire_us = 0");
  // Guard: still waiting, due, and not leased since the hint was made.
  sql.Raw(" WHERE id IN ")
      .IdList(SortedIds(claims, get_id))
      .Raw(" AND phase = 0 AND run_us <= ")
      .Raw(kNowUs)
      .Raw(" AND lease_number = ");
  AppendById(sql, claims, get_id,
             [](const Claim& claim) { return claim.lease_number; });
  return sql.str();
}

std::string ClaimWinnersSql(absl::Span<const TaskId> ids) {
  return SelectByIds(
      "SELECT id, lease_number, holder, state_us FROM task_live "
      "FORCE INDEX (PRIMARY)",
      ids, " AND phase = 1 AND state = 2");
}

std::string LeaseBodiesSql(absl::Span<const TaskId> ids) {
  SqlText sql(
      "SELECT b.id, l.queue, l.type, b.priority, b.payload_kind, "
      "b.schedule_us, b.expire_us, b.attempt_timeout_us, b.batch_id, "
      "b.partition_key, b.idempotency_key, b.traceparent, b.labels, "
      "b.retry_policy, b.payload, COALESCE(c.checkpoint, '') FROM task_body b "
      "JOIN lanes l FORCE INDEX (PRIMARY) ON l.id = b.lane_id "
      "LEFT JOIN task_checkpoint c FORCE INDEX (PRIMARY) ON c.id = b.id "
      "WHERE b.id IN ");
  return sql.IdList(ids).str();
}

std::string RenewSql(absl::Span<const Renewal> renewals) {
  SqlText sql("UPDATE task_live FORCE INDEX (PRIMARY) SET ");
  AppendLeaseEnd(sql, renewals);
  AppendHeldGuard(sql, renewals);
  return sql.Raw(" AND cancel_expire_us = 0").str();
}

std::string RenewCancelledSql(absl::Span<const Renewal> renewals) {
  SqlText sql("UPDATE task_live FORCE INDEX (PRIMARY) SET ");
  AppendLeaseEnd(sql, renewals);
  AppendHeldGuard(sql, renewals);
  return sql.Raw(" AND cancel_expire_us > ").Raw(kNowUs).str();
}

std::string StartSql(absl::Span<const Renewal> renewals) {
  SqlText sql(
      "UPDATE task_live FORCE INDEX (PRIMARY) SET state = 3, state_us = ");
  sql.Raw(kNowUs).Raw(", start_us = ");
  AppendById(sql, renewals, RenewalId,
             [](const Renewal& r) { return r.start_us; });
  // Assignments run from left to right: start_us is the new one here.
  sql.Raw(
      ", first_start_us = IF(first_start_us = 0, start_us, first_start_us)");
  sql.Raw(", attempt_expire_us = ");
  AppendById(sql, renewals, RenewalId, [](const Renewal& r) {
    return r.start_us + r.attempt_timeout_us + kAttemptTimeoutGraceUs;
  });
  sql.Raw(", ");
  AppendLeaseEnd(sql, renewals);
  AppendHeldGuard(sql, renewals);
  // Guard: a start that is told again changes nothing.
  return sql.Raw(" AND state = 2").str();
}

std::string LeaseStatesSql(absl::Span<const TaskId> ids) {
  return SelectByIds(
      absl::StrCat("SELECT id, lease_number, holder, cancel_expire_us, "
                   "attempt_expire_us = 0 OR attempt_expire_us > ",
                   kNowUs, " FROM task_live FORCE INDEX (PRIMARY)"),
      ids, " AND phase = 1 AND lease_end = 0");
}

std::string LockFreeRowsSql(absl::Span<const TaskId> ids) {
  return SelectByIds("SELECT id FROM task_live FORCE INDEX (PRIMARY)", ids,
                     " FOR UPDATE SKIP LOCKED");
}

std::string FlagCheckpointsSql(absl::Span<const TaskId> ids) {
  return SelectByIds(
      absl::StrCat(
          "UPDATE task_live FORCE INDEX (PRIMARY) SET flags = flags | ",
          kFlagCheckpoint),
      ids);
}

// Sorted by the caller: an ORDER BY would sort in the database.
std::string FindExpiredLeasesSql(int limit) {
  return absl::StrCat("SELECT ", kLeasedColumns,
                      " FROM task_live FORCE INDEX (ready) WHERE phase = 1 "
                      "AND lease_expire_us <= ",
                      kNowUs, " LIMIT ", limit);
}

std::string FindOverdueCancelsSql(int limit) {
  return absl::StrCat(
      "SELECT id FROM task_live FORCE INDEX (ready) "
      "WHERE phase = 1 AND cancel_expire_us > 0 AND "
      "cancel_expire_us <= ",
      kNowUs, " LIMIT ", limit);
}

std::string ListLeasesSql(HolderId holder) {
  return absl::StrCat("SELECT ", kLeasedColumns,
                      " FROM task_live FORCE INDEX (ready) WHERE phase = 1 "
                      "AND holder = ",
                      holder);
}

std::string FindExpiredTasksSql(int limit) {
  return absl::StrCat(
      "SELECT id FROM task_expiry FORCE INDEX (by_time) WHERE expire_us <= ",
      kNowUs, " ORDER BY expire_us, id LIMIT ", limit);
}

std::string LockLiveSql(absl::Span<const TaskId> ids) {
  return SelectByIds(absl::StrCat("SELECT ", kLiveColumns, ", flags, ", kNowUs,
                                  " FROM task_live FORCE INDEX (PRIMARY)"),
                     ids, " FOR UPDATE");
}

std::string EndedStatesSql(absl::Span<const TaskId> ids) {
  return SelectByIds(
      "SELECT id, state, reason, lease_number, lease_expire_us, holder, "
      "attempt, start_us, finish_us FROM task_result FORCE INDEX (PRIMARY)",
      ids);
}

std::string BodyOptionsSql(absl::Span<const TaskId> ids) {
  return SelectByIds(
      "SELECT id, retry_policy, expire_us FROM task_body FORCE INDEX (PRIMARY)",
      ids);
}

std::string ExpiryTimesSql(absl::Span<const TaskId> ids) {
  return SelectByIds(
      "SELECT id, expire_us FROM task_expiry FORCE INDEX (PRIMARY)", ids);
}

std::string CancelReasonsSql(absl::Span<const TaskId> ids) {
  return SelectByIds(
      "SELECT id, COALESCE(cancel_reason, '') FROM task_checkpoint FORCE INDEX "
      "(PRIMARY)",
      ids);
}

std::string DeleteSql(const char* table, absl::Span<const TaskId> ids) {
  // Both servers now and then scan a small table for `DELETE .. WHERE id IN`,
  // whatever hint or ORDER BY it has, and then wait for rows that others have
  // locked. A join in a fixed order leaves them one way: a look-up by primary
  // key for each id.
  SqlText sql("DELETE t FROM (");
  const char* separator = "SELECT ";
  const char* name = " AS id";
  for (const TaskId id : ids) {
    sql.Raw(separator).Int(id).Raw(name);
    separator = " UNION ALL SELECT ";
    name = "";
  }
  return sql.Raw(") d STRAIGHT_JOIN ")
      .Raw(table)
      .Raw(" t FORCE INDEX (PRIMARY) ON t.id = d.id")
      .str();
}

std::string GetTasksSql(absl::Span<const TaskId> ids,
                        const ReadOptions& options) {
  SqlText sql(
      "SELECT b.id, n.queue, n.type, b.priority, b.payload_kind, "
      "b.schedule_us, b.expire_us, b.attempt_timeout_us, b.batch_id, "
      "b.partition_key, b.idempotency_key, b.traceparent, b.labels, "
      "b.retry_policy, b.create_us");
  sql.Raw(options.payload ? ", b.payload" : ", ''");
  // kLiveColumns of l, all 0 when the task is not live.
  for (absl::string_view column : absl::StrSplit(kLiveColumns, ", ")) {
    sql.Raw(", COALESCE(l.").Raw(column).Raw(", 0)");
  }
  for (absl::string_view column :
       {"state", "reason", "lease_number", "lease_expire_us", "holder",
        "attempt", "start_us", "finish_us", "result_kind"}) {
    sql.Raw(", COALESCE(r.").Raw(column).Raw(", 0)");
  }
  sql.Raw(
      ", COALESCE(r.error_class, -1), COALESCE(r.error_code, ''), "
      "COALESCE(r.error_message, ''), COALESCE(r.retry_after_us, 0)");
  sql.Raw(options.result ? ", COALESCE(r.result, '')" : ", ''");
  sql.Raw(
      ", COALESCE(e.executor_id, '') FROM task_body b "
      "JOIN lanes n FORCE INDEX (PRIMARY) ON n.id = b.lane_id "
      "LEFT JOIN task_live l FORCE INDEX (PRIMARY) ON l.id = b.id "
      "LEFT JOIN task_result r FORCE INDEX (PRIMARY) ON r.id = b.id "
      "LEFT JOIN executors e FORCE INDEX (PRIMARY) ON e.id = "
      "COALESCE(l.holder, r.holder) "
      "WHERE b.id IN ");
  return sql.IdList(ids).str();
}

std::string ListByPartitionKeySql(const std::string& partition_key,
                                  TaskId below, int limit) {
  SqlText sql(
      "SELECT id FROM task_body FORCE INDEX (by_partition_key) WHERE "
      "partition_key = ");
  return sql.Text(partition_key)
      .Raw(" AND id < ")
      .Int(below)
      .Raw(" ORDER BY id DESC LIMIT ")
      .Int(limit)
      .str();
}

std::string ListByStateSql(absl::Span<const int64_t> lanes,
                           absl::Span<const TaskState> states, TaskId below,
                           int limit) {
  SqlText sql;
  const char* separator = "";
  for (const int64_t lane : lanes) {
    for (const TaskState state : states) {
      sql.Raw(separator)
          .Raw(
              "(SELECT id FROM task_result FORCE INDEX (by_state) WHERE "
              "lane_id = ")
          .Int(lane)
          .Raw(" AND state = ")
          .Int(static_cast<int64_t>(state))
          .Raw(" AND id < ")
          .Int(below)
          .Raw(" ORDER BY id DESC LIMIT ")
          .Int(limit)
          .Raw(")");
      separator = " UNION ALL ";
    }
  }
  return sql.str();
}

std::string ListLiveSql(TaskId below, int limit) {
  return absl::StrCat(
      "SELECT id FROM task_live FORCE INDEX (PRIMARY) WHERE id < ", below,
      " ORDER BY id DESC LIMIT ", limit);
}

std::string ListBodiesSql(TaskId below, int limit) {
  return absl::StrCat(
      "SELECT id FROM task_body FORCE INDEX (PRIMARY) WHERE id < ", below,
      " ORDER BY id DESC LIMIT ", limit);
}

}  // namespace leasehold::scheduler
