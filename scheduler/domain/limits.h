// Every limit of the public contract, in one place. Sources: the comments of
// proto/leasehold/v1/*.proto.
#ifndef SCHEDULER_DOMAIN_LIMITS_H_
#define SCHEDULER_DOMAIN_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace leasehold::scheduler {

inline constexpr int64_t kMicrosPerMilli = 1'000;
inline constexpr int64_t kMicrosPerSecond = 1'000'000;
inline constexpr int64_t kMicrosPerHour = 3'600 * kMicrosPerSecond;
inline constexpr int64_t kMicrosPerDay = 24 * kMicrosPerHour;

inline constexpr size_t kMaxNameBytes = 64;  // queue, type
inline constexpr size_t kMaxPayloadBytes = 1 << 20;
inline constexpr size_t kMaxResultBytes = 1 << 20;
inline constexpr int kMaxPriority = 9;
inline constexpr int kDefaultPriority = 5;
inline constexpr size_t kMaxPartitionKeyBytes = 128;
inline constexpr size_t kMaxIdempotencyKeyBytes = 191;
inline constexpr size_t kMaxLabels = 16;
inline constexpr size_t kMaxLabelBytes = 128;
inline constexpr size_t kMaxTraceparentBytes = 128;
inline constexpr int64_t kMinAttemptTimeoutUs = 100 * kMicrosPerMilli;
inline constexpr int64_t kMaxAttemptTimeoutUs = 7 * kMicrosPerDay;
inline constexpr int64_t kDefaultAttemptTimeoutUs = 1'800 * kMicrosPerSecond;

inline constexpr int kMaxMaxAttempts = 1000;
inline constexpr int kDefaultMaxAttempts = 4;
inline constexpr int64_t kMinInitialBackoffUs = 10 * kMicrosPerMilli;
inline constexpr int64_t kMaxInitialBackoffUs = kMicrosPerDay;
inline constexpr int64_t kDefaultInitialBackoffUs = 5 * kMicrosPerSecond;
inline constexpr int64_t kMaxMaxBackoffUs = 7 * kMicrosPerDay;
inline constexpr int64_t kDefaultMaxBackoffUs = 300 * kMicrosPerSecond;
inline constexpr size_t kMaxBackoffSchedule = 20;
inline constexpr size_t kMaxNonRetryableCodes = 50;

inline constexpr size_t kMaxErrorCodeBytes = 64;
inline constexpr size_t kMaxErrorMessageBytes = 4096;
inline constexpr size_t kMaxProgressMessageBytes = 256;
inline constexpr size_t kMaxCheckpointBytes = 64 << 10;
inline constexpr size_t kMaxReasonBytes = 256;

inline constexpr size_t kMaxTasksPerSubmit = 1000;
inline constexpr size_t kMaxSubmitBytes = 3 << 20;
inline constexpr int kDefaultPageSize = 50;
inline constexpr int kMaxPageSize = 1000;
inline constexpr size_t kMaxPageBytes = 3 << 20;
inline constexpr size_t kMaxStreamMessageBytes = 3'670'016;  // 3.5 MiB
inline constexpr size_t kMaxLeasesMessageBytes = 3 << 20;
inline constexpr int kMaxKeptAttempts = 20;

// The attempt's own timeout is the executor's; the scheduler's comes a minute
// after it, so that a report under way still counts.
inline constexpr int64_t kAttemptTimeoutGraceUs = 60 * kMicrosPerSecond;
inline constexpr int kMaxExpiries = 5;         // then POISONED
inline constexpr int kMaxRateLimitedRow = 20;  // then RATE_LIMITED
inline constexpr int64_t kMaxRetryAfterUs = kMicrosPerHour;
inline constexpr int64_t kMaxReleaseDelayUs = kMicrosPerDay;
inline constexpr int64_t kDefaultRejectedDelayUs = 5 * kMicrosPerSecond;
inline constexpr int64_t kMinCancelGraceUs = 30 * kMicrosPerSecond;
inline constexpr int64_t kPatrolDispatchedUs = 60 * kMicrosPerSecond;

inline constexpr size_t kMaxExecutorIdBytes = 128;
inline constexpr size_t kMaxIncarnationBytes = 128;
inline constexpr int kMaxLanes = 10'000;

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_DOMAIN_LIMITS_H_
