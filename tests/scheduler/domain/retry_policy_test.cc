#include "scheduler/domain/retry_policy.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leasehold::scheduler {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kMs = 1'000;
constexpr int64_t kSecond = 1'000'000;
constexpr double kJitters[] = {0.0, 0.25, 0.5, 0.999999999};

RetryPolicy Policy(int64_t initial_us, int64_t max_us) {
  RetryPolicy policy;
  policy.initial_backoff_us = initial_us;
  policy.max_backoff_us = max_us;
  return policy;
}

std::vector<int> Retries() {
  std::vector<int> all;
  for (int n = 1; n <= 200; ++n) all.push_back(n);
  for (const int n : {255, 256, 1000, 1 << 20, 2'147'483'647}) all.push_back(n);
  return all;
}

// The formula of the contract, in numbers that do not overflow.
long double WaitInTheory(long double initial, long double max, int n) {
  long double wait = initial;
  for (int i = 1; i < n && wait < max; ++i) wait *= 2;
  return std::min(wait, max / 1.2L);
}

TEST(BackoffUs, FollowsTheFormulaForEveryRetryAndBound) {
  const int64_t initials[] = {kMs, kMinInitialBackoffUs, 5 * kSecond,
                              kMaxInitialBackoffUs};
  const int64_t maxima[] = {50 * kMs, kSecond, 300 * kSecond, kMaxMaxBackoffUs};
  for (const int64_t initial : initials) {
    for (const int64_t max : maxima) {
      const RetryPolicy policy = Policy(initial, max);
      for (const int n : Retries()) {
        const auto d =
            static_cast<double>(WaitInTheory(static_cast<long double>(initial),
                                             static_cast<long double>(max), n));
        for (const double jitter : kJitters) {
          const int64_t wait = BackoffUs(policy, n, jitter);

          ASSERT_GE(static_cast<double>(wait), d - 1.0)
              << initial << " " << max << " " << n << " " << jitter;
          ASSERT_LE(static_cast<double>(wait), d * 1.2 + 1.0)
              << initial << " " << max << " " << n << " " << jitter;
          ASSERT_LE(wait, max) << initial << " " << n << " " << jitter;
          ASSERT_GT(wait, 0) << initial << " " << max << " " << n;
        }
      }
    }
  }
}

TEST(BackoffUs, GivesTheDocumentedDefaults) {
  const RetryPolicy policy;

  std::vector<int64_t> waits;
  for (int n = 1; n <= 8; ++n) {
    waits.push_back(BackoffUs(policy, n, 0.0) / kSecond);
  }

  EXPECT_THAT(waits, ElementsAre(5, 10, 20, 40, 80, 160, 250, 250));
}

TEST(BackoffUs, NeverFallsFromOneRetryToTheNext) {
  const RetryPolicy policy = Policy(kMs, kMaxMaxBackoffUs);

  int64_t previous = 0;
  for (const int n : Retries()) {
    const int64_t wait = BackoffUs(policy, n, 0.0);
    EXPECT_GE(wait, previous) << n;
    previous = wait;
  }
}

TEST(BackoffUs, SpreadsAThousandDrawsOverTheWholeWidth) {
  const RetryPolicy policy = Policy(10 * kSecond, 300 * kSecond);

  std::set<int64_t> waits;
  for (int i = 0; i < 1000; ++i) {
    waits.insert(BackoffUs(policy, 1, (i + 0.5) / 1000));
  }

  EXPECT_EQ(waits.size(), 1000u);
  EXPECT_GE(*waits.begin(), 10 * kSecond);
  EXPECT_LE(*waits.rbegin(), 12 * kSecond);
  EXPECT_GE(*waits.rbegin() - *waits.begin(), 1'990 * kMs);
}

TEST(BackoffUs, SpreadsAlsoAtTheCeilingAndNeverAboveIt) {
  const RetryPolicy policy = Policy(kMs, 300 * kSecond);

  std::set<int64_t> waits;
  for (int i = 0; i < 1000; ++i) {
    waits.insert(BackoffUs(policy, 64, (i + 0.5) / 1000));
  }

  EXPECT_EQ(waits.size(), 1000u);
  EXPECT_GE(*waits.begin(), 250 * kSecond);
  EXPECT_LE(*waits.rbegin(), 300 * kSecond);
}

TEST(BackoffUs, TakesAScheduleInsteadOfTheDoubling) {
  RetryPolicy policy = Policy(5 * kSecond, 7'200 * kSecond);
  policy.backoff_schedule_us = {10 * kSecond, 60 * kSecond, 300 * kSecond};

  std::vector<int64_t> waits;
  for (const int n : {1, 2, 3, 4, 32, 1000}) {
    waits.push_back(BackoffUs(policy, n, 0.0) / kSecond);
    EXPECT_LE(BackoffUs(policy, n, 0.9999), waits.back() * 12 / 10 * kSecond);
  }

  EXPECT_THAT(waits, ElementsAre(10, 60, 300, 300, 300, 300));
}

TEST(BackoffUs, KeepsAScheduleUnderMaxBackoff) {
  RetryPolicy policy = Policy(5 * kSecond, 60 * kSecond);
  policy.backoff_schedule_us = {10 * kSecond, 3'600 * kSecond};

  EXPECT_EQ(BackoffUs(policy, 1, 0.0), 10 * kSecond);
  EXPECT_EQ(BackoffUs(policy, 2, 0.0), 50 * kSecond);
  EXPECT_LE(BackoffUs(policy, 2, 1.0), 60 * kSecond);
}

TEST(BackoffUs, StaysPositiveForValuesThatValidationWouldRefuse) {
  for (const int64_t initial : {int64_t{0}, int64_t{-5}, INT64_MAX}) {
    for (const int64_t max : {int64_t{0}, int64_t{-5}, INT64_MAX}) {
      for (const int n : {-1, 0, 1, 64, 1000}) {
        EXPECT_GT(BackoffUs(Policy(initial, max), n, 0.5), 0)
            << initial << " " << max << " " << n;
      }
    }
  }
  EXPECT_EQ(BackoffUs(RetryPolicy{}, 1, -3.0), 5 * kSecond);
  EXPECT_EQ(BackoffUs(RetryPolicy{}, 1, 7.0), 6 * kSecond);
}

TEST(ResolveRetryPolicy, TakesTheDefaultsWhenNothingIsSet) {
  EXPECT_EQ(ResolveRetryPolicy({}, {}), RetryPolicy{});
}

TEST(ResolveRetryPolicy, TakesTheTaskBeforeTheQueueFieldByField) {
  RetryPolicySpec queue;
  queue.max_attempts = 7;
  queue.initial_backoff_us = 2 * kSecond;
  queue.max_backoff_us = 20 * kSecond;
  queue.backoff_schedule_us = {kSecond};
  queue.non_retryable_codes = {"Q"};
  RetryPolicySpec task;
  task.max_attempts = 1;
  task.non_retryable_codes = {"T"};

  const RetryPolicy policy = ResolveRetryPolicy(task, queue);

  EXPECT_EQ(policy.max_attempts, 1);
  EXPECT_EQ(policy.initial_backoff_us, 2 * kSecond);
  EXPECT_EQ(policy.max_backoff_us, 20 * kSecond);
  EXPECT_THAT(policy.backoff_schedule_us, ElementsAre(kSecond));
  EXPECT_THAT(policy.non_retryable_codes, ElementsAre("T"));
}

TEST(ResolveRetryPolicy, DoesNotCutAScheduleThatNobodyLimited) {
  RetryPolicySpec task;
  task.backoff_schedule_us = {10 * kSecond, 3'600 * kSecond};

  const RetryPolicy policy = ResolveRetryPolicy(task, {});

  EXPECT_EQ(BackoffUs(policy, 2, 0.0), 3'600 * kSecond);
}

TEST(IsNonRetryableCode, ComparesWholeCodesByteForByte) {
  RetryPolicy policy;
  policy.non_retryable_codes = {"HTTP_400", "BAD"};

  EXPECT_TRUE(IsNonRetryableCode(policy, "BAD"));
  EXPECT_FALSE(IsNonRetryableCode(policy, "bad"));
  EXPECT_FALSE(IsNonRetryableCode(policy, "HTTP_4"));
  EXPECT_FALSE(IsNonRetryableCode(policy, ""));
}

}  // namespace
}  // namespace leasehold::scheduler
