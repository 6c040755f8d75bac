// The TaskStore over SQL. Each method's work is in the file of its role:
// submit.cc, claim.cc, renew.cc, change.cc, read.cc and control.cc.
#ifndef SCHEDULER_STORE_MYSQL_MYSQL_TASK_STORE_H_
#define SCHEDULER_STORE_MYSQL_MYSQL_TASK_STORE_H_

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "scheduler/store/mysql/connection_pool.h"
#include "scheduler/store/mysql/mysql_config.h"
#include "scheduler/store/mysql/transaction.h"
#include "scheduler/store/task_store.h"

namespace leasehold::scheduler {

// The queues' retry policies by lane, read again when older than a second. Only
// lanes whose queue sets one are in it. Thread-safe.
class LanePolicies {
 public:
  // UNAVAILABLE and so on when they cannot be read.
  absl::Status Refresh(Connection& connection);
  RetryPolicySpec Get(LaneId lane_id) const;

 private:
  mutable std::mutex mutex_;
  std::map<LaneId, RetryPolicySpec> policies_;       // Guarded by mutex_.
  std::chrono::steady_clock::time_point read_at_{};  // Guarded by mutex_.
};

class MySqlTaskStore : public TaskStore {
 public:
  MySqlTaskStore(const MySqlConfig& config, RetryObserver on_retry);

  absl::StatusOr<int64_t> NowUs() override;
  absl::StatusOr<TaskId> ReserveIds(int64_t count) override;
  absl::StatusOr<std::vector<LaneId>> InternLanes(
      absl::Span<const std::pair<std::string, std::string>> names) override;
  absl::StatusOr<std::vector<Lane>> ListLanes() override;
  absl::StatusOr<std::vector<QueueRow>> ListQueues() override;
  absl::StatusOr<QueueRow> SetQueuePaused(const std::string& name,
                                          bool paused) override;
  absl::StatusOr<std::vector<ReplicaRow>> TouchReplica(
      const ReplicaRow& replica, int64_t alive_us) override;
  absl::Status RemoveReplica(const std::string& id) override;
  absl::StatusOr<HolderId> InternHolder(
      const std::string& executor_id, const std::string& incarnation) override;
  absl::StatusOr<std::vector<LeasedTask>> ListLeases(HolderId holder) override;

  absl::StatusOr<std::vector<absl::StatusOr<std::vector<SubmittedTask>>>>
  SubmitTasks(absl::Span<const std::vector<NewTask>> calls) override;

  absl::StatusOr<std::vector<ReadyHead>> ListReadyHeads() override;
  absl::StatusOr<ReadyPage> ScanReady(LaneId lane_id, int priority,
                                      int64_t after_run_us, TaskId after_id,
                                      int64_t until_us, int limit,
                                      const IdShare& share) override;
  absl::StatusOr<ClaimResult> ClaimLeases(
      absl::Span<const Claim> claims) override;
  absl::StatusOr<std::vector<LeaseBody>> LoadLeaseBodies(
      absl::Span<const TaskId> ids, int64_t max_bytes) override;

  absl::StatusOr<std::vector<RenewOutcome>> RenewLeases(
      absl::Span<const Renewal> renewals) override;
  absl::Status SaveLeaseUpdates(absl::Span<const LeaseUpdate> updates) override;

  absl::Status ChangeTasks(
      absl::Span<const TaskId> ids,
      absl::FunctionRef<Change(size_t, const TaskView&)> decide,
      Role role) override;
  absl::StatusOr<std::vector<LeasedTask>> FindExpiredLeases(int limit) override;
  absl::StatusOr<std::vector<TaskId>> FindExpiredTasks(int limit) override;
  absl::StatusOr<std::vector<TaskId>> FindOverdueCancels(int limit) override;

  absl::StatusOr<std::vector<TaskRecord>> GetTasks(
      absl::Span<const TaskId> ids, const ReadOptions& options) override;
  absl::StatusOr<ListPage> ListTasks(const ListFilter& filter, TaskId below,
                                     int page_size, int64_t max_bytes) override;
  absl::StatusOr<std::vector<std::pair<std::pair<LaneId, TaskState>, int64_t>>>
  CountLiveTasks() override;

 private:
  ConnectionPool& PoolOf(Role role);
  // One SELECT on the role's pool.
  absl::StatusOr<Rows> Read(Role role, const char* name, const std::string& sql,
                            absl::string_view types);
  absl::StatusOr<std::vector<LeasedTask>> ReadLeases(Role role,
                                                     const char* name,
                                                     const std::string& sql);
  // One statement of RenewLeases: how many leases it renewed. Those that
  // another transaction keeps locked go to `skipped`.
  absl::StatusOr<int64_t> RenewWith(
      std::string (*statement)(absl::Span<const Renewal>),
      absl::Span<const Renewal> renewals, std::unordered_set<TaskId>* skipped);
  absl::Status RenewStarts(absl::Span<const Renewal> renewals,
                           std::unordered_set<TaskId>* skipped);
  absl::Status RenewChunk(absl::Span<const Renewal> renewals,
                          std::vector<RenewOutcome>* outcomes);

  const RetryObserver on_retry_;
  ConnectionPool submit_;
  ConnectionPool claim_;
  ConnectionPool finish_;
  ConnectionPool renew_;
  ConnectionPool control_;
  ConnectionPool read_;
  LanePolicies lane_policies_;
};

// "SELECT now" on a connection.
absl::StatusOr<int64_t> SelectNowUs(Connection& connection);

// `ids` in pieces of at most kMaxIds, for a loop.
std::vector<absl::Span<const TaskId>> IdChunks(absl::Span<const TaskId> ids);

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_STORE_MYSQL_MYSQL_TASK_STORE_H_
