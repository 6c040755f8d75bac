// ChangeTasks: lock, decide, write, commit.
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "scheduler/domain/retry_policy.h"
#include "scheduler/store/mysql/mysql_task_store.h"
#include "scheduler/store/mysql/rows.h"
#include "scheduler/store/mysql/spec_json.h"
#include "scheduler/store/mysql/sql_text.h"
#include "scheduler/store/mysql/statements.h"

namespace leasehold::scheduler {
namespace {

// Statements stay well below max_allowed_packet.
constexpr size_t kMaxStatementBytes = 4 << 20;

struct LockedTask {
  LiveTask live;
  int flags = 0;
  bool is_live = false;
  EndedTask ended;
  bool is_ended = false;
  RetryPolicySpec policy;
  int64_t expire_us = 0;
  std::string cancel_reason;
};

// One run of the transaction.
class ChangeRun {
 public:
  ChangeRun(Connection& connection, absl::Span<const TaskId> ids)
      : connection_(connection), ids_(ids), tasks_(ids.size()) {
    for (size_t i = 0; i < ids.size(); ++i) position_[ids[i]] = i;
  }

  absl::Status Load();
  void Decide(absl::FunctionRef<Change(size_t, const TaskView&)> decide,
              const LanePolicies& lane_policies);
  absl::Status Write();

 private:
  absl::Status LoadLive(absl::Span<const TaskId> ids);
  absl::Status LoadEnded();
  absl::Status LoadOptions();
  absl::Status WriteNotes();
  absl::Status WriteColumn(const char* column,
                           std::optional<std::string> Change::*value);
  absl::Status WriteUpdates();
  absl::Status WriteEnds();
  absl::Status WriteAttempts();
  absl::Status BringBack(absl::Span<const TaskId> ids);
  absl::Status DeleteFrom(const char* table, const std::vector<TaskId>& ids);

  // Runs `sql` when it has grown enough, and starts it over.
  absl::Status Flush(const char* name, SqlText* sql, absl::string_view head,
                     absl::string_view tail, size_t max_bytes);

