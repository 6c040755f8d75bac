// The scans that find what has run out of time. They read without locks; who
// acts on what they find asks again under the lock.
#include <algorithm>
#include <utility>
#include <vector>

#include "common/status/status_macros.h"
#include "scheduler/store/mysql/mysql_task_store.h"
#include "scheduler/store/mysql/statements.h"

namespace leasehold::scheduler {

absl::StatusOr<std::vector<LeasedTask>> MySqlTaskStore::FindExpiredLeases(
    int limit) {
  // Oldest first among many more than are asked for; with more than that the
  // order does not matter any more.
  LEASEHOLD_ASSIGN_OR_RETURN(
      std::vector<LeasedTask> leases,
      ReadLeases(Role::kFinish, "find_expired_leases",
                 FindExpiredLeasesSql(std::max(limit, 10'000))));
  std::sort(leases.begin(), leases.end(),
            [](const LeasedTask& a, const LeasedTask& b) {
              return std::pair(a.lease_expire_us, a.lease.task_id) <
                     std::pair(b.lease_expire_us, b.lease.task_id);
            });
  if (leases.size() > static_cast<size_t>(limit)) {
    leases.resize(static_cast<size_t>(limit));
  }
  return leases;
}

absl::StatusOr<std::vector<TaskId>> MySqlTaskStore::FindExpiredTasks(
    int limit) {
  LEASEHOLD_ASSIGN_OR_RETURN(const Rows rows,
                             Read(Role::kFinish, "find_expired_tasks",
                                  FindExpiredTasksSql(limit), "i"));
  std::vector<TaskId> ids;
  for (size_t i = 0; i < rows.size(); ++i) ids.push_back(rows.Int(i, 0));
  return ids;
}

absl::StatusOr<std::vector<TaskId>> MySqlTaskStore::FindOverdueCancels(
    int limit) {
  LEASEHOLD_ASSIGN_OR_RETURN(const Rows rows,
                             Read(Role::kFinish, "find_overdue_cancels",
                                  FindOverdueCancelsSql(limit), "i"));
  std::vector<TaskId> ids;
  for (size_t i = 0; i < rows.size(); ++i) ids.push_back(rows.Int(i, 0));
  return ids;
}

}  // namespace leasehold::scheduler
