// Reads for clients: tasks by id, lists, counts.
#include <algorithm>
#include <functional>
#include <iterator>
#include <unordered_map>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "scheduler/domain/limits.h"
#include "scheduler/store/mysql/mysql_task_store.h"
#include "scheduler/store/mysql/rows.h"
#include "scheduler/store/mysql/sql_text.h"
#include "scheduler/store/mysql/statements.h"

namespace leasehold::scheduler {
namespace {

// A list call looks at no more than this many tasks, so that a filter that
// matches little gives short pages instead of slow ones.
constexpr size_t kMaxExamined = 5'000;
constexpr int kCandidates = 1'000;
constexpr size_t kMaxIndexScans = 40;

Attempt AttemptFromRow(Rows& rows, size_t row) {
  Attempt attempt;
  attempt.lease_number = rows.Int(row, 1);
  attempt.number = static_cast<int>(rows.Int(row, 2));
  attempt.holder = static_cast<HolderId>(rows.Int(row, 3));
  attempt.start_us = rows.Int(row, 4);
  attempt.finish_us = rows.Int(row, 5);
  attempt.error.error_class = static_cast<ErrorClass>(rows.Int(row, 6));
  attempt.error.code = rows.TakeText(row, 7);
  attempt.error.message = rows.TakeText(row, 8);
  attempt.error.retry_after_us = rows.Int(row, 9);
  return attempt;
}

constexpr char kAttemptTypes[] = "iiiiiiittit";
constexpr char kAttemptColumns[] =
    "SELECT a.id, a.lease_number, a.number, a.holder, a.start_us, a.finish_us, "
    "a.error_class, a.error_code, a.error_message, a.retry_after_us, "
    "COALESCE(e.executor_id, '') FROM task_attempt a "
    "LEFT JOIN executors e ON e.id = a.holder WHERE a.id ";

using RecordMap = std::unordered_map<TaskId, TaskRecord*>;

absl::Status LoadAttempts(Connection& connection, TaskRecord* record) {
  LEASEHOLD_ASSIGN_OR_RETURN(
      Rows rows,
      connection.Select("load_attempts",
                        absl::StrCat(kAttemptColumns, "= ", record->id,
                                     " ORDER BY a.id DESC, a.lease_number DESC "
                                     "LIMIT ",
                                     kMaxKeptAttempts),
                        kAttemptTypes));
  for (size_t i = rows.size(); i-- > 0;) {
    record->attempts.push_back(AttemptFromRow(rows, i));
    record->attempt_executor_ids.push_back(rows.TakeText(i, 10));
  }
  return absl::OkStatus();
}

absl::Status LoadLastErrors(Connection& connection,
                            absl::Span<const TaskId> ids,
                            const RecordMap& records) {
  SqlText join(
      "SELECT a.id, a.lease_number, a.number, a.holder, a.start_us, "
      "a.finish_us, a.error_class, a.error_code, a.error_message, "
      "a.retry_after_us, '' FROM (SELECT id, MAX(lease_number) AS latest FROM "
      "task_attempt WHERE id IN ");
  join.IdList(ids).Raw(
      " GROUP BY id) m JOIN task_attempt a ON a.id = m.id AND "
      "a.lease_number = m.latest");
  LEASEHOLD_ASSIGN_OR_RETURN(
      Rows rows,
      connection.Select("load_last_errors", join.str(), kAttemptTypes));
  for (size_t i = 0; i < rows.size(); ++i) {
    records.at(rows.Int(i, 0))->last_error = AttemptFromRow(rows, i).error;
  }
  return absl::OkStatus();
}

absl::Status LoadProgress(Connection& connection, absl::Span<const TaskId> ids,
                          const RecordMap& records) {
  LEASEHOLD_ASSIGN_OR_RETURN(
      Rows rows,
      connection.Select(
          "load_progress",
          SqlText("SELECT id, progress_done, COALESCE(progress_total, 0), "
                  "COALESCE(progress_message, '') FROM task_checkpoint "
                  "WHERE progress_done IS NOT NULL AND id IN ")
              .IdList(ids)
              .str(),
          "iiit"));
  for (size_t i = 0; i < rows.size(); ++i) {
    records.at(rows.Int(i, 0))->progress =
        Progress{rows.Int(i, 1), rows.Int(i, 2), rows.TakeText(i, 3)};
  }
  return absl::OkStatus();
}

// Those of `ids`, at most kMaxIds, that exist; in no order.
absl::StatusOr<std::vector<TaskRecord>> LoadRecords(
    Connection& connection, absl::Span<const TaskId> ids,
    const ReadOptions& options) {
  LEASEHOLD_ASSIGN_OR_RETURN(
      Rows rows,
      connection.Select("get_tasks", GetTasksSql(ids, options), kTaskTypes));
  std::vector<TaskRecord> records;
  std::vector<TaskId> leased_once;
  std::vector<TaskId> tried_before;  // May have attempts that did not succeed.
  for (size_t i = 0; i < rows.size(); ++i) {
    LEASEHOLD_ASSIGN_OR_RETURN(TaskRecord record, RecordFromRow(rows, i));
    // A body without the rest is on its way out.
    if (!record.live.has_value() && !record.ended.has_value()) continue;
    if (record.live.has_value() && record.live->lease_number > 0) {
      leased_once.push_back(record.id);
      if (record.live->lease_number > 1 ||
          record.live->phase != Phase::kLeased) {
        tried_before.push_back(record.id);
      }
    }
    records.push_back(std::move(record));
  }
  RecordMap by_id;
  for (TaskRecord& record : records) by_id[record.id] = &record;
  if (!tried_before.empty()) {
    LEASEHOLD_RETURN_IF_ERROR(LoadLastErrors(connection, tried_before, by_id));
  }
  if (!leased_once.empty()) {
    LEASEHOLD_RETURN_IF_ERROR(LoadProgress(connection, leased_once, by_id));
  }
  if (options.attempts) {
    for (TaskRecord& record : records) {
      LEASEHOLD_RETURN_IF_ERROR(LoadAttempts(connection, &record));
    }
  }
  return records;
}

bool Matches(const ListFilter& filter, const TaskRecord& record) {
  const TaskState state =
      record.live.has_value() ? record.live->state : record.ended->state;
  return (filter.queue.empty() || filter.queue == record.spec.queue) &&
         (filter.type.empty() || filter.type == record.spec.type) &&
         (filter.states.empty() ||
          std::find(filter.states.begin(), filter.states.end(), state) !=
              filter.states.end()) &&
         (filter.partition_key.empty() ||
          filter.partition_key == record.spec.partition_key) &&
         (filter.batch_id == 0 || filter.batch_id == record.spec.batch_id) &&
         record.create_us >= filter.create_from_us &&
         (filter.create_until_us == 0 ||
          record.create_us < filter.create_until_us);
}

int64_t SizeOf(const TaskRecord& record) {
  size_t bytes = 200 + record.spec.partition_key.size() +
                 record.spec.idempotency_key.size() +
                 record.spec.traceparent.size();
  for (const auto& [key, value] : record.spec.labels) {
    bytes += key.size() + value.size() + 8;
  }
  if (record.last_error.has_value()) bytes += record.last_error->message.size();
  if (record.ended.has_value() && record.ended->error.has_value()) {
    bytes += record.ended->error->message.size();
  }
  for (const std::string& code : record.spec.retry_policy.non_retryable_codes) {
    bytes += code.size() + 2;
  }
  return static_cast<int64_t>(bytes);
}

// Finds ids that may match, descending, by the index that fits the filter best.
class CandidateScan {
 public:
  CandidateScan(const ListFilter& filter, absl::Span<const int64_t> lanes)
      : filter_(filter), lanes_(lanes) {}

