#include "common/process/signals.h"

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace leasehold {

SignalWaiter::SignalWaiter() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGTERM);
  sigaddset(&signals_, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  // A peer that hangs up is a failed write, not the end of the process.
  signal(SIGPIPE, SIG_IGN);
}

int SignalWaiter::Wait() {
  int number = 0;
  while (sigwait(&signals_, &number) != 0) {
  }
  return number;
}

std::optional<int> SignalWaiter::WaitFor(absl::Duration timeout) {
  using std::chrono::steady_clock;
  const auto deadline =
      steady_clock::now() +
      absl::ToChronoMicroseconds(std::min(timeout, absl::Hours(24 * 365)));
  while (true) {
    const auto left =
        std::max(std::chrono::duration_cast<std::chrono::nanoseconds>(
                     deadline - steady_clock::now()),
                 std::chrono::nanoseconds(0));
    timespec wait{};
    wait.tv_sec = static_cast<time_t>(left.count() / 1'000'000'000);
    wait.tv_nsec = static_cast<long>(left.count() % 1'000'000'000);
    const int number = sigtimedwait(&signals_, nullptr, &wait);
    if (number > 0) return number;
    // EINTR: another signal's handler ran, or a debugger stopped us.
    if (errno != EINTR) return std::nullopt;
  }
}

}  // namespace leasehold
