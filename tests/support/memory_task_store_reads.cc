// MemoryTaskStore: what clients read, and what tests see and order.
#include <algorithm>

#include "scheduler/domain/limits.h"
#include "tests/support/memory_task_store.h"
#include "tests/support/memory_task_store_run.h"

namespace leasehold::scheduler {
namespace {

int64_t BytesOf(const TaskRecord& record) {
  size_t bytes = 200;
  const TaskSpec& spec = record.spec;
  bytes += spec.queue.size() + spec.type.size() + spec.partition_key.size() +
           spec.idempotency_key.size() + spec.traceparent.size() +
           spec.payload.bytes.size();
  for (const auto& [key, value] : spec.labels) {
    bytes += key.size() + value.size();
  }
  if (record.last_error.has_value()) bytes += record.last_error->message.size();
  if (record.ended.has_value() && record.ended->error.has_value()) {
    bytes += record.ended->error->message.size();
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace

std::string MemoryTaskStore::ExecutorOf(HolderId holder) const {
  const auto index = static_cast<size_t>(holder) - 1;
  return index < holders_.size() ? holders_[index].first : "";
}

TaskRecord MemoryTaskStore::RecordOf(TaskId id,
                                     const ReadOptions& options) const {
  TaskRecord record;
  record.id = id;
  const Body& body = bodies_.at(id);
  record.spec = body.spec;
  if (!options.payload) record.spec.payload = {};
  record.create_us = body.create_us;
  const auto history = attempts_.find(id);
  if (const auto found = live_.find(id); found != live_.end()) {
    record.live = found->second;
    record.executor_id = ExecutorOf(found->second.holder);
    if (history != attempts_.end() && !history->second.empty()) {
      record.last_error = history->second.rbegin()->second.error;
    }
  } else {
    record.ended = ended_.at(id);
    record.executor_id = ExecutorOf(record.ended->holder);
    if (!options.result) record.ended->result = {};
  }
  if (const auto found = progress_.find(id); found != progress_.end()) {
    record.progress = found->second;
  }
  if (options.attempts && history != attempts_.end()) {
    const size_t all = history->second.size();
    size_t skip = all - std::min<size_t>(all, kMaxKeptAttempts);
    for (const auto& [lease_number, attempt] : history->second) {
      if (skip > 0) {
        --skip;
        continue;
      }
      record.attempts.push_back(attempt);
      record.attempt_executor_ids.push_back(ExecutorOf(attempt.holder));
    }
  }
  return record;
}

absl::StatusOr<std::vector<TaskRecord>> MemoryTaskStore::GetTasks(
    absl::Span<const TaskId> ids, const ReadOptions& options) {
  return Run<absl::StatusOr<std::vector<TaskRecord>>>(
      StoreMethod::kGetTasks, Role::kRead, [&] {
        std::vector<TaskRecord> records;
        for (const TaskId id : std::set<TaskId>(ids.begin(), ids.end())) {
          if (Exists(id)) records.push_back(RecordOf(id, options));
        }
        return records;
      });
}

bool MemoryTaskStore::Matches(TaskId id, const ListFilter& filter) const {
  const Body& body = bodies_.at(id);
  const auto live = live_.find(id);
  const TaskState state =
      live != live_.end() ? live->second.state : ended_.at(id).state;
  const auto is = [](const std::string& wanted, const std::string& value) {
    return wanted.empty() || wanted == value;
  };
  return is(filter.queue, body.spec.queue) && is(filter.type, body.spec.type) &&
         is(filter.partition_key, body.spec.partition_key) &&
         (filter.batch_id == 0 || filter.batch_id == body.spec.batch_id) &&
         (filter.states.empty() ||
          std::count(filter.states.begin(), filter.states.end(), state) != 0) &&
         body.create_us >= filter.create_from_us &&
         (filter.create_until_us == 0 ||
          body.create_us < filter.create_until_us);
}

absl::StatusOr<ListPage> MemoryTaskStore::ListTasks(const ListFilter& filter,
                                                    TaskId below, int page_size,
                                                    int64_t max_bytes) {
  return Run<absl::StatusOr<ListPage>>(
      StoreMethod::kListTasks, Role::kRead, [&] {
        ListPage page;
        int64_t bytes = 0;
        // 0 starts at the newest task.
        auto next = below > 0 ? bodies_.lower_bound(below) : bodies_.end();
        while (next != bodies_.begin()) {
          --next;
          const TaskId id = next->first;
          if (!Exists(id) || !Matches(id, filter)) continue;
          TaskRecord record = RecordOf(id, {});
          bytes += BytesOf(record);
          const bool full =
              page.tasks.size() >= static_cast<size_t>(std::max(page_size, 1));
          if (full || (!page.tasks.empty() && bytes > max_bytes)) {
            page.next_below = page.tasks.back().id;
            break;
          }
          page.tasks.push_back(std::move(record));
        }
        return page;
      });
}

absl::StatusOr<std::vector<std::pair<std::pair<LaneId, TaskState>, int64_t>>>
MemoryTaskStore::CountLiveTasks() {
  using Counts = std::vector<std::pair<std::pair<LaneId, TaskState>, int64_t>>;
  return Run<absl::StatusOr<Counts>>(
      StoreMethod::kCountLiveTasks, Role::kRead, [&] {
        std::map<std::pair<LaneId, TaskState>, int64_t> counts;
        for (const auto& [id, row] : live_) ++counts[{row.lane_id, row.state}];
        return Counts(counts.begin(), counts.end());
      });
}

// ---- For tests ----

void MemoryTaskStore::Advance(absl::Duration by) {
  const std::lock_guard<std::mutex> lock(mutex_);
  fake_now_us_ += absl::ToInt64Microseconds(by);
}

void MemoryTaskStore::FailNext(StoreMethod method, int calls,
                               absl::Status status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Faults& faults = faults_[static_cast<size_t>(method)];
  faults.fail = calls;
  faults.status = std::move(status);
}

void MemoryTaskStore::LoseNext(StoreMethod method, int calls) {
  const std::lock_guard<std::mutex> lock(mutex_);
  faults_[static_cast<size_t>(method)].lose = calls;
}

void MemoryTaskStore::SetReachable(bool reachable) {
  const std::lock_guard<std::mutex> lock(mutex_);
  reachable_ = reachable;
}

void MemoryTaskStore::RepeatDecisions(bool repeat) {
  const std::lock_guard<std::mutex> lock(mutex_);
  repeat_decisions_ = repeat;
}

void MemoryTaskStore::CloseGate(Role role) {
  const std::lock_guard<std::mutex> lock(mutex_);
  gates_[static_cast<size_t>(role)].closed = true;
}

void MemoryTaskStore::OpenGate(Role role) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    gates_[static_cast<size_t>(role)].closed = false;
  }
  gates_changed_.notify_all();
}

void MemoryTaskStore::AwaitBlocked(Role role, int calls) {
  std::unique_lock<std::mutex> lock(mutex_);
  const Gate& gate = gates_[static_cast<size_t>(role)];
  gates_changed_.wait(lock, [&] { return gate.blocked >= calls; });
}

int MemoryTaskStore::CallsOf(StoreMethod method) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return faults_[static_cast<size_t>(method)].calls;
}

std::optional<LiveTask> MemoryTaskStore::LiveRow(TaskId id) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = live_.find(id);
  if (found == live_.end()) return std::nullopt;
  return found->second;
}

