#include "common/backoff/backoff.h"

#include <algorithm>

namespace leasehold {

Backoff::Backoff(absl::Duration initial, absl::Duration max)
    : initial_(std::max(initial, absl::Milliseconds(1))),
      max_(std::max(max, initial_)),
      bound_(initial_) {}

absl::Duration Backoff::NextWith(double jitter) {
  const absl::Duration bound = bound_;
  bound_ = bound > max_ / 2 ? max_ : bound * 2;
  return bound / 2 + bound / 2 * std::clamp(jitter, 0.0, 1.0);
}

}  // namespace leasehold
