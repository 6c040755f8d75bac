#include "tests/bench/raw_sql.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "scheduler/domain/task.h"
#include "scheduler/store/mysql/sql_text.h"
#include "scheduler/store/mysql/statements.h"
#include "tests/support/child_process.h"
#include "tests/support/cluster.h"

namespace leasehold::bench {
namespace {

using scheduler::Claim;
using scheduler::SqlText;
using scheduler::TaskId;

// As in scheduler/engine/options.h.
constexpr size_t kSubmitBatch = 500;
constexpr size_t kClaimBatch = 200;
constexpr size_t kFinishBatch = 500;
constexpr int64_t kLeaseUs = 10'000'000;

// Ids on their way from one connection to the next.
class IdQueue {
 public:
  void Push(const std::vector<TaskId>& ids) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    changed_.notify_one();
  }
  void Close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    changed_.notify_one();
  }
  // Up to `limit` ids; none when it is closed and empty.
  std::vector<TaskId> Pop(size_t limit) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || !ids_.empty(); });
    const size_t count = std::min(limit, ids_.size());
    const auto end = ids_.begin() + static_cast<std::ptrdiff_t>(count);
    std::vector<TaskId> popped(ids_.begin(), end);
    ids_.erase(ids_.begin(), end);
    return popped;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<TaskId> ids_;
  bool closed_ = false;
};

void Submit(e2e::SqlConnection& sql, size_t tasks, IdQueue& stored) {
  for (size_t from = 0; from < tasks; from += kSubmitBatch) {
    sql.Run("BEGIN");
    const long long now_us =
        sql.Number(absl::StrCat("SELECT ", scheduler::kNowUs));
    SqlText live(absl::StrCat("INSERT INTO task_live (",
                              scheduler::kLiveColumns, ", flags) VALUES "));
    SqlText body(
        "INSERT INTO task_body (id, create_us, lane_id, priority, "
        "payload_kind, schedule_us, "
        "expire_us, attempt_timeout_us, batch_id, partition_key, "
        "idempotency_key, traceparent, "
        "labels, retry_policy, payload) VALUES ");
    std::vector<TaskId> ids;
    for (size_t i = from; i < std::min(from + kSubmitBatch, tasks); ++i) {
      const auto id = static_cast<TaskId>(i + 1);
      live.Row(id, 1, 0, 1, 5, now_us, 0, 0, 0, 0, 0, 2, 0, 0, 0, now_us, 0, 0,
               0);
      body.Row(id, now_us, 1, 5, 2, 0, 0, 0, 0, "", "", "", "", "",
               absl::StrCat("input ", i));
      ids.push_back(id);
    }
    sql.Run(live.str());
    sql.Run(body.str());
    sql.Run("COMMIT");
    stored.Push(ids);
  }
  stored.Close();
}

void ClaimAll(e2e::SqlConnection& sql, IdQueue& stored, IdQueue& claimed) {
  for (std::vector<TaskId> ids; !(ids = stored.Pop(kClaimBatch)).empty();) {
    std::vector<Claim> claims;
    // Two executors take turns.
    for (size_t i = 0; i < ids.size(); ++i) {
      claims.push_back(
          {ids[i], 0, static_cast<scheduler::HolderId>(1 + i % 2), kLeaseUs});
    }
    sql.Run(scheduler::ClaimSql(claims));
    claimed.Push(ids);
  }
  claimed.Close();
}

void FinishAll(e2e::SqlConnection& sql, IdQueue& claimed) {
  for (std::vector<TaskId> ids; !(ids = claimed.Pop(kFinishBatch)).empty();) {
    sql.Run("BEGIN");
    const auto for_each_chunk = [&ids](const auto& run) {
      for (size_t i = 0; i < ids.size(); i += scheduler::kMaxIds) {
        run(absl::MakeConstSpan(ids).subspan(i, scheduler::kMaxIds));
      }
    };
    for_each_chunk([&](absl::Span<const TaskId> chunk) {
      sql.Run(scheduler::LockLiveSql(chunk));
    });
    const long long now_us =
        sql.Number(absl::StrCat("SELECT ", scheduler::kNowUs));
    SqlText results(
        "INSERT INTO task_result (id, finish_us, lane_id, state, reason, "
        "attempt, lease_number, "
        "lease_expire_us, holder, start_us, result_kind, error_class, "
        "error_code, error_message, "
        "retry_after_us, result) VALUES ");
    for (const TaskId id : ids) {
      results.Row(id, now_us, 1, 6, 0, 1, 1, now_us, 1, now_us, 2,
                  SqlText::SqlNull(), "", "", 0,
                  absl::StrCat("input ", id - 1));
    }
    sql.Run(results.str());
    for_each_chunk([&](absl::Span<const TaskId> chunk) {
      sql.Run(scheduler::DeleteSql("task_live", chunk));
    });
    sql.Run("COMMIT");
  }
}

}  // namespace

double RunRawSql(e2e::DatabaseServer& server, size_t tasks) {
  const std::string database = server.CreateDatabase();
  e2e::RunCommand({e2e::Binary("leasehold-scheduler"), "--migrate_only"},
                  {{"LEASEHOLD_MYSQL", server.Address(database)}});
  std::vector<std::unique_ptr<e2e::SqlConnection>> connections;
  for (int i = 0; i < 3; ++i) {
    connections.push_back(
        std::make_unique<e2e::SqlConnection>(server.socket_path(), database));
    connections.back()->Run(
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    connections.back()->Run("SET time_zone = '+00:00'");
  }
  IdQueue stored;
  IdQueue claimed;
  const absl::Time began = absl::Now();
  std::thread submitter([&] { Submit(*connections[0], tasks, stored); });
  std::thread claimer([&] { ClaimAll(*connections[1], stored, claimed); });
  std::thread finisher([&] { FinishAll(*connections[2], claimed); });
  submitter.join();
  claimer.join();
  finisher.join();
  const double seconds = absl::ToDoubleSeconds(absl::Now() - began);

  const long long left =
      connections[0]->Number("SELECT COUNT(*) FROM task_live");
  const long long ended =
      connections[0]->Number("SELECT COUNT(*) FROM task_result");
  if (left != 0 || ended != static_cast<long long>(tasks)) {
    throw std::runtime_error(
        absl::StrCat("raw SQL: ", left, " left, ", ended, " ended"));
  }
  connections[0]->Run("DROP DATABASE " + database);
  return static_cast<double>(tasks) / seconds;
}

}  // namespace leasehold::bench