std::optional<EndedTask> MemoryTaskStore::EndedRow(TaskId id) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = ended_.find(id);
  if (found == ended_.end()) return std::nullopt;
  return found->second;
}

std::vector<Attempt> MemoryTaskStore::AttemptRows(TaskId id) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Attempt> rows;
  const auto found = attempts_.find(id);
  if (found == attempts_.end()) return rows;
  for (const auto& [lease_number, row] : found->second) rows.push_back(row);
  return rows;
}

size_t MemoryTaskStore::live_count() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return live_.size();
}

size_t MemoryTaskStore::ended_count() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ended_.size();
}

void MemoryTaskStore::PutLiveRow(const LiveTask& row) {
  const std::lock_guard<std::mutex> lock(mutex_);
  bodies_[row.id].lane_id = row.lane_id;
  SetLive(row);
}

void MemoryTaskStore::PutQueue(const QueueRow& row) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const int64_t version = queues_[row.name].version;
  queues_[row.name] = row;
  queues_[row.name].version = version + 1;
}

void MemoryTaskStore::PurgeTask(TaskId id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  EraseLive(id);
  ended_.erase(id);
  bodies_.erase(id);
  attempts_.erase(id);
  checkpoints_.erase(id);
  progress_.erase(id);
  expire_us_.erase(id);
}

}  // namespace leasehold::scheduler
