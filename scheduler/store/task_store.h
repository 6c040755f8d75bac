// The contract between the scheduler and its database: one method per atomic
// step, each for many tasks at once.
//
// Common to all methods:
//  - Thread-safe. Calls of one role (see Role) run one after another on a
//    connection of their own, except reads, which have several; so a burst of
//    one role never makes another wait.
//  - UNAVAILABLE: the database could not be reached, is read-only, or the
//    connection broke. A write may or may not have happened; every write is
//    safe to repeat.
//  - ABORTED: deadlocks or lock waits, more often than the bounded retries
//    inside allow. Nothing has changed; safe to call again.
//  - INTERNAL: anything else; the message holds the database's error number and
//    the statement's name, never a value.
//  - Times are the database's clock, in microseconds.
//  - Lists of any length are taken; implementations split them into statements.
//    What one call writes is one transaction unless said otherwise.
#ifndef SCHEDULER_STORE_TASK_STORE_H_
#define SCHEDULER_STORE_TASK_STORE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "scheduler/domain/state_machine.h"
#include "scheduler/domain/task.h"

namespace leasehold::scheduler {

enum class Role { kSubmit, kClaim, kFinish, kRenew, kRead, kControl };

struct Lane {
  LaneId id = 0;
  std::string queue;
  std::string type;
};

// ---- Submit ----

struct NewTask {
  TaskId id = 0;  // From ReserveIds.
  LaneId lane_id = 0;
  TaskSpec spec;
  // SHA-256 of queue, type and payload; used only with an idempotency key.
  std::string content_hash;
  // Not 0: leased to this holder, for lease_us, in the transaction that stores
  // the task, under lease_number 1. Not for a task that existed, nor with a
  // schedule_time.
  HolderId holder = 0;
  int64_t lease_us = 0;
};

struct SubmittedTask {
  TaskId id = 0;  // The existing task's if the key was known.
  bool existed = false;
  int64_t create_us = 0;  // 0 if it existed.
  int64_t run_us = 0;     // 0 if it existed.
};

// ---- Dispatch ----

// Where (lane, priority) has waiting tasks.
struct ReadyHead {
  LaneId lane_id = 0;
  int priority = 0;
  int64_t run_us = 0;  // Of its first waiting task, due or not.
};

// A waiting task as the index and the claim need it.
struct ReadyTask {
  TaskId id = 0;
  LaneId lane_id = 0;
  int priority = 0;
  int64_t run_us = 0;
  int64_t lease_number = 0;  // As it is now; the claim expects it unchanged.
  int attempt = 0;           // Charged so far, without the next one.
};

// Every `of`-th id, from `index` on: so that replicas do not claim each
// other's.
struct IdShare {
  int index = 0;
  int of = 1;

