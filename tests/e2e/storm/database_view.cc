#include "tests/e2e/storm/database_view.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace leasehold::e2e {
namespace {

constexpr absl::Duration kBetweenLooks = absl::Milliseconds(200);

int64_t Integer(const std::string& text) { return std::atoll(text.c_str()); }

}  // namespace

LeaseWatch::LeaseWatch(std::string socket_path, std::string database,
                       Observations& observations)
    : socket_path_(std::move(socket_path)),
      database_(std::move(database)),
      observations_(observations),
      thread_([this] { Run(); }) {}

void LeaseWatch::Stop() {
  stop_ = true;
  if (!thread_.joinable()) return;
  thread_.join();
  std::vector<LeaseSighting> rest;
  for (const auto& [task, lease] : present_) rest.push_back(lease);
  observations_.Leased(std::move(rest));
}

void LeaseWatch::Run() {
  std::unique_ptr<SqlConnection> sql;
  while (!stop_) {
    try {
      if (sql == nullptr)
        sql = std::make_unique<SqlConnection>(socket_path_, database_);
      LookOnce(*sql);
    } catch (const std::exception&) {
      sql.reset();  // It is away.
    }
    absl::SleepFor(kBetweenLooks);
  }
}

// A lease is handed on once it is over: first seen then, valid until then.
void LeaseWatch::LookOnce(SqlConnection& sql) {
  const std::vector<Row> rows = sql.Run(
      "SELECT id, lease_number, lease_expire_us FROM task_live WHERE phase = "
      "1");
  // All of them stood there by now, whatever the time was when the database
  // read them.
  const int64_t seen_us = NowMicros();
  std::map<std::string, LeaseSighting> now;
  std::vector<LeaseSighting> over;
  for (const Row& row : rows) {
    LeaseSighting lease{row[0], Integer(row[1]), Integer(row[2]), seen_us};
    const auto before = present_.find(lease.task);
    if (before != present_.end() &&
        before->second.lease_number == lease.lease_number) {
      lease.expire_us = std::max(lease.expire_us, before->second.expire_us);
      lease.seen_us = before->second.seen_us;
      present_.erase(before);
    }
    now.emplace(lease.task, lease);
  }
  for (const auto& [task, lease] : present_) over.push_back(lease);
  observations_.Leased(std::move(over));
  present_ = std::move(now);
}

std::map<std::string, FinalTask> ReadFinalTasks(
    SqlConnection& sql, std::vector<std::string>* mistakes) {
  std::map<std::string, FinalTask> tasks;
  const auto add = [&](const std::string& id, const FinalTask& task) {
    if (!tasks.emplace(id, task).second)
      mistakes->push_back(absl::StrCat("task ", id, " has two rows"));
  };
  for (const Row& row :
       sql.Run("SELECT id, state, reason, lease_number, finish_us FROM "
               "task_result")) {
    add(row[0], {.state = static_cast<v1::TaskState>(Integer(row[1])),
                 .reason = static_cast<v1::FailureReason>(Integer(row[2])),
                 .lease_number = Integer(row[3]),
                 .finish_us = Integer(row[4])});
  }
  // Waiting rows should have been leased when they were due.
  for (const Row& row :
       sql.Run("SELECT id, state, lease_number, CASE WHEN phase = 1 THEN "
               "lease_expire_us ELSE run_us END FROM task_live")) {
    add(row[0], {.state = static_cast<v1::TaskState>(Integer(row[1])),
                 .lease_number = Integer(row[2]),
                 .deadline_us = Integer(row[3])});
  }
  for (const Row& row :
       sql.Run("SELECT idempotency_key, COUNT(*) FROM task_body GROUP BY "
               "idempotency_key HAVING COUNT(*) > 1")) {
    mistakes->push_back(
        absl::StrCat("key ", row[0], " made ", row[1], " tasks"));
  }
  return tasks;
}

std::map<std::string, long long> CountAttempts(SqlConnection& sql) {
  std::map<std::string, long long> counts;
  for (const Row& row :
       sql.Run("SELECT error_class, COUNT(*) FROM task_attempt GROUP BY 1")) {
    counts[v1::ErrorClass_Name(static_cast<v1::ErrorClass>(Integer(row[0])))] =
        Integer(row[1]);
  }
  return counts;
}

}  // namespace leasehold::e2e
