// One attempt of a task inside this process: shared by the session, which
// reports on it, and the runner, which runs it.
#ifndef EXECUTOR_SDK_TASK_RUN_H_
#define EXECUTOR_SDK_TASK_RUN_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "common/time/clock.h"
#include "executor/sdk/cancellation.h"
#include "executor/sdk/handler.h"
#include "leasehold/v1/executor_service.pb.h"

namespace leasehold::executor {

struct LeaseKey {
  std::string task_id;
  int64_t lease_number = 0;

  friend bool operator==(const LeaseKey& a, const LeaseKey& b) {
    return a.lease_number == b.lease_number && a.task_id == b.task_id;
  }
  template <typename H>
  friend H AbslHashValue(H h, const LeaseKey& key) {
    return H::combine(std::move(h), key.task_id, key.lease_number);
  }
};

// What a handler has said about how far it is. Versions grow with each change.
struct LiveState {
  Progress progress;
  int64_t progress_version = 0;
  std::string checkpoint;
  int64_t checkpoint_version = 0;
};

struct TaskRun {
  // Accepted is set by the session, started by the runner. Whoever comes second
  // sees the other's, so that no start goes unannounced.
  enum class Phase { kQueued, kAccepted, kStarted };

  LeaseKey key() const { return {input.task_id, input.lease_number}; }

  TaskInput input;
  Handler* handler = nullptr;
  absl::Duration attempt_timeout = absl::InfiniteDuration();

  CancellationSource cancellation;
  CancellationToken token = cancellation.token();
  std::atomic<Phase> phase{Phase::kQueued};
  // Set once, by the runner, before the handler starts.
  SteadyTime deadline = SteadyTime::max();

  // Called, from the handler's thread, when `live` has changed.
  std::function<void()> on_live_change;
  std::mutex live_mutex;
  LiveState live;  // Guarded by live_mutex.
};

// Moves the payload and the names out of `lease`.
std::shared_ptr<TaskRun> MakeTaskRun(v1::Lease* lease);

// Unset means `otherwise`.
absl::Duration ToDuration(bool is_set, const google::protobuf::Duration& value,
                          absl::Duration otherwise);

}  // namespace leasehold::executor

#endif  // EXECUTOR_SDK_TASK_RUN_H_