  bool Has(TaskId id) const { return id % of == index; }
  friend bool operator==(const IdShare&, const IdShare&) = default;
};

struct ReadyPage {
  std::vector<ReadyTask> tasks;  // By (run_us, id).
  int64_t now_us = 0;
  bool complete = false;  // Nothing after the last one is due by `until_us`.
};

struct Claim {
  TaskId id = 0;
  int64_t lease_number = 0;  // Expected; the lease's is one more.
  HolderId holder = 0;
  int64_t lease_us = 0;  // First lease: min(lease_duration, accept_timeout).
};

struct ClaimResult {
  // Parallel to the claims: whether this call won the task.
  std::vector<bool> won;
  int64_t now_us = 0;
};

// ---- Leases ----

struct Renewal {
  LeaseRef lease;
  HolderId holder = 0;
  int64_t lease_us = 0;
  // Not 0: the handler started then. The row becomes RUNNING with this start,
  // and attempt_expire_us = start + attempt_timeout_us + 60 s.
  int64_t start_us = 0;
  int64_t attempt_timeout_us = 0;
};

enum class RenewOutcome {
  kRenewed,
  kCancelRequested,  // Held (and renewed if its deadline allows it), but the
                     // task is to be cancelled.
  kLost,             // Not this holder's lease any more.
};

struct LeasedTask {
  LeaseRef lease;
  LaneId lane_id = 0;
  HolderId holder = 0;
  TaskState state = TaskState::kUnspecified;
  int64_t lease_expire_us = 0;
  int64_t state_us = 0;
  int64_t cancel_expire_us = 0;
};

struct LeaseUpdate {  // Progress and checkpoint; nullopt leaves it as it is.
  LeaseRef lease;
  HolderId holder = 0;
  std::optional<Progress> progress;
  std::optional<std::string> checkpoint;
};

// ---- Reads ----

// Everything about one task. `ended` and `live` exclude each other.
struct TaskRecord {
  TaskId id = 0;
  TaskSpec spec;  // Payload only when asked for.
  int64_t create_us = 0;
  std::optional<LiveTask> live;
  std::optional<EndedTask> ended;       // Result only when asked for.
  std::string executor_id;              // Of live->holder or ended->holder.
  std::optional<TaskError> last_error;  // Of a live task: its latest attempt's.
  std::optional<Progress> progress;
  std::vector<Attempt> attempts;  // Oldest first, at most 20; when asked for.
  std::vector<std::string> attempt_executor_ids;  // Parallel to attempts.
};

struct ReadOptions {
  bool payload = false;
  bool result = false;
  bool attempts = false;
};

struct ListFilter {
  std::string queue;  // Empty means any; the same for the other strings.
  std::string type;
  std::vector<TaskState> states;
  std::string partition_key;
  int64_t batch_id = 0;
  int64_t create_from_us = 0;   // Inclusive; 0 means open.
  int64_t create_until_us = 0;  // Exclusive; 0 means open.
};

struct ListPage {
  std::vector<TaskRecord> tasks;  // Ids descending.
  // Every task with an id below this one is still to come; 0 ends the list. A
  // page may be short or empty although the list goes on.
  TaskId next_below = 0;
};

// What a claimed task's lease message needs besides the hint.
struct LeaseBody {
  TaskId id = 0;
  TaskSpec spec;
  std::string checkpoint;
};

// ---- Configuration of queues ----
struct QueueRow {
  std::string name;
  bool paused = false;
  int64_t version = 0;
  RetryPolicySpec retry_policy;
  int64_t attempt_timeout_us = 0;  // 0 means the default.
  int64_t lease_duration_us = 0;   // 0 means the scheduler's.
};

// ---- Replicas ----
struct ReplicaRow {
  std::string id;
  std::string address;
  int64_t start_us = 0;
  int64_t seen_us = 0;       // When it last said that it lives.
  int64_t seen_version = 0;  // It acts on the queues as of this version.
  int sessions = 0;          // Executors connected to it.
};

class TaskStore {
 public:
  virtual ~TaskStore() = default;

  // --- kControl: rare, small ---

  // The database answers, can be written to, and it is now:
  virtual absl::StatusOr<int64_t> NowUs() = 0;

  // Reserves `count` ids for this replica alone; returns the first.
  virtual absl::StatusOr<TaskId> ReserveIds(int64_t count) = 0;

  // Ids for (queue, type) pairs, parallel to `names`; makes the missing ones,
  // and their queues. RESOURCE_EXHAUSTED past 10,000 lanes.
  virtual absl::StatusOr<std::vector<LaneId>> InternLanes(
      absl::Span<const std::pair<std::string, std::string>> names) = 0;
  virtual absl::StatusOr<std::vector<Lane>> ListLanes() = 0;
  virtual absl::StatusOr<std::vector<QueueRow>> ListQueues() = 0;

  // Pauses or resumes; returns the queue as it is then. Its version is larger
  // than that of any change which committed before, of whatever queue; setting
  // what is set changes nothing. NOT_FOUND.
  virtual absl::StatusOr<QueueRow> SetQueuePaused(const std::string& name,
                                                  bool paused) = 0;

  // Says that the replica lives, with seen_us = now; returns all that have done
  // so within `alive_us`, ids ascending. Forgets those that have not for a day.
  virtual absl::StatusOr<std::vector<ReplicaRow>> TouchReplica(
      const ReplicaRow& replica, int64_t alive_us) = 0;
  // The replica leaves.
  virtual absl::Status RemoveReplica(const std::string& id) = 0;

  virtual absl::StatusOr<HolderId> InternHolder(
      const std::string& executor_id, const std::string& incarnation) = 0;

  // All leases of a holder, by id.
  virtual absl::StatusOr<std::vector<LeasedTask>> ListLeases(
      HolderId holder) = 0;

  // --- kSubmit ---

