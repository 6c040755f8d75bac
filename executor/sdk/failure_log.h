// One line for each attempt that failed, so that an executor's log says why a
// task did not succeed:
//
//   attempt failed task=42 queue=q type=t attempt=1 max_attempts=4
//     class=RETRYABLE code=EXIT_1
//
// Without the message, which may hold parts of the payload: GetTask has it.
#ifndef EXECUTOR_SDK_FAILURE_LOG_H_
#define EXECUTOR_SDK_FAILURE_LOG_H_

#include "common/logging/rate_limited_log.h"
#include "executor/sdk/result_outbox.h"
#include "executor/sdk/task_run.h"

namespace leasehold::executor {

// Thread-safe. At most `kLinesASecond`; the next line counts the others.
class FailureLog {
 public:
  static constexpr int kLinesASecond = 20;

  FailureLog() : log_(absl::Seconds(1), Clock::Real(), kLinesASecond) {}

  // Nothing for a result, a cancellation that was asked for, or a release.
  void Add(const TaskRun& run, const Report& report);

 private:
  RateLimitedLog log_;
};

}  // namespace leasehold::executor

#endif  // EXECUTOR_SDK_FAILURE_LOG_H_
