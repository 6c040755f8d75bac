// Runs a handler as the runner would, in the test's thread.
#ifndef TESTS_EXECUTOR_HANDLER_RUN_H_
#define TESTS_EXECUTOR_HANDLER_RUN_H_

#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "executor/sdk/handler.h"
#include "executor/sdk/task_run.h"

namespace leasehold::executor {

struct HandlerRun {
  HandlerRun() { run.input.task_id = "42"; }

  HandlerRun& WithJson(std::string text) {
    run.input.payload = {Payload::Kind::kJson, std::move(text)};
    return *this;
  }
  HandlerRun& WithData(std::string bytes) {
    run.input.payload = {Payload::Kind::kData, std::move(bytes)};
    return *this;
  }

  HandlerResult Run(Handler& handler) {
    HandlerContext ctx(run);
    return handler.Run(ctx);
  }
  // Cancels the run after `delay`.
  HandlerResult RunAndCancel(Handler& handler, absl::Duration delay) {
    std::thread canceller([this, delay] {
      absl::SleepFor(delay);
      run.cancellation.Cancel(CancelReason::kCancelled);
    });
    HandlerResult result = Run(handler);
    canceller.join();
    return result;
  }

  TaskRun run;
};

// "json:..", "data:..", "none", "error:CODE" or "snooze".
inline std::string Describe(const HandlerResult& result) {
  if (const auto* payload = std::get_if<Payload>(&result.outcome())) {
    if (payload->kind == Payload::Kind::kNone) return "none";
    return (payload->kind == Payload::Kind::kJson ? "json:" : "data:") +
           payload->bytes;
  }
  if (const auto* error = std::get_if<TaskError>(&result.outcome())) {
    return "error:" + error->code;
  }
  return "snooze";
}

inline TaskError ErrorOf(const HandlerResult& result) {
  const auto* error = std::get_if<TaskError>(&result.outcome());
  return error == nullptr ? TaskError() : *error;
}

}  // namespace leasehold::executor

#endif  // TESTS_EXECUTOR_HANDLER_RUN_H_
