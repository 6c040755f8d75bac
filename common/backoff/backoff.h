// Waits between attempts to reach something that is down: a database, a
// scheduler. (Retries of tasks are scheduler/domain/retry_policy.h.)
//
//   Backoff backoff(absl::Milliseconds(100), absl::Seconds(5));
//   while (!Connect()) stop.WaitFor(backoff.Next(rng));
//   backoff.Reset();
#ifndef COMMON_BACKOFF_BACKOFF_H_
#define COMMON_BACKOFF_BACKOFF_H_

#include <cstdint>
#include <random>

#include "absl/time/time.h"

namespace leasehold {

// Equal jitter: wait n (from 1) is evenly spread over [d / 2, d) with
// d = min(initial * 2^(n-1), max). So no wait is near zero, none is above
// `max`, and clients that were cut off together do not come back together. No n
// overflows. Not thread-safe.
class Backoff {
 public:
  // Values that make no sense are raised: initial to 1 ms, max to initial.
  Backoff(absl::Duration initial, absl::Duration max);

  template <typename Rng>
  absl::Duration Next(Rng& rng) {
    return NextWith(std::uniform_real_distribution<double>(0.0, 1.0)(rng));
  }

  // As Next, with the jitter in [0, 1) given.
  absl::Duration NextWith(double jitter);

  // The next wait is the first one again.
  void Reset() { bound_ = initial_; }

 private:
  absl::Duration initial_;
  absl::Duration max_;
  absl::Duration bound_;
};

}  // namespace leasehold

#endif  // COMMON_BACKOFF_BACKOFF_H_
