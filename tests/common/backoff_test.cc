#include "common/backoff/backoff.h"

#include <random>
#include <set>

#include "gtest/gtest.h"

namespace leasehold {
namespace {

TEST(Backoff, DoublesUpToItsBound) {
  Backoff backoff(absl::Milliseconds(100), absl::Seconds(1));

  EXPECT_EQ(backoff.NextWith(0), absl::Milliseconds(50));
  EXPECT_EQ(backoff.NextWith(0), absl::Milliseconds(100));
  EXPECT_EQ(backoff.NextWith(0), absl::Milliseconds(200));
  EXPECT_EQ(backoff.NextWith(0), absl::Milliseconds(400));
  EXPECT_EQ(backoff.NextWith(0), absl::Milliseconds(500));
  EXPECT_EQ(backoff.NextWith(1), absl::Seconds(1));
}

TEST(Backoff, NeitherOverflowsNorVanishesInALongOutage) {
  Backoff backoff(absl::Milliseconds(1), absl::Seconds(5));
  std::mt19937 rng(1);
  for (int i = 0; i < 10'000; ++i) {
    const absl::Duration wait = backoff.Next(rng);
    ASSERT_GT(wait, absl::ZeroDuration());
    ASSERT_LE(wait, absl::Seconds(5));
    if (i > 20) {
      ASSERT_GE(wait, absl::Seconds(2.5));
    }
  }
}

TEST(Backoff, SpreadsClientsThatFailedTogether) {
  std::mt19937 rng(7);
  std::set<absl::Duration> waits;
  for (int i = 0; i < 1000; ++i) {
    waits.insert(Backoff(absl::Seconds(1), absl::Seconds(5)).Next(rng));
  }
  EXPECT_GT(waits.size(), 990u);
  EXPECT_GT(*waits.rbegin() - *waits.begin(), absl::Milliseconds(480));
}

TEST(Backoff, StartsAnewAfterReset) {
  Backoff backoff(absl::Milliseconds(100), absl::Seconds(1));
  for (int i = 0; i < 5; ++i) backoff.NextWith(0.5);

  backoff.Reset();

  EXPECT_EQ(backoff.NextWith(0), absl::Milliseconds(50));
}

TEST(Backoff, RaisesBoundsThatMakeNoSense) {
  Backoff backoff(absl::ZeroDuration(), -absl::Seconds(1));

  EXPECT_GT(backoff.NextWith(0), absl::ZeroDuration());
  EXPECT_LE(backoff.NextWith(1), absl::Milliseconds(1));
}

}  // namespace
}  // namespace leasehold