  // Stores many calls in one transaction; each call, one element, is all or
  // none. Parallel to `calls`. A call with a key that its queue knows gets the
  // existing task if the content hash is the same; ALREADY_EXISTS for that call
  // alone if not, the message naming the key's task. A key whose task is gone
  // from every table is free. A key that stands twice in one call, or in two
  // calls, counts as known from its first one on.
  virtual absl::StatusOr<
      std::vector<absl::StatusOr<std::vector<SubmittedTask>>>>
  SubmitTasks(absl::Span<const std::vector<NewTask>> calls) = 0;

  // --- kClaim ---

  // Every (lane, priority) that has waiting tasks. One grouped scan.
  virtual absl::StatusOr<std::vector<ReadyHead>> ListReadyHeads() = 0;

  // Waiting tasks of a lane and priority that are due by `until_us`, from
  // (after_run_us, after_id), exclusive, on; of them those of the share. Reads
  // without locks.
  virtual absl::StatusOr<ReadyPage> ScanReady(LaneId lane_id, int priority,
                                              int64_t after_run_us,
                                              TaskId after_id, int64_t until_us,
                                              int limit,
                                              const IdShare& share) = 0;

  // Leases waiting, due tasks whose lease_number is as expected: state
  // DISPATCHED, attempt + 1, lease_number + 1, lease open. Autocommits.
  virtual absl::StatusOr<ClaimResult> ClaimLeases(
      absl::Span<const Claim> claims) = 0;

  // Bodies and checkpoints, for those of `ids` that exist. Stops after the body
  // that takes the total over max_bytes; callers ask again for the rest.
  virtual absl::StatusOr<std::vector<LeaseBody>> LoadLeaseBodies(
      absl::Span<const TaskId> ids, int64_t max_bytes) = 0;

  // --- kRenew ---

  // lease_expire_us = now + lease_us for every lease that is the holder's and
  // whose attempt_expire_us and cancel_expire_us have not passed. Parallel to
  // `renewals`. Autocommits, statement by statement; never shortens a lease.
  virtual absl::StatusOr<std::vector<RenewOutcome>> RenewLeases(
      absl::Span<const Renewal> renewals) = 0;

  // Latest progress and checkpoint of leases that are the holder's; others are
  // left out. Runs in the kControl role, so that renewals do not wait for it.
  virtual absl::Status SaveLeaseUpdates(
      absl::Span<const LeaseUpdate> updates) = 0;

  // --- kFinish ---

  // The one way in which live tasks change: locks the rows of `ids` (ascending,
  // distinct), asks `decide` for each, writes what it says, and commits.
  // `decide` gets the position in `ids`; it may be called again from the start
  // when the transaction is repeated, so its effects must be overwritten, not
  // added up. A task that ended leaves its idempotency key in place; its
  // checkpoint, progress and expire_time rows go.
  virtual absl::Status ChangeTasks(
      absl::Span<const TaskId> ids,
      absl::FunctionRef<Change(size_t, const TaskView&)> decide,
      Role role = Role::kFinish) = 0;

  // Leased tasks whose lease_expire_us is past, oldest first. No locks.
  virtual absl::StatusOr<std::vector<LeasedTask>> FindExpiredLeases(
      int limit) = 0;
  // Live tasks whose expire_time is past, oldest first. No locks.
  virtual absl::StatusOr<std::vector<TaskId>> FindExpiredTasks(int limit) = 0;
  // Leased tasks whose cancel_expire_us is past. No locks.
  virtual absl::StatusOr<std::vector<TaskId>> FindOverdueCancels(int limit) = 0;

  // --- kRead ---

  // Those of `ids` that exist, ids ascending. Live and ended are read in one
  // statement, so that a task that moves between the tables is never missed.
  virtual absl::StatusOr<std::vector<TaskRecord>> GetTasks(
      absl::Span<const TaskId> ids, const ReadOptions& options) = 0;

  virtual absl::StatusOr<ListPage> ListTasks(const ListFilter& filter,
                                             TaskId below, int page_size,
                                             int64_t max_bytes) = 0;

  // (lane, state) -> live tasks. One grouped scan; expensive with millions.
  virtual absl::StatusOr<
      std::vector<std::pair<std::pair<LaneId, TaskState>, int64_t>>>
  CountLiveTasks() = 0;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_STORE_TASK_STORE_H_
