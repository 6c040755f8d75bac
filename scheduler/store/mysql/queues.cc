// The settings of queues, and the replicas that act on them.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "scheduler/store/mysql/mysql_task_store.h"
#include "scheduler/store/mysql/spec_json.h"
#include "scheduler/store/mysql/sql_text.h"
#include "scheduler/store/mysql/statements.h"

namespace leasehold::scheduler {
namespace {

constexpr int64_t kForgetReplicaUs = 24 * 3'600'000'000;

constexpr char kSelectQueues[] =
    "SELECT name, paused, version, retry_policy, attempt_timeout_us, "
    "lease_duration_us FROM queues";
constexpr char kQueueTypes[] = "tiitii";

absl::StatusOr<QueueRow> QueueFromRow(Rows& rows, size_t i) {
  QueueRow queue;
  queue.name = rows.TakeText(i, 0);
  queue.paused = rows.Int(i, 1) != 0;
  queue.version = rows.Int(i, 2);
  LEASEHOLD_ASSIGN_OR_RETURN(queue.retry_policy,
                             RetryPolicyFromJson(rows.Text(i, 3)));
  queue.attempt_timeout_us = rows.Int(i, 4);
  queue.lease_duration_us = rows.Int(i, 5);
  return queue;
}

// The next version, under the counter's lock, so that versions commit in order.
absl::StatusOr<int64_t> NextVersion(Connection& connection) {
  LEASEHOLD_ASSIGN_OR_RETURN(
      const int64_t matched,
      connection.Execute("next_queue_version",
                         "UPDATE id_blocks SET next = LAST_INSERT_ID(next) + 1 "
                         "WHERE name = 'queue'"));
  if (matched != 1) return absl::InternalError("id_blocks: row is missing");
  return connection.LastInsertId();
}

}  // namespace

absl::StatusOr<std::vector<QueueRow>> MySqlTaskStore::ListQueues() {
  LEASEHOLD_ASSIGN_OR_RETURN(
      Rows rows,
      Read(Role::kControl, "list_queues",
           absl::StrCat(kSelectQueues, " ORDER BY name"), kQueueTypes));
  std::vector<QueueRow> queues;
  for (size_t i = 0; i < rows.size(); ++i) {
    LEASEHOLD_ASSIGN_OR_RETURN(QueueRow queue, QueueFromRow(rows, i));
    queues.push_back(std::move(queue));
  }
  return queues;
}

absl::StatusOr<QueueRow> MySqlTaskStore::SetQueuePaused(const std::string& name,
                                                        bool paused) {
  QueueRow queue;
  LEASEHOLD_RETURN_IF_ERROR(RunTransaction(
      control_, "set_queue_paused", on_retry_,
      [&](Connection& connection) -> absl::Status {
        LEASEHOLD_ASSIGN_OR_RETURN(const int64_t version,
                                   NextVersion(connection));
        LEASEHOLD_ASSIGN_OR_RETURN(Rows rows,
                                   connection.Select("lock_queue",
                                                     SqlText(kSelectQueues)
                                                         .Raw(" WHERE name = ")
                                                         .Text(name)
                                                         .Raw(" FOR UPDATE")
                                                         .str(),
                                                     kQueueTypes));
        if (rows.empty()) {
          return absl::NotFoundError(
              absl::StrCat("queue \"", name, "\": not found"));
        }
        LEASEHOLD_ASSIGN_OR_RETURN(queue, QueueFromRow(rows, 0));
        if (queue.paused == paused) return absl::OkStatus();
        queue.paused = paused;
        queue.version = version;
        return connection
            .Execute("set_queue_paused", SqlText("UPDATE queues SET paused = ")
                                             .Int(paused ? 1 : 0)
                                             .Raw(", version = ")
                                             .Int(version)
                                             .Raw(" WHERE name = ")
                                             .Text(name)
                                             .str())
            .status();
      }));
  return queue;
}

absl::StatusOr<std::vector<ReplicaRow>> MySqlTaskStore::TouchReplica(
    const ReplicaRow& replica, int64_t alive_us) {
  std::vector<ReplicaRow> replicas;
  LEASEHOLD_RETURN_IF_ERROR(RunTransaction(
      control_, "touch_replica", on_retry_,
      [&](Connection& connection) -> absl::Status {
        replicas.clear();
        LEASEHOLD_ASSIGN_OR_RETURN(const int64_t now_us,
                                   SelectNowUs(connection));
        SqlText touch(
            "INSERT INTO schedulers (id, address, start_us, seen_us, "
            "seen_version, sessions) VALUES ");
        touch.Row(replica.id, replica.address, replica.start_us, now_us,
                  replica.seen_version, replica.sessions);
        touch.Raw(
            " ON DUPLICATE KEY UPDATE address = VALUES(address), start_us = "
            "VALUES(start_us), seen_us = VALUES(seen_us), seen_version = "
            "VALUES(seen_version), sessions = VALUES(sessions)");
        LEASEHOLD_RETURN_IF_ERROR(
            connection.Execute("touch_replica", touch.str()).status());
        LEASEHOLD_ASSIGN_OR_RETURN(
            Rows rows,
            connection.Select(
                "list_replicas",
                SqlText("SELECT id, address, start_us, seen_us, seen_version, "
                        "sessions FROM schedulers ORDER BY id")
                    .str(),
                "ttiiii"));
        bool old = false;
        for (size_t i = 0; i < rows.size(); ++i) {
          old |= rows.Int(i, 3) < now_us - kForgetReplicaUs;
          if (rows.Int(i, 3) < now_us - alive_us) continue;
          replicas.push_back({rows.TakeText(i, 0), rows.TakeText(i, 1),
                              rows.Int(i, 2), rows.Int(i, 3), rows.Int(i, 4),
                              static_cast<int>(rows.Int(i, 5))});
        }
        if (!old) return absl::OkStatus();
        return connection
            .Execute("forget_replicas",
                     SqlText("DELETE FROM schedulers WHERE seen_us < ")
                         .Int(now_us - kForgetReplicaUs)
                         .str())
            .status();
      }));
  return replicas;
}

absl::Status MySqlTaskStore::RemoveReplica(const std::string& id) {
  return RunStatement(
      control_, "remove_replica", on_retry_, [&](Connection& connection) {
        return connection
            .Execute(
                "remove_replica",
                SqlText("DELETE FROM schedulers WHERE id = ").Text(id).str())
            .status();
      });
}

}  // namespace leasehold::scheduler
