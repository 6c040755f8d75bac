// What is reported about an attempt whose handler has ended.
//
// clang-format off
// | token         | success | snooze, or another error                         |
// |---------------|---------|--------------------------------------------------|
// | not cancelled | result  | SNOOZED release; the error                       |
// | cancelled     | result  | CANCELLED error                                  |
// | timeout       | result  | ATTEMPT_TIMEOUT error                            |
// | draining      | result  | DRAINING release with the checkpoint             |
// | lease lost    | result  | nothing; NON_RETRYABLE errors are reported       |
// clang-format on
//
// Work that was done is never thrown away: a success is reported whatever the
// token says, and the scheduler decides whether it still counts.
#ifndef EXECUTOR_SDK_OUTCOME_REPORT_H_
#define EXECUTOR_SDK_OUTCOME_REPORT_H_

#include <optional>

#include "executor/sdk/handler.h"
#include "executor/sdk/result_outbox.h"
#include "executor/sdk/task_run.h"

namespace leasehold::executor {

// Checks and trims what the handler returned, so that nothing in it can break
// the stream. nullopt: there is nothing to report and the lease is forgotten.
std::optional<Report> MakeOutcomeReport(TaskRun& run, HandlerResult result);

// For a handler that has ignored its token for too long and is not waited for
// any more. nullopt while nothing may be said, since it may still be running.
std::optional<Report> MakeLeakReport(TaskRun& run);

Report MakeRelease(TaskRun& run, v1::ReleaseReason reason,
                   std::optional<absl::Duration> delay = std::nullopt);

}  // namespace leasehold::executor

#endif  // EXECUTOR_SDK_OUTCOME_REPORT_H_
