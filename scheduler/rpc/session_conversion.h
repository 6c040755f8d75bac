// The executor protocol between Protobuf and scheduler/session/messages.h.
//
// What may come from a handler (results, errors, progress, checkpoints) is
// never held against the stream: too long texts are cut, too large or malformed
// results become the task's own error, unknown enumerators of newer executors
// become "unspecified". What the executor itself gets wrong (ids, numbers,
// sizes) breaks the protocol: INVALID_ARGUMENT, naming the message and field.
//
// A `string` with invalid UTF-8 never gets here: Protobuf refuses the whole
// message and the stream ends with INVALID_ARGUMENT. That is the executor's
// mistake to avoid, by sanitising what handlers print, as the SDK does.
#ifndef SCHEDULER_RPC_SESSION_CONVERSION_H_
#define SCHEDULER_RPC_SESSION_CONVERSION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "leasehold/v1/executor_service.pb.h"
#include "scheduler/session/messages.h"

namespace leasehold::scheduler {

// Largest values that a hello may name; limits of this scheduler, far beyond
// what an executor holds.
inline constexpr int kMaxSlots = 10'000;
inline constexpr int kMaxSubscribedLanes = 10'000;
inline constexpr int kMaxHeldLeases = 20'000;
// A lease that runs, and older ones whose reports wait to be acknowledged.
inline constexpr size_t kMaxLeasesOfATask = 8;
inline constexpr size_t kMaxVersionBytes = 128;

// Takes the bytes out of `message`, whose oneof must be set. `address` is the
// peer's, for hello.
absl::StatusOr<ExecutorMessage> ReadExecutorMessage(
    v1::ExecutorMessage* message, const std::string& address);

// Usually one; lists that do not fit into a message of 3.5 MiB are split.
std::vector<v1::SchedulerMessage> ToProto(SchedulerMessage message);

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_RPC_SESSION_CONVERSION_H_