  // The next ones below `below`, at most kCandidates; none: the list is at its
  // end.
  absl::StatusOr<std::vector<TaskId>> Next(Connection& connection,
                                           TaskId below) const {
    LEASEHOLD_ASSIGN_OR_RETURN(
        const Rows rows, connection.Select("list_tasks", Sql(below), "i"));
    std::vector<TaskId> ids;
    for (size_t i = 0; i < rows.size(); ++i) ids.push_back(rows.Int(i, 0));
    std::sort(ids.begin(), ids.end(), std::greater<>());
    if (ids.size() > kCandidates) ids.resize(kCandidates);
    return ids;
  }

 private:
  std::string Sql(TaskId below) const {
    const bool terminal_only =
        !filter_.states.empty() &&
        std::all_of(filter_.states.begin(), filter_.states.end(), IsTerminal);
    const bool live_only =
        !filter_.states.empty() &&
        std::none_of(filter_.states.begin(), filter_.states.end(), IsTerminal);
    if (!filter_.partition_key.empty()) {
      return ListByPartitionKeySql(filter_.partition_key, below, kCandidates);
    }
    if (terminal_only &&
        lanes_.size() * filter_.states.size() <= kMaxIndexScans) {
      return ListByStateSql(lanes_, filter_.states, below, kCandidates);
    }
    return live_only ? ListLiveSql(below, kCandidates)
                     : ListBodiesSql(below, kCandidates);
  }

  const ListFilter& filter_;
  const absl::Span<const int64_t> lanes_;
};

absl::StatusOr<std::vector<int64_t>> LanesOf(Connection& connection,
                                             const ListFilter& filter) {
  SqlText sql("SELECT id FROM lanes WHERE id > 0");
  if (!filter.queue.empty()) sql.Raw(" AND queue = ").Text(filter.queue);
  if (!filter.type.empty()) sql.Raw(" AND type = ").Text(filter.type);
  LEASEHOLD_ASSIGN_OR_RETURN(const Rows rows,
                             connection.Select("find_lanes", sql.str(), "i"));
  std::vector<int64_t> lanes;
  for (size_t i = 0; i < rows.size(); ++i) lanes.push_back(rows.Int(i, 0));
  return lanes;
}

class ListRun {
 public:
  ListRun(Connection& connection, const ListFilter& filter, TaskId below,
          int page_size, int64_t max_bytes)
      : connection_(connection),
        filter_(filter),
        page_size_(static_cast<size_t>(std::max(page_size, 1))),
        max_bytes_(max_bytes) {
    page_.next_below = below;
  }

