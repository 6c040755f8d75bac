// Limits of the contract that the executor keeps by itself. Sources: the
// comments of proto/leasehold/v1/*.proto.
#ifndef EXECUTOR_SDK_LIMITS_H_
#define EXECUTOR_SDK_LIMITS_H_

#include <cstddef>

#include "absl/time/time.h"

namespace leasehold::executor {

inline constexpr size_t kMaxResultBytes = 1 << 20;
inline constexpr size_t kMaxErrorCodeBytes = 64;
inline constexpr size_t kMaxErrorMessageBytes = 4096;
inline constexpr size_t kMaxProgressMessageBytes = 256;
inline constexpr size_t kMaxCheckpointBytes = 64 << 10;
inline constexpr absl::Duration kMaxRetryAfter = absl::Hours(1);
inline constexpr absl::Duration kMaxReleaseDelay = absl::Hours(24);

// What peers may send at once: 3.5 MiB. Our own messages stay below it with
// room for what a message adds to its items.
inline constexpr size_t kMaxReceivedMessageBytes = 3'670'016;
inline constexpr size_t kMaxSentMessageBytes = 3'400'000;
inline constexpr size_t kMaxUnacknowledgedBytes = 4 << 20;
inline constexpr size_t kMaxReportsPerMessage = 1000;

}  // namespace leasehold::executor

#endif  // EXECUTOR_SDK_LIMITS_H_
