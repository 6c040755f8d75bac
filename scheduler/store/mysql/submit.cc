// SubmitTasks: every call of a batch in one transaction, with the idempotency
// keys that some of them carry.
#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "common/text/utf8.h"
#include "scheduler/store/mysql/mysql_task_store.h"
#include "scheduler/store/mysql/spec_json.h"
#include "scheduler/store/mysql/sql_text.h"
#include "scheduler/store/mysql/statements.h"

namespace leasehold::scheduler {
namespace {

constexpr size_t kMaxStatementBytes = 4 << 20;

using KeyName = std::pair<std::string, std::string>;  // queue, key
using CallResult = absl::StatusOr<std::vector<SubmittedTask>>;

struct KeyEntry {
  TaskId id = 0;
  std::string content_hash;
  bool stored = false;  // In task_key, if perhaps for another task.
};

// One run of the transaction.
class SubmitRun {
 public:
  SubmitRun(Connection& connection,
            absl::Span<const std::vector<NewTask>> calls)
      : connection_(connection), calls_(calls) {}

  // `repeated` when an earlier run met a duplicate key: it may be of this
  // call's own tasks, committed before their answer was lost.
  absl::Status Run(bool repeated);
  std::vector<CallResult> TakeResults() { return std::move(results_); }

 private:
  absl::Status LockKeys();
  absl::Status FreeOrphanedKeys();
  // A key of a call leads to the very task that the call brings.
  bool HasOwnKey() const;
  absl::Status FindStored();
  CallResult Resolve(const std::vector<NewTask>& call);
  absl::Status WriteKeys();
  absl::Status WriteTasks();
  absl::Status Insert(const char* name, const SqlText& sql);