  Connection& connection_;
  const absl::Span<const TaskId> ids_;
  std::vector<LockedTask> tasks_;
  std::vector<Change> changes_;
  std::unordered_map<TaskId, size_t> position_;
  int64_t now_us_ = 0;
};

absl::Status ChangeRun::Load() {
  LEASEHOLD_RETURN_IF_ERROR(LoadLive(ids_));
  LEASEHOLD_RETURN_IF_ERROR(LoadEnded());
  // In neither table: never stored, or brought back between the two reads.
  std::vector<TaskId> unknown;
  for (size_t i = 0; i < ids_.size(); ++i) {
    if (!tasks_[i].is_live && !tasks_[i].is_ended) unknown.push_back(ids_[i]);
  }
  LEASEHOLD_RETURN_IF_ERROR(LoadLive(unknown));
  LEASEHOLD_RETURN_IF_ERROR(LoadOptions());
  if (now_us_ != 0) return absl::OkStatus();
  LEASEHOLD_ASSIGN_OR_RETURN(now_us_, SelectNowUs(connection_));
  return absl::OkStatus();
}

absl::Status ChangeRun::LoadLive(absl::Span<const TaskId> ids) {
  for (const auto chunk : IdChunks(ids)) {
    LEASEHOLD_ASSIGN_OR_RETURN(
        const Rows rows,
        connection_.Select("lock_live", LockLiveSql(chunk), kLockTypes));
    for (size_t i = 0; i < rows.size(); ++i) {
      LockedTask& task = tasks_[position_.at(rows.Int(i, 0))];
      task.live = LiveFromRow(rows, i, 0);
      task.flags = static_cast<int>(rows.Int(i, kLiveColumnCount));
      task.is_live = true;
      now_us_ = rows.Int(i, kLiveColumnCount + 1);
    }
  }
  return absl::OkStatus();
}

// After the rows are locked: a task that another transaction ended in between
// is found here.
absl::Status ChangeRun::LoadEnded() {
  std::vector<TaskId> missing;
  for (size_t i = 0; i < ids_.size(); ++i) {
    if (!tasks_[i].is_live) missing.push_back(ids_[i]);
  }
  for (const auto chunk : IdChunks(missing)) {
    LEASEHOLD_ASSIGN_OR_RETURN(
        const Rows rows,
        connection_.Select("ended_states", EndedStatesSql(chunk), "iiiiiiiii"));
    for (size_t i = 0; i < rows.size(); ++i) {
      LockedTask& task = tasks_[position_.at(rows.Int(i, 0))];
      task.is_ended = true;
      task.ended.state = static_cast<TaskState>(rows.Int(i, 1));
      task.ended.reason = static_cast<FailureReason>(rows.Int(i, 2));
      task.ended.lease_number = rows.Int(i, 3);
      task.ended.lease_expire_us = rows.Int(i, 4);
      task.ended.holder = static_cast<HolderId>(rows.Int(i, 5));
      task.ended.attempt = static_cast<int>(rows.Int(i, 6));
      task.ended.start_us = rows.Int(i, 7);
      task.ended.finish_us = rows.Int(i, 8);
    }
  }
  return absl::OkStatus();
}

absl::Status ChangeRun::LoadOptions() {
  std::vector<TaskId> with_policy;
  std::vector<TaskId> with_expiry;
  std::vector<TaskId> with_reason;
  for (size_t i = 0; i < ids_.size(); ++i) {
    if (!tasks_[i].is_live) continue;
    if (tasks_[i].live.cancel_expire_us != 0 &&
        (tasks_[i].flags & kFlagCheckpoint)) {
      with_reason.push_back(ids_[i]);
    }
    if (tasks_[i].flags & kFlagRetryPolicy) with_policy.push_back(ids_[i]);
    if (tasks_[i].flags & kFlagExpiry) with_expiry.push_back(ids_[i]);
  }
  for (const auto chunk : IdChunks(with_policy)) {
    LEASEHOLD_ASSIGN_OR_RETURN(
        const Rows rows,
        connection_.Select("body_options", BodyOptionsSql(chunk), "iti"));
    for (size_t i = 0; i < rows.size(); ++i) {
      LEASEHOLD_ASSIGN_OR_RETURN(tasks_[position_.at(rows.Int(i, 0))].policy,
                                 RetryPolicyFromJson(rows.Text(i, 1)));
    }
  }
  for (const auto chunk : IdChunks(with_expiry)) {
    LEASEHOLD_ASSIGN_OR_RETURN(
        const Rows rows,
        connection_.Select("expiry_times", ExpiryTimesSql(chunk), "ii"));
    for (size_t i = 0; i < rows.size(); ++i) {
      tasks_[position_.at(rows.Int(i, 0))].expire_us = rows.Int(i, 1);
    }
  }
  for (const auto chunk : IdChunks(with_reason)) {
    LEASEHOLD_ASSIGN_OR_RETURN(
        const Rows rows,
        connection_.Select("cancel_reasons", CancelReasonsSql(chunk), "it"));
    for (size_t i = 0; i < rows.size(); ++i) {
      tasks_[position_.at(rows.Int(i, 0))].cancel_reason = rows.Text(i, 1);
    }
  }
  return absl::OkStatus();
}

void ChangeRun::Decide(
    absl::FunctionRef<Change(size_t, const TaskView&)> decide,
    const LanePolicies& lane_policies) {
  changes_.clear();
  for (size_t i = 0; i < ids_.size(); ++i) {
    const LockedTask& task = tasks_[i];
    TaskView view;
    view.now_us = now_us_;
    if (task.is_live) {
      view.live = &task.live;
      view.policy =
          ResolveRetryPolicy(task.policy, lane_policies.Get(task.live.lane_id));
      view.expire_us = task.expire_us;
      view.cancel_reason = task.cancel_reason;
    } else if (task.is_ended) {
      view.ended = &task.ended;
    }
    changes_.push_back(decide(i, view));
  }
}

absl::Status ChangeRun::Write() {
  LEASEHOLD_RETURN_IF_ERROR(WriteNotes());
  LEASEHOLD_RETURN_IF_ERROR(WriteUpdates());
  LEASEHOLD_RETURN_IF_ERROR(WriteEnds());
  return WriteAttempts();
}

absl::Status ChangeRun::Flush(const char* name, SqlText* sql,
                              absl::string_view head, absl::string_view tail,
                              size_t max_bytes) {
  if (sql->rows() == 0 || sql->size() < max_bytes) return absl::OkStatus();
  sql->Raw(tail);
  LEASEHOLD_RETURN_IF_ERROR(connection_.Execute(name, sql->str()).status());
  *sql = SqlText(head);
  return absl::OkStatus();
}

// Of releases, and why a task is to be cancelled. Before the updates, which
// write the flag that tells of them.
absl::Status ChangeRun::WriteNotes() {
  LEASEHOLD_RETURN_IF_ERROR(WriteColumn("checkpoint", &Change::checkpoint));
  return WriteColumn("cancel_reason", &Change::cancel_reason);
}

absl::Status ChangeRun::WriteColumn(const char* column,
                                    std::optional<std::string> Change::*value) {
  const std::string head =
      absl::StrCat("INSERT INTO task_checkpoint (id, ", column, ") VALUES ");
  const std::string tail = absl::StrCat(" ON DUPLICATE KEY UPDATE ", column,
                                        " = VALUES(", column, ")");
  SqlText sql(head);
  for (size_t i = 0; i < ids_.size(); ++i) {
    const std::optional<std::string>& text = changes_[i].*value;
    if (!text.has_value() || !changes_[i].update.has_value() ||
        !tasks_[i].is_live) {
      continue;
    }
    sql.Row(ids_[i], *text);
    tasks_[i].flags |= kFlagCheckpoint;
    LEASEHOLD_RETURN_IF_ERROR(
        Flush("save_notes", &sql, head, tail, kMaxStatementBytes));
  }
  return Flush("save_notes", &sql, head, tail, 0);
}

absl::Status ChangeRun::WriteUpdates() {
  std::vector<TaskId> brought_back;
  for (size_t i = 0; i < ids_.size(); ++i) {
    if (!changes_[i].update.has_value() || tasks_[i].is_live) continue;
    if (!tasks_[i].is_ended) {
      return absl::InternalError(
          absl::StrCat("change_tasks: task ", ids_[i], " is not stored"));
    }
    brought_back.push_back(ids_[i]);
  }
  LEASEHOLD_RETURN_IF_ERROR(BringBack(brought_back));
  const std::string head =
      absl::StrCat("INSERT INTO task_live (", kLiveColumns, ", flags) VALUES ");
  // The rows are locked, so this is an update of those that exist, each with
  // values of its own.
  static const std::string* const kTail = [] {
    auto* tail = new std::string(" ON DUPLICATE KEY UPDATE ");
    const char* separator = "";
    for (const char* column :
         {"phase", "state", "run_us", "attempt", "rate_limited_count",
          "expiry_count", "lease_number", "holder", "lease_end",
          "lease_expire_us", "attempt_expire_us", "cancel_expire_us",
          "state_us", "start_us", "first_start_us", "priority", "flags"}) {
      absl::StrAppend(tail, separator, column, " = VALUES(", column, ")");
      separator = ", ";
    }
    return tail;
  }();
  SqlText sql(head);
  for (size_t i = 0; i < ids_.size(); ++i) {
    if (!changes_[i].update.has_value() || changes_[i].end.has_value())
      continue;
    const LiveTask& t = *changes_[i].update;
    sql.Row(ids_[i], t.lane_id, t.phase, t.state, t.priority, t.run_us,
            t.attempt, t.rate_limited_count, t.expiry_count, t.lease_number,
            t.holder, t.lease_end, t.lease_expire_us, t.attempt_expire_us,
            t.cancel_expire_us, t.state_us, t.start_us, t.first_start_us,
            tasks_[i].flags);
  }
  return Flush("update_live", &sql, head, *kTail, 0);
}

// RetryTask: the result goes, and what the flags of the new row say is found
// again.
absl::Status ChangeRun::BringBack(absl::Span<const TaskId> ids) {
  SqlText expiry("INSERT INTO task_expiry (id, expire_us) VALUES ");
  for (const auto chunk : IdChunks(ids)) {
    LEASEHOLD_ASSIGN_OR_RETURN(
        const Rows rows,
        connection_.Select("body_options", BodyOptionsSql(chunk), "iti"));
    for (size_t i = 0; i < rows.size(); ++i) {
      LockedTask& task = tasks_[position_.at(rows.Int(i, 0))];
      task.flags = rows.Text(i, 1).empty() ? 0 : kFlagRetryPolicy;
      // A task that its expire_time has ended would end again at once.
      if (rows.Int(i, 2) != 0 && task.ended.reason != FailureReason::kExpired) {
        task.flags |= kFlagExpiry;
        expiry.Row(rows.Int(i, 0), rows.Int(i, 2));
      }
    }
    // Guard: who deletes the result brings the task back; another replica that
    // wants the same has waited here and finds nothing to delete.
    LEASEHOLD_ASSIGN_OR_RETURN(
        const int64_t deleted,
        connection_.Execute("delete_results", DeleteSql("task_result", chunk)));
    if (deleted != static_cast<int64_t>(chunk.size())) {
      return absl::AbortedError("delete_results: a task was brought back");
    }
  }
  if (expiry.rows() == 0) return absl::OkStatus();
  return connection_.Execute("add_expiry", expiry.str()).status();
}

absl::Status ChangeRun::WriteEnds() {
  constexpr char kHead[] =
      "INSERT INTO task_result (id, finish_us, lane_id, state, reason, "
      "attempt, "
      "lease_number, lease_expire_us, holder, start_us, result_kind, "
      "error_class, error_code, error_message, retry_after_us, result) VALUES ";
  constexpr SqlText::SqlNull kNull;
  SqlText sql(kHead);
  std::vector<TaskId> ended;
  std::vector<TaskId> with_expiry;
  std::vector<TaskId> with_checkpoint;
  for (size_t i = 0; i < ids_.size(); ++i) {
    if (!changes_[i].end.has_value() || !tasks_[i].is_live) continue;
    const EndedTask& t = *changes_[i].end;
    const LaneId lane_id = tasks_[i].live.lane_id;
    if (t.error.has_value()) {
      sql.Row(ids_[i], t.finish_us, lane_id, t.state, t.reason, t.attempt,
              t.lease_number, t.lease_expire_us, t.holder, t.start_us,
              t.result.kind, t.error->error_class, t.error->code,
              t.error->message, t.error->retry_after_us, t.result.bytes);
    } else {
      sql.Row(ids_[i], t.finish_us, lane_id, t.state, t.reason, t.attempt,
              t.lease_number, t.lease_expire_us, t.holder, t.start_us,
              t.result.kind, kNull, "", "", 0, t.result.bytes);
    }
    LEASEHOLD_RETURN_IF_ERROR(
        Flush("add_results", &sql, kHead, "", kMaxStatementBytes));
    ended.push_back(ids_[i]);
    if (tasks_[i].flags & kFlagExpiry) with_expiry.push_back(ids_[i]);
    if (tasks_[i].flags & kFlagCheckpoint) with_checkpoint.push_back(ids_[i]);
  }
  LEASEHOLD_RETURN_IF_ERROR(Flush("add_results", &sql, kHead, "", 0));
  LEASEHOLD_RETURN_IF_ERROR(DeleteFrom("task_live", ended));
  LEASEHOLD_RETURN_IF_ERROR(DeleteFrom("task_expiry", with_expiry));
  return DeleteFrom("task_checkpoint", with_checkpoint);
}

absl::Status ChangeRun::DeleteFrom(const char* table,
                                   const std::vector<TaskId>& ids) {
  for (const auto chunk : IdChunks(ids)) {
    LEASEHOLD_RETURN_IF_ERROR(
        connection_.Execute("delete_ended", DeleteSql(table, chunk)).status());
  }
  return absl::OkStatus();
}

absl::Status ChangeRun::WriteAttempts() {
  constexpr char kHead[] =
      "INSERT INTO task_attempt (id, lease_number, number, holder, start_us, "
      "finish_us, error_class, error_code, error_message, retry_after_us) "
      "VALUES ";
  // A lease that expired may still be reported: the report says more.
  constexpr char kTail[] =
      " ON DUPLICATE KEY UPDATE finish_us = VALUES(finish_us), "
      "start_us = VALUES(start_us), error_class = VALUES(error_class), "
      "error_code = VALUES(error_code), error_message = VALUES(error_message), "
      "retry_after_us = VALUES(retry_after_us)";
  SqlText sql(kHead);
  for (size_t i = 0; i < ids_.size(); ++i) {
    if (!changes_[i].attempt.has_value()) continue;
    const Attempt& a = *changes_[i].attempt;
    sql.Row(ids_[i], a.lease_number, a.number, a.holder, a.start_us,
            a.finish_us, a.error.error_class, a.error.code, a.error.message,
            a.error.retry_after_us);
    LEASEHOLD_RETURN_IF_ERROR(
        Flush("add_attempts", &sql, kHead, kTail, kMaxStatementBytes));
  }
  return Flush("add_attempts", &sql, kHead, kTail, 0);
}

}  // namespace

absl::Status MySqlTaskStore::ChangeTasks(
    absl::Span<const TaskId> ids,
    absl::FunctionRef<Change(size_t, const TaskView&)> decide, Role role) {
  if (ids.empty()) return absl::OkStatus();
  return RunTransaction(
      PoolOf(role), "change_tasks", on_retry_,
      [&](Connection& connection) -> absl::Status {
        LEASEHOLD_RETURN_IF_ERROR(lane_policies_.Refresh(connection));
        ChangeRun run(connection, ids);
        LEASEHOLD_RETURN_IF_ERROR(run.Load());
        run.Decide(decide, lane_policies_);
        return run.Write();
      });
}

}  // namespace leasehold::scheduler
