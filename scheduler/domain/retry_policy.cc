#include "scheduler/domain/retry_policy.h"

#include <algorithm>
#include <cstddef>

namespace leasehold::scheduler {
namespace {

// The spread that jitter adds to a wait: a fifth of it.
constexpr int64_t kSpreadDivisor = 5;

// max_backoff / 1.2, rounded down, so that the longest wait with its spread is
// not above max_backoff.
int64_t LongestWait(int64_t max_backoff_us) {
  const int64_t max = std::max<int64_t>(max_backoff_us, 1);
  return std::max<int64_t>(max / 6 * 5 + max % 6 * 5 / 6, 1);
}

// initial * 2^(n-1), but at most `longest`; compared before it is shifted.
int64_t DoubledWait(int64_t initial_us, int n, int64_t longest) {
  const int64_t initial = std::max<int64_t>(initial_us, 1);
  const int doublings = n - 1;
  if (doublings >= 62 || initial > (longest >> doublings)) return longest;
  return initial << doublings;
}

int64_t ScheduledWait(const std::vector<int64_t>& schedule, int n,
                      int64_t longest) {
  const size_t last = schedule.size() - 1;
  const int64_t wait = schedule[std::min(static_cast<size_t>(n - 1), last)];
  return std::clamp<int64_t>(wait, 1, longest);
}

// A schedule that nobody limited is taken as it stands.
int64_t DefaultMaxBackoff(const std::vector<int64_t>& schedule) {
  int64_t longest = 0;
  for (const int64_t wait : schedule) {
    longest = std::max(longest, std::min(wait, kMaxMaxBackoffUs));
  }
  const int64_t with_spread = longest + longest / kSpreadDivisor + 1;
  return std::max(kDefaultMaxBackoffUs, with_spread);
}

}  // namespace

RetryPolicy ResolveRetryPolicy(const RetryPolicySpec& task,
                               const RetryPolicySpec& queue) {
  RetryPolicy policy;
  policy.max_attempts = task.max_attempts.value_or(
      queue.max_attempts.value_or(kDefaultMaxAttempts));
  policy.initial_backoff_us = task.initial_backoff_us.value_or(
      queue.initial_backoff_us.value_or(kDefaultInitialBackoffUs));
  policy.backoff_schedule_us = task.backoff_schedule_us.empty()
                                   ? queue.backoff_schedule_us
                                   : task.backoff_schedule_us;
  policy.max_backoff_us =
      task.max_backoff_us.value_or(queue.max_backoff_us.value_or(
          DefaultMaxBackoff(policy.backoff_schedule_us)));
  policy.non_retryable_codes = task.non_retryable_codes.empty()
                                   ? queue.non_retryable_codes
                                   : task.non_retryable_codes;
  return policy;
}

int64_t BackoffUs(const RetryPolicy& policy, int n, double jitter) {
  const int retry = std::max(n, 1);
  const int64_t longest = LongestWait(policy.max_backoff_us);
  const int64_t wait =
      policy.backoff_schedule_us.empty()
          ? DoubledWait(policy.initial_backoff_us, retry, longest)
          : ScheduledWait(policy.backoff_schedule_us, retry, longest);
  const int64_t widest = wait / kSpreadDivisor;
  const double spread =
      static_cast<double>(widest) * std::clamp(jitter, 0.0, 1.0);
  return wait + static_cast<int64_t>(spread);
}

bool IsNonRetryableCode(const RetryPolicy& policy, absl::string_view code) {
  return std::any_of(policy.non_retryable_codes.begin(),
                     policy.non_retryable_codes.end(),
                     [&](const std::string& known) { return known == code; });
}

}  // namespace leasehold::scheduler
