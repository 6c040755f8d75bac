// When and how often a task is tried again. Pure.
//
// Source of the formula: RetryPolicy in proto/leasehold/v1/task.proto. The wait
// before retry n is d to 1.2 d, evenly spread, where
// d = min(initial_backoff * 2^(n-1), max_backoff / 1.2): never above
// max_backoff, never all at one instant, and no n overflows.
#ifndef SCHEDULER_DOMAIN_RETRY_POLICY_H_
#define SCHEDULER_DOMAIN_RETRY_POLICY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "scheduler/domain/limits.h"
#include "scheduler/domain/task.h"

namespace leasehold::scheduler {

// A policy with nothing left unset.
struct RetryPolicy {
  int max_attempts = kDefaultMaxAttempts;
  int64_t initial_backoff_us = kDefaultInitialBackoffUs;
  int64_t max_backoff_us = kDefaultMaxBackoffUs;
  std::vector<int64_t> backoff_schedule_us;
  std::vector<std::string> non_retryable_codes;

  friend bool operator==(const RetryPolicy&, const RetryPolicy&) = default;
};

// Field by field: the task's value, else the queue's, else the default.
RetryPolicy ResolveRetryPolicy(const RetryPolicySpec& task,
                               const RetryPolicySpec& queue);

// The wait before retry `n`, from 1. `jitter` is evenly spread over [0, 1).
int64_t BackoffUs(const RetryPolicy& policy, int n, double jitter);

// Whether errors with this code fail at once whatever their class.
bool IsNonRetryableCode(const RetryPolicy& policy, absl::string_view code);

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_DOMAIN_RETRY_POLICY_H_
