// The store's contract kept in memory, with a clock that tests move and faults
// that tests order. Passes the same conformance suite as the real one.
//
//   MemoryTaskStore store;
//   store.Advance(absl::Seconds(15));
//   store.FailNext(StoreMethod::kChangeTasks, 2, absl::AbortedError("test"));
//   store.LoseNext(StoreMethod::kSubmitTasks, 1);   // committed, yet
//   UNAVAILABLE store.CloseGate(Role::kFinish);                 // calls of the
//   role wait
#ifndef TESTS_SUPPORT_MEMORY_TASK_STORE_H_
#define TESTS_SUPPORT_MEMORY_TASK_STORE_H_

#include <array>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/time/clock.h"
#include "scheduler/store/task_store.h"

namespace leasehold::scheduler {

enum class StoreMethod : int {
  kNowUs,
  kReserveIds,
  kInternLanes,
  kListLanes,
  kListQueues,
  kSetQueuePaused,
  kTouchReplica,
  kRemoveReplica,
  kInternHolder,
  kListLeases,
  kSubmitTasks,
  kListReadyHeads,
  kScanReady,
  kClaimLeases,
  kLoadLeaseBodies,
  kRenewLeases,
  kSaveLeaseUpdates,
  kChangeTasks,
  kFindExpiredLeases,
  kFindExpiredTasks,
  kFindOverdueCancels,
  kGetTasks,
  kListTasks,
  kCountLiveTasks,
};
inline constexpr size_t kStoreMethods =
    static_cast<size_t>(StoreMethod::kCountLiveTasks) + 1;
inline constexpr size_t kRoles = 6;

// Thread-safe.
class MemoryTaskStore : public TaskStore {
 public:
  static constexpr int64_t kStartUs = 1'700'000'000'000'000;

  // The database's clock is `clock`'s wall time; without one it starts at
  // kStartUs and moves by Advance alone.
  explicit MemoryTaskStore(const Clock* clock = nullptr) : clock_(clock) {}

  // ---- For tests ----

  void Advance(absl::Duration by);

  // The next `calls` calls fail with `status` and change nothing.
  void FailNext(StoreMethod method, int calls, absl::Status status);
  // The next `calls` calls take effect and are reported UNAVAILABLE.
  void LoseNext(StoreMethod method, int calls);
  // Every call fails UNAVAILABLE until SetReachable(true).
  void SetReachable(bool reachable);
  // ChangeTasks asks for every decision twice, as if each transaction had been
  // repeated once.
  void RepeatDecisions(bool repeat);

  // Calls of `role` wait until the gate opens again.
  void CloseGate(Role role);
  void OpenGate(Role role);
  // Waits until `calls` calls stand at the closed gate.
  void AwaitBlocked(Role role, int calls);

  // Calls so far, failed ones included.
  int CallsOf(StoreMethod method) const;

  std::optional<LiveTask> LiveRow(TaskId id) const;
  std::optional<EndedTask> EndedRow(TaskId id) const;
  std::vector<Attempt> AttemptRows(TaskId id) const;
  size_t live_count() const;
  size_t ended_count() const;
  void PutLiveRow(const LiveTask& row);
  void PutQueue(const QueueRow& row);
  // Removes every trace of a task but its idempotency key, as retention does.
  void PurgeTask(TaskId id);

  // ---- TaskStore ----

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
      Role role = Role::kFinish) override;
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
  struct Body {
    LaneId lane_id = 0;
    TaskSpec spec;
    int64_t create_us = 0;
  };
  struct Key {
    TaskId id = 0;
    std::string content_hash;
  };
  using Keys = std::map<std::pair<std::string, std::string>, Key>;
  struct Faults {
    int calls = 0;
    int fail = 0;
    absl::Status status;
    int lose = 0;
  };
  struct Gate {
    bool closed = false;
    int blocked = 0;
  };

  // Runs one call: counts it, waits at the role's gate, applies the faults.
  // `call` runs under the lock.
  template <typename Result, typename Call>
  Result Run(StoreMethod method, Role role, Call call);

  // All below: under the lock.
  int64_t Now() const;
  bool Exists(TaskId id) const;
  void SetLive(const LiveTask& row);
  void EraseLive(TaskId id);
  absl::StatusOr<std::vector<SubmittedTask>> SubmitCall(
      const std::vector<NewTask>& call);
  std::optional<absl::StatusOr<SubmittedTask>> FindKnown(const NewTask& task,
                                                         const Keys& fresh);
  LiveTask* HeldLive(const LeaseRef& lease, HolderId holder);
  RenewOutcome Renew(const Renewal& renewal);
  TaskView ViewOf(TaskId id, EndedTask* ended) const;
  void Apply(TaskId id, const Change& change);
  std::string ExecutorOf(HolderId holder) const;
  TaskRecord RecordOf(TaskId id, const ReadOptions& options) const;
  bool Matches(TaskId id, const ListFilter& filter) const;
  template <typename Want>
  std::vector<LeasedTask> LeasedWhere(Want want) const;

  const Clock* const clock_;
  mutable std::mutex mutex_;
  std::condition_variable gates_changed_;
  std::array<Faults, kStoreMethods> faults_;
  std::array<Gate, kRoles> gates_;
  bool reachable_ = true;
  bool repeat_decisions_ = false;

  int64_t fake_now_us_ = kStartUs;
  TaskId next_id_ = 1;
  std::vector<Lane> lanes_;
  std::map<std::pair<std::string, std::string>, LaneId> lane_ids_;
  std::map<std::string, QueueRow> queues_;
  int64_t queue_version_ = 1;
  std::map<std::string, ReplicaRow> replicas_;
  std::vector<std::pair<std::string, std::string>> holders_;
  std::map<TaskId, Body> bodies_;
  std::map<TaskId, LiveTask> live_;
  std::map<TaskId, EndedTask> ended_;
  std::map<TaskId, std::map<int64_t, Attempt>> attempts_;  // By lease_number.
  std::map<TaskId, std::string> checkpoints_;
  std::map<TaskId, Progress> progress_;
  std::map<TaskId, std::string> cancel_reasons_;
  std::map<TaskId, int64_t> expire_us_;
  Keys keys_;
  // (lane, priority, run_us, id) of waiting rows.
  std::set<std::tuple<LaneId, int, int64_t, TaskId>> ready_;
};

}  // namespace leasehold::scheduler

#endif  // TESTS_SUPPORT_MEMORY_TASK_STORE_H_
