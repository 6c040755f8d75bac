#include "common/time/clock.h"

#include "absl/time/clock.h"

namespace leasehold {
namespace {

class RealClock : public Clock {
 public:
  absl::Time Now() const override { return absl::Now(); }
  SteadyTime SteadyNow() const override {
    return std::chrono::steady_clock::now();
  }
};

}  // namespace

const Clock& Clock::Real() {
  static const RealClock clock;
  return clock;
}

absl::Time FakeClock::Now() const { return absl::FromUnixMicros(wall_us_); }

SteadyTime FakeClock::SteadyNow() const {
  return SteadyTime(std::chrono::microseconds(steady_us_));
}

void FakeClock::Advance(absl::Duration by) {
  wall_us_ += absl::ToInt64Microseconds(by);
  steady_us_ += absl::ToInt64Microseconds(by);
}

void FakeClock::JumpWall(absl::Duration by) {
  wall_us_ += absl::ToInt64Microseconds(by);
}

}  // namespace leasehold