  absl::StatusOr<ListPage> Run() {
    LEASEHOLD_ASSIGN_OR_RETURN(const std::vector<int64_t> lanes,
                               LanesOf(connection_, filter_));
    if (lanes.empty()) return ListPage{};
    const CandidateScan scan(filter_, lanes);
    for (size_t examined = 0; examined < kMaxExamined && !full_;) {
      LEASEHOLD_ASSIGN_OR_RETURN(const std::vector<TaskId> ids,
                                 scan.Next(connection_, page_.next_below));
      if (ids.empty()) {
        page_.next_below = 0;
        break;
      }
      examined += ids.size();
      LEASEHOLD_RETURN_IF_ERROR(Take(ids));
      if (!full_ && ids.size() < kCandidates) {
        page_.next_below = 0;
        break;
      }
    }
    return std::move(page_);
  }

 private:
  // Reads `ids` piece by piece until the page is full.
  absl::Status Take(absl::Span<const TaskId> ids) {
    for (size_t i = 0; i < ids.size() && !full_; i += kMaxIds / 2) {
      const auto chunk = ids.subspan(i, kMaxIds / 2);
      LEASEHOLD_ASSIGN_OR_RETURN(std::vector<TaskRecord> records,
                                 LoadRecords(connection_, chunk, {}));
      std::sort(
          records.begin(), records.end(),
          [](const TaskRecord& a, const TaskRecord& b) { return a.id > b.id; });
      for (TaskRecord& record : records) {
        if (!Matches(filter_, record)) continue;
        const int64_t size = SizeOf(record);
        if (page_.tasks.size() == page_size_ ||
            (!page_.tasks.empty() && bytes_ + size > max_bytes_)) {
          full_ = true;
          page_.next_below = page_.tasks.back().id;
          return absl::OkStatus();
        }
        bytes_ += size;
        page_.tasks.push_back(std::move(record));
      }
      page_.next_below = chunk.back();
    }
    return absl::OkStatus();
  }

  Connection& connection_;
  const ListFilter& filter_;
  const size_t page_size_;
  const int64_t max_bytes_;
  ListPage page_;
  int64_t bytes_ = 0;
  bool full_ = false;
};

}  // namespace

absl::StatusOr<std::vector<TaskRecord>> MySqlTaskStore::GetTasks(
    absl::Span<const TaskId> ids, const ReadOptions& options) {
  std::vector<TaskId> sorted(ids.begin(), ids.end());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::vector<TaskRecord> records;
  LEASEHOLD_RETURN_IF_ERROR(RunStatement(
      read_, "get_tasks", on_retry_,
      [&](Connection& connection) -> absl::Status {
        records.clear();
        for (const auto chunk : IdChunks(sorted)) {
          LEASEHOLD_ASSIGN_OR_RETURN(std::vector<TaskRecord> found,
                                     LoadRecords(connection, chunk, options));
          std::move(found.begin(), found.end(), std::back_inserter(records));
        }
        return absl::OkStatus();
      }));
  std::sort(
      records.begin(), records.end(),
      [](const TaskRecord& a, const TaskRecord& b) { return a.id < b.id; });
  return records;
}

absl::StatusOr<ListPage> MySqlTaskStore::ListTasks(const ListFilter& filter,
                                                   TaskId below, int page_size,
                                                   int64_t max_bytes) {
  ListPage page;
  LEASEHOLD_RETURN_IF_ERROR(RunStatement(
      read_, "list_tasks", on_retry_,
      [&](Connection& connection) -> absl::Status {
        ListRun run(connection, filter, below, page_size, max_bytes);
        LEASEHOLD_ASSIGN_OR_RETURN(page, run.Run());
        return absl::OkStatus();
      }));
  return page;
}

absl::StatusOr<std::vector<std::pair<std::pair<LaneId, TaskState>, int64_t>>>
MySqlTaskStore::CountLiveTasks() {
  LEASEHOLD_ASSIGN_OR_RETURN(
      const Rows rows, Read(Role::kRead, "count_live_tasks",
                            "SELECT lane_id, state, COUNT(*) FROM task_live "
                            "GROUP BY lane_id, state",
                            "iii"));
  std::vector<std::pair<std::pair<LaneId, TaskState>, int64_t>> counts;
  for (size_t i = 0; i < rows.size(); ++i) {
    counts.push_back({{static_cast<LaneId>(rows.Int(i, 0)),
                       static_cast<TaskState>(rows.Int(i, 1))},
                      rows.Int(i, 2)});
  }
  return counts;
}

}  // namespace leasehold::scheduler
