#include "scheduler/engine/db_clock.h"

#include <chrono>

namespace leasehold::scheduler {
namespace {

// Quartz drifts by less than this much; an answer gets worse with its age.
constexpr int64_t kDriftPpm = 200;

int64_t MicrosBetween(SteadyTime from, SteadyTime to) {
  return std::chrono::duration_cast<std::chrono::microseconds>(to - from)
      .count();
}

}  // namespace

DbClock::DbClock(const Clock& clock, int64_t now_us)
    : clock_(clock), base_(clock.SteadyNow()), base_us_(now_us) {}

void DbClock::Observe(SteadyTime sent, int64_t now_us) {
  const SteadyTime received = clock_.SteadyNow();
  const int64_t error_us = MicrosBetween(sent, received);
  std::lock_guard lock(mutex_);
  const int64_t age_us = MicrosBetween(base_, received);
  if (error_us > error_us_ + age_us * kDriftPpm / 1'000'000 + 1'000) return;
  base_ = received;
  base_us_ = now_us;
  error_us_ = error_us;
}

int64_t DbClock::NowUs() const {
  std::lock_guard lock(mutex_);
  return base_us_ + MicrosBetween(base_, clock_.SteadyNow());
}

}  // namespace leasehold::scheduler
