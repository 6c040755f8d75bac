// A store that outlives the core which uses it, as a database does.
#ifndef TESTS_SUPPORT_BORROWED_TASK_STORE_H_
#define TESTS_SUPPORT_BORROWED_TASK_STORE_H_

#include <string>
#include <utility>
#include <vector>

#include "tests/support/memory_task_store.h"

namespace leasehold::scheduler {

class BorrowedStore : public TaskStore {
 public:
  explicit BorrowedStore(MemoryTaskStore& store) : store_(store) {}

  absl::StatusOr<int64_t> NowUs() override { return store_.NowUs(); }
  absl::StatusOr<TaskId> ReserveIds(int64_t count) override {
    return store_.ReserveIds(count);
  }
  absl::StatusOr<std::vector<LaneId>> InternLanes(
      absl::Span<const std::pair<std::string, std::string>> names) override {
    return store_.InternLanes(names);
  }
  absl::StatusOr<std::vector<Lane>> ListLanes() override {
    return store_.ListLanes();
  }
  absl::StatusOr<std::vector<QueueRow>> ListQueues() override {
    return store_.ListQueues();
  }
  absl::StatusOr<QueueRow> SetQueuePaused(const std::string& name,
                                          bool paused) override {
    return store_.SetQueuePaused(name, paused);
  }
  absl::StatusOr<std::vector<ReplicaRow>> TouchReplica(
      const ReplicaRow& replica, int64_t alive_us) override {
    return store_.TouchReplica(replica, alive_us);
  }
  absl::Status RemoveReplica(const std::string& id) override {
    return store_.RemoveReplica(id);
  }
  absl::StatusOr<HolderId> InternHolder(
      const std::string& executor_id, const std::string& incarnation) override {
    return store_.InternHolder(executor_id, incarnation);
  }
  absl::StatusOr<std::vector<LeasedTask>> ListLeases(HolderId holder) override {
    return store_.ListLeases(holder);
  }
  absl::StatusOr<std::vector<absl::StatusOr<std::vector<SubmittedTask>>>>
  SubmitTasks(absl::Span<const std::vector<NewTask>> calls) override {
    return store_.SubmitTasks(calls);
  }
  absl::StatusOr<std::vector<ReadyHead>> ListReadyHeads() override {
    return store_.ListReadyHeads();
  }
  absl::StatusOr<ReadyPage> ScanReady(LaneId lane_id, int priority,
                                      int64_t after_run_us, TaskId after_id,
                                      int64_t until_us, int limit,
                                      const IdShare& share) override {
    return store_.ScanReady(lane_id, priority, after_run_us, after_id, until_us,
                            limit, share);
  }
  absl::StatusOr<ClaimResult> ClaimLeases(
      absl::Span<const Claim> claims) override {
    return store_.ClaimLeases(claims);
  }
  absl::StatusOr<std::vector<LeaseBody>> LoadLeaseBodies(
      absl::Span<const TaskId> ids, int64_t max_bytes) override {
    return store_.LoadLeaseBodies(ids, max_bytes);
  }
  absl::StatusOr<std::vector<RenewOutcome>> RenewLeases(
      absl::Span<const Renewal> renewals) override {
    return store_.RenewLeases(renewals);
  }
  absl::Status SaveLeaseUpdates(
      absl::Span<const LeaseUpdate> updates) override {
    return store_.SaveLeaseUpdates(updates);
  }
  absl::Status ChangeTasks(
      absl::Span<const TaskId> ids,
      absl::FunctionRef<Change(size_t, const TaskView&)> decide,
      Role role) override {
    return store_.ChangeTasks(ids, decide, role);
  }
  absl::StatusOr<std::vector<LeasedTask>> FindExpiredLeases(
      int limit) override {
    return store_.FindExpiredLeases(limit);
  }
  absl::StatusOr<std::vector<TaskId>> FindExpiredTasks(int limit) override {
    return store_.FindExpiredTasks(limit);
  }
  absl::StatusOr<std::vector<TaskId>> FindOverdueCancels(int limit) override {
    return store_.FindOverdueCancels(limit);
  }
  absl::StatusOr<std::vector<TaskRecord>> GetTasks(
      absl::Span<const TaskId> ids, const ReadOptions& options) override {
    return store_.GetTasks(ids, options);
  }
  absl::StatusOr<ListPage> ListTasks(const ListFilter& filter, TaskId below,
                                     int page_size,
                                     int64_t max_bytes) override {
    return store_.ListTasks(filter, below, page_size, max_bytes);
  }
  absl::StatusOr<std::vector<std::pair<std::pair<LaneId, TaskState>, int64_t>>>
  CountLiveTasks() override {
    return store_.CountLiveTasks();
  }

 private:
  MemoryTaskStore& store_;
};

}  // namespace leasehold::scheduler

#endif  // TESTS_SUPPORT_BORROWED_TASK_STORE_H_
