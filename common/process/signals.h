// SIGTERM and SIGINT as an event that one thread waits for.
//
//   SignalWaiter signals;             // first thing in main, before any thread
//   ...
//   const int signal = signals.Wait();
#ifndef COMMON_PROCESS_SIGNALS_H_
#define COMMON_PROCESS_SIGNALS_H_

#include <signal.h>

#include <optional>

#include "absl/time/time.h"

namespace leasehold {

// Blocks SIGTERM and SIGINT in the constructing thread, hence in every thread
// that it starts afterwards, and ignores SIGPIPE in the process. Child
// processes inherit both: whoever spawns resets them
// (posix_spawnattr_setsigmask and posix_spawnattr_setsigdefault).
class SignalWaiter {
 public:
  SignalWaiter();
  SignalWaiter(const SignalWaiter&) = delete;
  SignalWaiter& operator=(const SignalWaiter&) = delete;

  // Waits for the next SIGTERM or SIGINT and returns its number. One thread at
  // a time.
  int Wait();

  // As Wait, but gives up after `timeout`.
  std::optional<int> WaitFor(absl::Duration timeout);

 private:
  sigset_t signals_;
};

}  // namespace leasehold

#endif  // COMMON_PROCESS_SIGNALS_H_
