#include "scheduler/store/mysql/mysql_task_store.h"

#include <algorithm>

#include "common/status/status_macros.h"
#include "scheduler/store/mysql/mysql_store.h"
#include "scheduler/store/mysql/spec_json.h"
#include "scheduler/store/mysql/statements.h"

namespace leasehold::scheduler {

std::unique_ptr<TaskStore> OpenMySqlStore(
    const MySqlConfig& config,
    std::function<void(absl::string_view, absl::string_view)> on_retry) {
  return std::make_unique<MySqlTaskStore>(config, std::move(on_retry));
}

MySqlTaskStore::MySqlTaskStore(const MySqlConfig& config,
                               RetryObserver on_retry)
    : on_retry_(std::move(on_retry)),
      submit_(config, ConnectionKind::kWrite, "submit", 1),
      claim_(config, ConnectionKind::kWrite, "claim", 1),
      finish_(config, ConnectionKind::kWrite, "finish", 1),
      renew_(config, ConnectionKind::kWrite, "renew", 1),
      control_(config, ConnectionKind::kWrite, "control", 1),
      read_(config, ConnectionKind::kRead, "read", config.read_connections) {}

ConnectionPool& MySqlTaskStore::PoolOf(Role role) {
  switch (role) {
    case Role::kSubmit:
      return submit_;
    case Role::kClaim:
      return claim_;
    case Role::kFinish:
      return finish_;
    case Role::kRenew:
      return renew_;
    case Role::kRead:
      return read_;
    case Role::kControl:
      break;
  }
  return control_;
}

absl::StatusOr<Rows> MySqlTaskStore::Read(Role role, const char* name,
                                          const std::string& sql,
                                          absl::string_view types) {
  Rows rows;
  LEASEHOLD_RETURN_IF_ERROR(
      RunStatement(PoolOf(role), name, on_retry_, [&](Connection& connection) {
        LEASEHOLD_ASSIGN_OR_RETURN(rows, connection.Select(name, sql, types));
        return absl::OkStatus();
      }));
  return rows;
}

absl::StatusOr<int64_t> SelectNowUs(Connection& connection) {
  static const std::string* const kSql =
      new std::string(std::string("SELECT ") + kNowUs);
  LEASEHOLD_ASSIGN_OR_RETURN(const Rows rows,
                             connection.Select("now", *kSql, "i"));
  return rows.Int(0, 0);
}

std::vector<absl::Span<const TaskId>> IdChunks(absl::Span<const TaskId> ids) {
  std::vector<absl::Span<const TaskId>> chunks;
  for (size_t i = 0; i < ids.size(); i += kMaxIds) {
    chunks.push_back(ids.subspan(i, kMaxIds));
  }
  return chunks;
}

absl::Status LanePolicies::Refresh(Connection& connection) {
  const auto now = std::chrono::steady_clock::now();
  {
    std::lock_guard lock(mutex_);
    if (read_at_ != std::chrono::steady_clock::time_point{} &&
        now - read_at_ < std::chrono::seconds(1)) {
      return absl::OkStatus();
    }
  }
  LEASEHOLD_ASSIGN_OR_RETURN(
      const Rows rows,
      connection.Select(
          "lane_policies",
          "SELECT l.id, q.retry_policy FROM queues q JOIN lanes l "
          "ON l.queue = q.name WHERE q.retry_policy <> ''",
          "it"));
  std::map<LaneId, RetryPolicySpec> policies;
  for (size_t i = 0; i < rows.size(); ++i) {
    LEASEHOLD_ASSIGN_OR_RETURN(policies[static_cast<LaneId>(rows.Int(i, 0))],
                               RetryPolicyFromJson(rows.Text(i, 1)));
  }
  std::lock_guard lock(mutex_);
  policies_ = std::move(policies);
  read_at_ = now;
  return absl::OkStatus();
}

RetryPolicySpec LanePolicies::Get(LaneId lane_id) const {
  std::lock_guard lock(mutex_);
  const auto it = policies_.find(lane_id);
  return it == policies_.end() ? RetryPolicySpec{} : it->second;
}

}  // namespace leasehold::scheduler
