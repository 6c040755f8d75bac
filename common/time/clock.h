// Where time comes from. Everything else takes `now` as a parameter or a Clock.
//
// Steady time never jumps and is what waits and leases are measured by; wall
// time is only for showing to people and for logs. Task times come from the
// database's clock (see scheduler/engine/db_clock.h), never from here.
#ifndef COMMON_TIME_CLOCK_H_
#define COMMON_TIME_CLOCK_H_

#include <atomic>
#include <chrono>
#include <cstdint>

#include "absl/time/time.h"

namespace leasehold {

using SteadyTime = std::chrono::steady_clock::time_point;

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;
  virtual SteadyTime SteadyNow() const = 0;

  // The process's real clock.
  static const Clock& Real();
};

// Moves only when told to: for tests. Thread-safe.
class FakeClock : public Clock {
 public:
  explicit FakeClock(absl::Time start) : wall_us_(absl::ToUnixMicros(start)) {}
  absl::Time Now() const override;
  SteadyTime SteadyNow() const override;
  // Moves both clocks forward.
  void Advance(absl::Duration by);
  // Moves the wall clock alone, as an operator or NTP would.
  void JumpWall(absl::Duration by);

 private:
  std::atomic<int64_t> wall_us_;
  std::atomic<int64_t> steady_us_{1'000'000'000};
};

}  // namespace leasehold

#endif  // COMMON_TIME_CLOCK_H_