  Connection& connection_;
  const absl::Span<const std::vector<NewTask>> calls_;
  std::vector<CallResult> results_;
  int64_t now_us_ = 0;
  std::map<KeyName, KeyEntry> keys_;
  std::unordered_map<TaskId, int64_t> stored_;  // id -> create_us
  std::vector<const NewTask*> new_tasks_;
  std::map<KeyName, const NewTask*> new_keys_;
};

absl::Status SubmitRun::Run(bool repeated) {
  LEASEHOLD_ASSIGN_OR_RETURN(now_us_, SelectNowUs(connection_));
  LEASEHOLD_RETURN_IF_ERROR(LockKeys());
  LEASEHOLD_RETURN_IF_ERROR(FreeOrphanedKeys());
  repeated = repeated || HasOwnKey();
  if (repeated) LEASEHOLD_RETURN_IF_ERROR(FindStored());
  for (const auto& call : calls_) results_.push_back(Resolve(call));
  LEASEHOLD_RETURN_IF_ERROR(WriteTasks());
  return WriteKeys();
}

absl::Status SubmitRun::LockKeys() {
  std::map<std::string, std::vector<std::string>> by_queue;
  for (const auto& call : calls_) {
    for (const NewTask& task : call) {
      if (task.spec.idempotency_key.empty()) continue;
      by_queue[task.spec.queue].push_back(task.spec.idempotency_key);
    }
  }
  for (auto& [queue, keys] : by_queue) {
    // In the order of the index, as every transaction locks them.
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    for (size_t i = 0; i < keys.size(); i += kMaxIds) {
      LEASEHOLD_ASSIGN_OR_RETURN(
          Rows rows,
          connection_.Select(
              "lock_keys",
              LockKeysSql(queue, absl::MakeConstSpan(keys).subspan(i, kMaxIds)),
              "tit"));
      for (size_t row = 0; row < rows.size(); ++row) {
        keys_[{queue, rows.TakeText(row, 0)}] = {rows.Int(row, 1),
                                                 rows.TakeText(row, 2), true};
      }
    }
  }
  return absl::OkStatus();
}

// A key whose task is in no table any more is taken over in place.
absl::Status SubmitRun::FreeOrphanedKeys() {
  std::vector<TaskId> ids;
  for (const auto& [name, key] : keys_) ids.push_back(key.id);
  std::unordered_set<TaskId> alive;
  for (const auto chunk : IdChunks(ids)) {
    LEASEHOLD_ASSIGN_OR_RETURN(
        const Rows rows,
        connection_.Select("find_keys_tasks", ExistingTasksSql(chunk), "i"));
    for (size_t i = 0; i < rows.size(); ++i) alive.insert(rows.Int(i, 0));
  }
  for (auto& [name, key] : keys_) {
    if (!alive.contains(key.id)) key.id = 0;
  }
  return absl::OkStatus();
}

bool SubmitRun::HasOwnKey() const {
  if (keys_.empty()) return false;
  for (const auto& call : calls_) {
    for (const NewTask& task : call) {
      const auto it = keys_.find({task.spec.queue, task.spec.idempotency_key});
      if (it != keys_.end() && it->second.id == task.id) return true;
    }
  }
  return false;
}

absl::Status SubmitRun::FindStored() {
  std::vector<TaskId> ids;
  for (const auto& call : calls_) {
    for (const NewTask& task : call) ids.push_back(task.id);
  }
  std::sort(ids.begin(), ids.end());
  for (const auto chunk : IdChunks(ids)) {
    LEASEHOLD_ASSIGN_OR_RETURN(
        const Rows rows,
        connection_.Select("find_stored", StoredBodiesSql(chunk), "ii"));
    for (size_t i = 0; i < rows.size(); ++i) {
      stored_[rows.Int(i, 0)] = rows.Int(i, 1);
    }
  }
  return absl::OkStatus();
}

// All or none of a call; a call that fails leaves nothing behind.
CallResult SubmitRun::Resolve(const std::vector<NewTask>& call) {
  std::vector<SubmittedTask> submitted;
  std::map<KeyName, const NewTask*> keys;
  std::vector<const NewTask*> tasks;
  for (size_t i = 0; i < call.size(); ++i) {
    const NewTask& task = call[i];
    SubmittedTask result;
    result.id = task.id;
    if (const auto it = stored_.find(task.id); it != stored_.end()) {
      result.create_us = it->second;
      result.run_us = std::max(it->second, task.spec.schedule_us);
      submitted.push_back(result);
      continue;
    }
    if (!task.spec.idempotency_key.empty()) {
      const KeyName name(task.spec.queue, task.spec.idempotency_key);
      TaskId known_id = 0;
      const std::string* known_hash = nullptr;
      if (const auto it = keys.find(name); it != keys.end()) {
        known_id = it->second->id;
        known_hash = &it->second->content_hash;
      } else if (const auto entry = keys_.find(name); entry != keys_.end()) {
        known_id = entry->second.id;
        known_hash = &entry->second.content_hash;
      }
      if (known_id != 0 && *known_hash != task.content_hash) {
        return absl::AlreadyExistsError(absl::StrCat(
            call.size() == 1 ? "task" : absl::StrCat("tasks[", i, "]"),
            ".idempotency_key: ", QuoteForMessage(task.spec.idempotency_key),
            " belongs to task ", known_id,
            ", which has another type or payload"));
      }
      if (known_id != 0) {
        result.id = known_id;
        result.existed = true;
        submitted.push_back(result);
        continue;
      }
      keys.emplace(name, &task);
    }
    result.create_us = now_us_;
    result.run_us = std::max(now_us_, task.spec.schedule_us);
    submitted.push_back(result);
    tasks.push_back(&task);
  }
  for (const auto& [name, task] : keys) {
    KeyEntry& entry = keys_[name];
    entry.id = task->id;
    entry.content_hash = task->content_hash;
    new_keys_[name] = task;
  }
  new_tasks_.insert(new_tasks_.end(), tasks.begin(), tasks.end());
  return submitted;
}

absl::Status SubmitRun::Insert(const char* name, const SqlText& sql) {
  if (sql.rows() == 0) return absl::OkStatus();
  return connection_.Execute(name, sql.str()).status();
}

absl::Status SubmitRun::WriteTasks() {
  constexpr char kBodyHead[] =
      "INSERT INTO task_body (id, create_us, lane_id, priority, payload_kind, "
      "schedule_us, expire_us, attempt_timeout_us, batch_id, partition_key, "
      "idempotency_key, traceparent, labels, retry_policy, payload) VALUES ";
  SqlText live(absl::StrCat("INSERT INTO task_live (", kLiveColumns,
                            ", flags) VALUES "));
  SqlText body(kBodyHead);
  SqlText expiry("INSERT INTO task_expiry (id, expire_us) VALUES ");
  for (const NewTask* task : new_tasks_) {
    const TaskSpec& spec = task->spec;
    const std::string retry_policy = RetryPolicyToJson(spec.retry_policy);
    const LiveTask t =
        task->holder == 0
            ? NewLiveTask(task->id, task->lane_id, spec, now_us_)
            : NewLeasedTask(task->id, task->lane_id, spec, task->holder,
                            task->lease_us, now_us_);
    const int flags = (retry_policy.empty() ? 0 : kFlagRetryPolicy) |
                      (spec.expire_us == 0 ? 0 : kFlagExpiry);
    live.Row(t.id, t.lane_id, t.phase, t.state, t.priority, t.run_us, t.attempt,
             t.rate_limited_count, t.expiry_count, t.lease_number, t.holder,
             t.lease_end, t.lease_expire_us, t.attempt_expire_us,
             t.cancel_expire_us, t.state_us, t.start_us, t.first_start_us,
             flags);
    if (spec.expire_us != 0) expiry.Row(task->id, spec.expire_us);
    body.Row(task->id, now_us_, task->lane_id, spec.priority, spec.payload.kind,
             spec.schedule_us, spec.expire_us, spec.attempt_timeout_us,
             spec.batch_id, spec.partition_key, spec.idempotency_key,
             spec.traceparent, LabelsToJson(spec.labels), retry_policy,
             spec.payload.bytes);
    if (body.size() >= kMaxStatementBytes) {
      LEASEHOLD_RETURN_IF_ERROR(Insert("add_bodies", body));
      body = SqlText(kBodyHead);
    }
  }
  LEASEHOLD_RETURN_IF_ERROR(Insert("add_live", live));
  LEASEHOLD_RETURN_IF_ERROR(Insert("add_bodies", body));
  return Insert("add_expiry", expiry);
}

// A key that another replica has added since fails as a duplicate: the whole
// transaction runs again and finds it.
absl::Status SubmitRun::WriteKeys() {
  SqlText insert(
      "INSERT INTO task_key (queue, idempotency_key, id, content_hash) "
      "VALUES ");
  for (const auto& [name, task] : new_keys_) {
    if (!keys_[name].stored) {
      insert.Row(name.first, name.second, task->id, task->content_hash);
      continue;
    }
    LEASEHOLD_RETURN_IF_ERROR(
        connection_
            .Execute("take_over_key", SqlText("UPDATE task_key SET id = ")
                                          .Int(task->id)
                                          .Raw(", content_hash = ")
                                          .Text(task->content_hash)
                                          .Raw(" WHERE queue = ")
                                          .Text(name.first)
                                          .Raw(" AND idempotency_key = ")
                                          .Text(name.second)
                                          .str())
            .status());
  }
  return Insert("add_keys", insert);
}

}  // namespace

absl::StatusOr<std::vector<absl::StatusOr<std::vector<SubmittedTask>>>>
MySqlTaskStore::SubmitTasks(absl::Span<const std::vector<NewTask>> calls) {
  std::vector<CallResult> results;
  bool repeated = false;
  LEASEHOLD_RETURN_IF_ERROR(
      RunTransaction(submit_, "submit_tasks", on_retry_,
                     [&](Connection& connection) -> absl::Status {
                       SubmitRun run(connection, calls);
                       absl::Status status = run.Run(repeated);
                       repeated = repeated || absl::IsAlreadyExists(status);
                       results = run.TakeResults();
                       return status;
                     }));
  return results;
}

}  // namespace leasehold::scheduler
