// Waiting for something to become true, with a deadline.
#ifndef TESTS_SUPPORT_POLL_H_
#define TESTS_SUPPORT_POLL_H_

#include <functional>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace leasehold::e2e {

// Long enough for a loaded machine and a sanitizer; nothing waits for it unless
// it fails.
inline constexpr absl::Duration kPatience = absl::Seconds(60);

// Whether `condition` became true within `timeout`; asked every 20 ms.
inline bool Eventually(const std::function<bool()>& condition,
                       absl::Duration timeout = kPatience) {
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    if (condition()) return true;
    if (absl::Now() >= deadline) return false;
    absl::SleepFor(absl::Milliseconds(20));
  }
}

}  // namespace leasehold::e2e

#endif  // TESTS_SUPPORT_POLL_H_
