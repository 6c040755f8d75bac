// What an executor's author writes: a handler, and what it sees of its task.
//
//   class Thumbnail : public Handler {
//     HandlerResult Run(HandlerContext& ctx) override {
//       ctx.SetProgress(1, 2, "decoding");
//       if (bad) return HandlerResult::Error(
//           {.error_class = ErrorClass::kNonRetryable, .code = "BAD_IMAGE"});
//       return HandlerResult::Data(Encode(ctx.payload().bytes));
//     }
//   };
#ifndef EXECUTOR_SDK_HANDLER_H_
#define EXECUTOR_SDK_HANDLER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/time/clock.h"
#include "executor/sdk/cancellation.h"

namespace leasehold::executor {

// Input or output of a handler.
struct Payload {
  enum class Kind { kNone, kJson, kData };
  Kind kind = Kind::kNone;
  std::string bytes = {};
};

// Decides, never the message, what happens to the task next.
enum class ErrorClass {
  kRetryable,
  kNonRetryable,
  kRateLimited,
  kTimeout,
  kCancelled
};

struct TaskError {
  ErrorClass error_class = ErrorClass::kRetryable;
  // A short machine word such as "HTTP_503"; cut to 64 bytes.
  std::string code = {};
  // For people; cut to 4096 bytes. Odd bytes are replaced.
  std::string message = {};
  // Earliest useful retry, at most an hour.
  std::optional<absl::Duration> retry_after = std::nullopt;
};

// Run me again after `delay`; no attempt is charged. At most 24 h.
struct Snooze {
  absl::Duration delay;
};

class HandlerResult {
 public:
  using Outcome = std::variant<Payload, TaskError, Snooze>;

  // The text must be JSON, else the task fails for good with INVALID_RESULT. A
  // result of more than 1 MiB fails it with RESULT_TOO_LARGE.
  static HandlerResult Json(std::string text) {
    return Success({Payload::Kind::kJson, std::move(text)});
  }
  static HandlerResult Data(std::string bytes) {
    return Success({Payload::Kind::kData, std::move(bytes)});
  }
  static HandlerResult Success(Payload payload = {}) {
    return HandlerResult(std::move(payload));
  }
  static HandlerResult Error(TaskError error) {
    return HandlerResult(std::move(error));
  }
  // For a handler that stops because its token says so. What becomes of the
  // task depends on the token's reason.
  static HandlerResult Cancelled() {
    return Error({ErrorClass::kCancelled, "CANCELLED", "", std::nullopt});
  }
  static HandlerResult SnoozeFor(absl::Duration delay) {
    return HandlerResult(Snooze{delay});
  }

  bool ok() const { return std::holds_alternative<Payload>(outcome_); }
  const Outcome& outcome() const { return outcome_; }
  Outcome& outcome() { return outcome_; }

 private:
  explicit HandlerResult(Outcome outcome) : outcome_(std::move(outcome)) {}
  Outcome outcome_;
};

struct Progress {
  int64_t done = 0;
  int64_t total = 0;
  std::string message;
};

// What a lease says about its task.
struct TaskInput {
  std::string task_id;
  int64_t lease_number = 0;
  std::string queue;
  std::string type;
  Payload payload;
  int attempt = 1;  // 1 on the first.
  int max_attempts = 1;
  std::map<std::string, std::string> labels;
  std::string partition_key;
  std::string idempotency_key;
  std::string traceparent;  // W3C trace context of the submitter.
  std::string checkpoint;   // What the latest attempt saved.
};

struct TaskRun;

// One attempt, as its handler sees it. The setters may be called from any
// thread until Run returns.
class HandlerContext {
 public:
  explicit HandlerContext(TaskRun& run) : run_(run) {}
  HandlerContext(const HandlerContext&) = delete;
  HandlerContext& operator=(const HandlerContext&) = delete;

  const TaskInput& task() const;
  const Payload& payload() const { return task().payload; }
  // Moves the payload out, for handlers that pass it on.
  Payload TakePayload();

  // When attempt_timeout ends this attempt, on the steady clock.
  SteadyTime deadline() const;
  absl::Duration TimeLeft() const;

  const CancellationToken& cancellation() const;

  // Shown to clients within about a second; cheap to call often. `message` is
  // cut to 256 bytes.
  void SetProgress(int64_t done, int64_t total, absl::string_view message = "");

  // Kept and handed to the next attempt, should this one not succeed.
  // INVALID_ARGUMENT above 64 KiB: the previous one stays.
  absl::Status SaveCheckpoint(std::string checkpoint);

 private:
  TaskRun& run_;
};

// Run may be called by many threads at once. An exception that leaves it counts
// as a retryable error with code HANDLER_EXCEPTION.
class Handler {
 public:
  virtual ~Handler() = default;
  virtual HandlerResult Run(HandlerContext& ctx) = 0;
};

using HandlerFunction = std::function<HandlerResult(HandlerContext&)>;

}  // namespace leasehold::executor

#endif  // EXECUTOR_SDK_HANDLER_H_
