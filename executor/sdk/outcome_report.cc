#include "executor/sdk/outcome_report.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/text/json.h"
#include "common/text/utf8.h"
#include "executor/sdk/lease_keeper.h"
#include "executor/sdk/limits.h"

namespace leasehold::executor {
namespace {

// Cut before it is cleaned, so that a huge text costs little; cleaned text can
// be longer, hence cut again.
std::string CleanText(absl::string_view text, size_t max_bytes) {
  return TruncateUtf8(SanitizeUtf8(text.substr(0, max_bytes + 4)), max_bytes);
}

void FillDuration(absl::Duration duration, google::protobuf::Duration* out) {
  absl::Duration rest = duration;
  out->set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &rest));
  out->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
}

v1::ErrorClass ToProto(ErrorClass error_class) {
  switch (error_class) {
    case ErrorClass::kRetryable:
      return v1::ERROR_CLASS_RETRYABLE;
    case ErrorClass::kNonRetryable:
      return v1::ERROR_CLASS_NON_RETRYABLE;
    case ErrorClass::kRateLimited:
      return v1::ERROR_CLASS_RATE_LIMITED;
    case ErrorClass::kTimeout:
      return v1::ERROR_CLASS_TIMEOUT;
    case ErrorClass::kCancelled:
      return v1::ERROR_CLASS_CANCELLED;
  }
  return v1::ERROR_CLASS_RETRYABLE;
}

Report MakeError(const TaskRun& run, const TaskError& error) {
  v1::TaskResult report;
  FillRef(run.key(), report.mutable_lease());
  v1::TaskError* out = report.mutable_error();
  out->set_error_class(ToProto(error.error_class));
  out->set_code(CleanText(error.code, kMaxErrorCodeBytes));
  out->set_message(CleanText(error.message, kMaxErrorMessageBytes));
  if (error.retry_after.has_value()) {
    FillDuration(
        std::clamp(*error.retry_after, absl::ZeroDuration(), kMaxRetryAfter),
        out->mutable_retry_after());
  }
  return report;
}

Report MakeSuccess(const TaskRun& run, Payload payload) {
  if (payload.bytes.size() > kMaxResultBytes) {
    return MakeError(run,
                     {ErrorClass::kNonRetryable, "RESULT_TOO_LARGE",
                      absl::StrCat("result: ", payload.bytes.size(),
                                   " bytes, want at most ", kMaxResultBytes),
                      std::nullopt});
  }
  if (payload.kind == Payload::Kind::kJson) {
    if (absl::Status status = ValidateJson(payload.bytes); !status.ok()) {
      return MakeError(
          run, {ErrorClass::kNonRetryable, "INVALID_RESULT",
                absl::StrCat("result: ", status.message()), std::nullopt});
    }
  }
  v1::TaskResult report;
  FillRef(run.key(), report.mutable_lease());
  v1::Payload* result = report.mutable_result();
  if (payload.kind == Payload::Kind::kJson) {
    result->set_json(std::move(payload.bytes));
  } else if (payload.kind == Payload::Kind::kData) {
    result->set_data(std::move(payload.bytes));
  }
  return report;
}

Report MakeTimeout(const TaskRun& run) {
  return MakeError(run,
                   {ErrorClass::kTimeout, "ATTEMPT_TIMEOUT",
                    absl::StrCat("the attempt took longer than its timeout of ",
                                 absl::FormatDuration(run.attempt_timeout)),
                    std::nullopt});
}

Report MakeCancelled(const TaskRun& run, const HandlerResult* result) {
  TaskError error{ErrorClass::kCancelled, "CANCELLED", "", std::nullopt};
  if (result != nullptr) {
    if (const auto* given = std::get_if<TaskError>(&result->outcome())) {
      error.message = given->message;
    }
  }
  return MakeError(run, error);
}

bool IsNonRetryable(const HandlerResult& result) {
  const auto* error = std::get_if<TaskError>(&result.outcome());
  return error != nullptr && error->error_class == ErrorClass::kNonRetryable;
}

Report MakeUndisturbed(TaskRun& run, HandlerResult result) {
  if (const auto* snooze = std::get_if<Snooze>(&result.outcome())) {
    return MakeRelease(run, v1::RELEASE_REASON_SNOOZED, snooze->delay);
  }
  return MakeError(run, std::get<TaskError>(result.outcome()));
}

}  // namespace

std::optional<Report> MakeOutcomeReport(TaskRun& run, HandlerResult result) {
  if (auto* payload = std::get_if<Payload>(&result.outcome())) {
    return MakeSuccess(run, std::move(*payload));
  }
  switch (run.cancellation.reason()) {
    case CancelReason::kNone:
      return MakeUndisturbed(run, std::move(result));
    case CancelReason::kCancelled:
      return MakeCancelled(run, &result);
    case CancelReason::kTimeout:
      return MakeTimeout(run);
    case CancelReason::kDraining:
      return MakeRelease(run, v1::RELEASE_REASON_DRAINING);
    case CancelReason::kLeaseLost:
      if (IsNonRetryable(result))
        return MakeUndisturbed(run, std::move(result));
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Report> MakeLeakReport(TaskRun& run) {
  switch (run.cancellation.reason()) {
    case CancelReason::kTimeout:
      return MakeTimeout(run);
    case CancelReason::kCancelled:
      return MakeCancelled(run, nullptr);
    default:
      return std::nullopt;
  }
}

Report MakeRelease(TaskRun& run, v1::ReleaseReason reason,
                   std::optional<absl::Duration> delay) {
  v1::LeaseRelease release;
  FillRef(run.key(), release.mutable_lease());
  release.set_reason(reason);
  if (delay.has_value()) {
    FillDuration(std::clamp(*delay, absl::ZeroDuration(), kMaxReleaseDelay),
                 release.mutable_delay());
  }
  const std::lock_guard<std::mutex> lock(run.live_mutex);
  if (run.live.checkpoint_version > 0) {
    release.set_checkpoint(run.live.checkpoint);
  }
  return release;
}

}  // namespace leasehold::executor
