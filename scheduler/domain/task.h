// The nouns of the scheduler: a task while it lives, what its client sent, and
// how it ended. Plain values without behaviour; state_machine.h decides how one
// becomes another.
//
// All times are microseconds since the Unix epoch, UTC, of the database's
// clock; 0 means "not set". Enumerators carry the numbers of
// leasehold/v1/task.proto and are what the database stores.
#ifndef SCHEDULER_DOMAIN_TASK_H_
#define SCHEDULER_DOMAIN_TASK_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::scheduler {

using TaskId = int64_t;    // From 1; shown to clients in decimal.
using LaneId = int32_t;    // (queue, type), interned. From 1.
using HolderId = int32_t;  // (executor_id, incarnation), interned. From 1.

enum class TaskState : int {
  kUnspecified = 0,
  kPending = 1,
  kDispatched = 2,
  kRunning = 3,
  kRetrying = 4,
  kPaused = 5,
  kSucceeded = 6,
  kFailed = 7,
  kCancelled = 8,
};

constexpr bool IsTerminal(TaskState state) {
  return state >= TaskState::kSucceeded;
}

// What a live row is to the dispatcher: the first column of its index.
enum class Phase : int { kWaiting = 0, kLeased = 1, kPaused = 2 };

// What became of the latest lease. Says whether a report of it still counts.
enum class LeaseEnd : int {
  kOpen = 0,     // Valid, or at least not taken back.
  kExpired = 1,  // Taken back without a report.
  kClosed = 2,   // Reported or released; also before the first lease.
};

enum class FailureReason : int {
  kUnspecified = 0,
  kNonRetryable = 1,
  kAttemptsExhausted = 2,
  kExpired = 3,
  kPoisoned = 4,
  kRateLimited = 5,
};

enum class ErrorClass : int {
  kUnspecified = 0,
  kRetryable = 1,
  kNonRetryable = 2,
  kRateLimited = 3,
  kTimeout = 4,
  kLeaseExpired = 5,
  kCancelled = 6,
};

enum class ReleaseReason : int {
  kUnspecified = 0,
  kRejected = 1,
  kDraining = 2,
  kSnoozed = 3,
  kUnknownType = 4,
};

enum class PayloadKind : int { kNone = 0, kJson = 1, kData = 2 };

struct Payload {
  PayloadKind kind = PayloadKind::kNone;
  std::string bytes;

  friend bool operator==(const Payload&, const Payload&) = default;
};

struct TaskError {
  ErrorClass error_class = ErrorClass::kUnspecified;
  std::string code;     // At most 64 characters, valid UTF-8.
  std::string message;  // At most 4096 bytes, valid UTF-8.
  int64_t retry_after_us = 0;

  friend bool operator==(const TaskError&, const TaskError&) = default;
};

struct Progress {
  int64_t done = 0;
  int64_t total = 0;
  std::string message;  // At most 256 bytes, valid UTF-8.

  friend bool operator==(const Progress&, const Progress&) = default;
};

// Unset fields take the queue's value, and that the default.
struct RetryPolicySpec {
  std::optional<int32_t> max_attempts;
  std::optional<int64_t> initial_backoff_us;
  std::optional<int64_t> max_backoff_us;
  std::vector<int64_t> backoff_schedule_us;      // Empty means unset.
  std::vector<std::string> non_retryable_codes;  // Empty means unset.

  friend bool operator==(const RetryPolicySpec&,
                         const RetryPolicySpec&) = default;
};

// What the client sent; immutable once stored (table task_body).
struct TaskSpec {
  std::string queue;
  std::string type;
  Payload payload;
  int priority = 5;  // 0 runs first, 9 last.
  std::string partition_key;
  std::string idempotency_key;                              // Empty means none.
  std::vector<std::pair<std::string, std::string>> labels;  // Sorted by key.
  RetryPolicySpec retry_policy;
  int64_t attempt_timeout_us = 0;  // 0 takes the queue's value.
  int64_t schedule_us = 0;
  int64_t expire_us = 0;
  std::string traceparent;
  int64_t batch_id = 0;
};

// A task that has not ended: one row of task_live, fixed width.
struct LiveTask {
  TaskId id = 0;
  LaneId lane_id = 0;
  Phase phase = Phase::kWaiting;
  TaskState state = TaskState::kPending;
  int priority = 5;
  int64_t run_us = 0;          // Not leased before this time.
  int attempt = 0;             // Charged so far, the current one included.
  int rate_limited_count = 0;  // In a row.
  int expiry_count = 0;        // Leases that ended without a report.
  int64_t lease_number = 0;    // The fencing token: grows with every lease.
  HolderId holder = 0;         // Of the latest lease.
  LeaseEnd lease_end = LeaseEnd::kClosed;
  int64_t lease_expire_us = 0;
  int64_t attempt_expire_us = 0;  // No renewal from here on; 0 means never.
  int64_t cancel_expire_us = 0;   // Not 0: cancellation has been asked for.
  int64_t state_us = 0;           // When `state` was entered.
  int64_t start_us = 0;           // Start of the current or latest attempt.
  int64_t first_start_us = 0;     // Of the first attempt, as far as known.

  friend bool operator==(const LiveTask&, const LiveTask&) = default;
};

// How a task ended: one row of task_result.
struct EndedTask {
  TaskState state = TaskState::kUnspecified;
  FailureReason reason = FailureReason::kUnspecified;
  int64_t lease_number = 0;
  int64_t lease_expire_us = 0;  // End of the last lease, if it was cut short.
  HolderId holder = 0;
  int attempt = 0;
  Payload result;
  std::optional<TaskError> error;
  int64_t start_us = 0;
  int64_t finish_us = 0;
};

// An attempt that did not succeed: one row of task_attempt.
struct Attempt {
  int number = 0;
  int64_t lease_number = 0;
  HolderId holder = 0;
  int64_t start_us = 0;
  int64_t finish_us = 0;
  TaskError error;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_DOMAIN_TASK_H_
