#include "scheduler/rpc/validation.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/ids/ids.h"
#include "common/text/json.h"
#include "common/text/utf8.h"
#include "scheduler/domain/limits.h"
#include "scheduler/rpc/proto_time.h"

namespace leasehold::scheduler {
namespace {

constexpr char kQueueWant[] = "1-64 of [a-z0-9._-]";
constexpr char kTypeWant[] = "1-64 of [A-Za-z0-9._-]";
constexpr int64_t kMaxWaitUs = 600 * kMicrosPerSecond;

bool IsName(absl::string_view text, bool capitals) {
  if (text.empty() || text.size() > kMaxNameBytes) return false;
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '.' ||
           c == '_' || c == '-' || (capitals && absl::ascii_isupper(c));
  });
}

std::string Bytes(size_t n) { return absl::StrCat(n, " bytes"); }

// The duration in microseconds if it lies in [min_us, max_us]; else a mistake.
std::optional<int64_t> CheckDuration(absl::string_view field,
                                     const google::protobuf::Duration& duration,
                                     int64_t min_us, int64_t max_us,
                                     absl::string_view want,
                                     Mistakes* mistakes) {
  const std::optional<int64_t> micros = ToMicros(duration);
  // A part of a microsecond past a limit is past it.
  const bool past = (micros == max_us && duration.nanos() % 1000 > 0) ||
                    (micros == min_us && duration.nanos() % 1000 < 0);
  if (micros && *micros >= min_us && *micros <= max_us && !past) return micros;
  mistakes->Add(field, Show(duration), want);
  return std::nullopt;
}

void CheckPayload(absl::string_view field, const v1::Payload& payload,
                  Mistakes* mistakes) {
  const bool json = payload.kind_case() == v1::Payload::kJson;
  const std::string path = absl::StrCat(field, json ? ".json" : ".data");
  const std::string& bytes = json ? payload.json() : payload.data();
  if (bytes.size() > kMaxPayloadBytes) {
    mistakes->Add(path, Bytes(bytes.size()),
                  absl::StrCat("at most ", kMaxPayloadBytes));
  } else if (json) {
    const absl::Status valid = ValidateJson(bytes);
    if (!valid.ok()) mistakes->AddText(path, valid.message());
  }
}

// A zero duration counts as unset, as everywhere in the policy.
bool IsSet(const google::protobuf::Duration& duration) {
  return duration.seconds() != 0 || duration.nanos() != 0;
}

void CheckBackoffs(const std::string& path, const v1::RetryPolicy& policy,
                   Mistakes* mistakes) {
  std::optional<int64_t> initial_us, max_us;
  if (IsSet(policy.initial_backoff())) {
    initial_us = CheckDuration(path + "initial_backoff",
                               policy.initial_backoff(), kMinInitialBackoffUs,
                               kMaxInitialBackoffUs, "10ms-24h", mistakes);
  }
  if (IsSet(policy.max_backoff())) {
    max_us = CheckDuration(path + "max_backoff", policy.max_backoff(),
                           kMinInitialBackoffUs, kMaxMaxBackoffUs, "10ms-168h",
                           mistakes);
  }
  if (initial_us && max_us && *max_us < *initial_us) {
    mistakes->Add(path + "max_backoff", Show(policy.max_backoff()),
                  absl::StrCat("at least initial_backoff: ",
                               Show(policy.initial_backoff())));
  }
}

void CheckRetryPolicy(const std::string& path, const v1::RetryPolicy& policy,
                      Mistakes* mistakes) {
  if (policy.max_attempts() < 0 || policy.max_attempts() > kMaxMaxAttempts) {
    mistakes->Add(path + "max_attempts", absl::StrCat(policy.max_attempts()),
                  "1-1000");
  }
  CheckBackoffs(path, policy, mistakes);
  const int schedule = policy.backoff_schedule_size();
  if (static_cast<size_t>(schedule) > kMaxBackoffSchedule) {
    mistakes->Add(path + "backoff_schedule", absl::StrCat(schedule, " waits"),
                  "at most 20");
  } else {
    for (int i = 0; i < schedule; ++i) {
      CheckDuration(absl::StrCat(path, "backoff_schedule[", i, "]"),
                    policy.backoff_schedule(i), 0, kMaxMaxBackoffUs, "0-168h",
                    mistakes);
    }
  }
  const int codes = policy.non_retryable_codes_size();
  if (static_cast<size_t>(codes) > kMaxNonRetryableCodes) {
    mistakes->Add(path + "non_retryable_codes", absl::StrCat(codes, " codes"),
                  "at most 50");
    return;
  }
  for (int i = 0; i < codes; ++i) {
    const std::string& code = policy.non_retryable_codes(i);
    if (code.empty() || code.size() > kMaxErrorCodeBytes) {
      mistakes->Add(absl::StrCat(path, "non_retryable_codes[", i, "]"),
                    QuoteForMessage(code), "1-64 bytes");
    }
  }
}

void CheckTimes(const std::string& path, const v1::Task& task, int64_t now_us,
                Mistakes* mistakes) {
  std::optional<int64_t> schedule_us;
  if (task.has_schedule_time()) {
    schedule_us = ToMicros(task.schedule_time());
    if (!schedule_us) {
      mistakes->Add(path + "schedule_time", Show(task.schedule_time()),
                    "a time in the years 1-9999");
    }
  }
  if (!task.has_expire_time()) return;
  const std::string shown = Show(task.expire_time());
  const std::optional<int64_t> expire_us = ToMicros(task.expire_time());
  if (!expire_us) {
    mistakes->Add(path + "expire_time", shown, "a time in the years 1-9999");
  } else if (*expire_us <= now_us) {
    mistakes->Add(path + "expire_time", shown, "a time in the future");
  } else if (schedule_us && *expire_us <= *schedule_us) {
    mistakes->Add(path + "expire_time", shown, "a time after schedule_time");
  }
}

void CheckTraceparent(const std::string& path, const std::string& value,
                      Mistakes* mistakes) {
  // It becomes a header or an environment variable of the handler's.
  const bool printable = std::all_of(value.begin(), value.end(), [](char c) {
    return absl::ascii_isprint(c);
  });
  if (value.size() > kMaxTraceparentBytes || !printable) {
    mistakes->Add(path + "traceparent", QuoteForMessage(value),
                  "at most 128 printable ASCII characters");
  }
}

// `path` is "task." or "tasks[3].".
void CheckTask(const std::string& path, const v1::Task& task, int64_t now_us,
               Mistakes* mistakes) {
  if (!IsQueueName(task.queue())) {
    mistakes->Add(path + "queue", QuoteForMessage(task.queue()), kQueueWant);
  }
  if (!IsTypeName(task.type())) {
    mistakes->Add(path + "type", QuoteForMessage(task.type()), kTypeWant);
  }
  CheckPayload(path + "payload", task.payload(), mistakes);
  if (task.has_priority() &&
      (task.priority() < 0 || task.priority() > kMaxPriority)) {
    mistakes->Add(path + "priority", absl::StrCat(task.priority()), "0-9");
  }
  CheckMaxBytes(path + "partition_key", task.partition_key(),
                kMaxPartitionKeyBytes, mistakes);
  CheckMaxBytes(path + "idempotency_key", task.idempotency_key(),
                kMaxIdempotencyKeyBytes, mistakes);
  CheckLabels(path + "labels", task.labels(), mistakes);
  CheckRetryPolicy(path + "retry_policy.", task.retry_policy(), mistakes);
  if (task.has_attempt_timeout() && IsSet(task.attempt_timeout())) {
    CheckDuration(path + "attempt_timeout", task.attempt_timeout(),
                  kMinAttemptTimeoutUs, kMaxAttemptTimeoutUs, "100ms-168h",
                  mistakes);
  }
  CheckTimes(path, task, now_us, mistakes);
  CheckTraceparent(path, task.traceparent(), mistakes);
}

void CheckStates(const v1::ListTasksRequest& request, Mistakes* mistakes) {
  for (int i = 0; i < request.states_size(); ++i) {
    const int state = request.states(i);
    if (state == v1::TASK_STATE_UNSPECIFIED || !v1::TaskState_IsValid(state)) {
      mistakes->Add(absl::StrCat("states[", i, "]"), absl::StrCat(state),
                    "a state of TaskState");
    }
  }
}

void CheckCreateTimes(const v1::ListTasksRequest& request, Mistakes* mistakes) {
  const auto from_us = ToMicros(request.create_time_from());
  const auto until_us = ToMicros(request.create_time_until());
  if (!from_us) {
    mistakes->Add("create_time_from", Show(request.create_time_from()),
                  "a time in the years 1-9999");
  }
  if (!until_us) {
    mistakes->Add("create_time_until", Show(request.create_time_until()),
                  "a time in the years 1-9999");
  }
  if (from_us && until_us && request.has_create_time_from() &&
      request.has_create_time_until() && *until_us <= *from_us) {
    mistakes->Add("create_time_until", Show(request.create_time_until()),
                  "a time after create_time_from");
  }
}

}  // namespace

bool IsQueueName(absl::string_view text) { return IsName(text, false); }
bool IsTypeName(absl::string_view text) { return IsName(text, true); }

void CheckMaxBytes(absl::string_view field, absl::string_view value,
                   size_t max_bytes, Mistakes* mistakes) {
  if (value.size() <= max_bytes) return;
  mistakes->Add(field, Bytes(value.size()),
                absl::StrCat("at most ", max_bytes));
}

void CheckLabels(absl::string_view field,
                 const google::protobuf::Map<std::string, std::string>& labels,
                 Mistakes* mistakes) {
  if (labels.size() > kMaxLabels) {
    mistakes->Add(field, absl::StrCat(labels.size(), " pairs"), "at most 16");
    return;
  }
  for (const auto& [key, value] : labels) {
    const std::string path =
        absl::StrCat(field, "[", QuoteForMessage(key, 32), "]");
    if (key.size() > kMaxLabelBytes) {
      mistakes->Add(path, absl::StrCat("key of ", Bytes(key.size())),
                    "at most 128");
    }
    CheckMaxBytes(path, value, kMaxLabelBytes, mistakes);
  }
}

absl::Status ValidateSubmitTask(const v1::SubmitTaskRequest& request,
                                int64_t now_us) {
  Mistakes mistakes;
  if (request.has_task()) {
    CheckTask("task.", request.task(), now_us, &mistakes);
  } else {
    mistakes.AddText("task", "not set, want a task");
  }
  return mistakes.ToStatus();
}

absl::Status ValidateSubmitTasks(const v1::SubmitTasksRequest& request,
                                 int64_t now_us) {
  Mistakes mistakes;
  const size_t count = static_cast<size_t>(request.tasks_size());
  const size_t bytes = request.ByteSizeLong();
  if (count == 0 || count > kMaxTasksPerSubmit) {
    mistakes.Add("tasks", absl::StrCat(count, " tasks"), "1-1000");
  }
  if (bytes > kMaxSubmitBytes) {
    mistakes.Add("tasks", Bytes(bytes),
                 absl::StrCat("at most ", kMaxSubmitBytes, " in one call"));
  }
  if (!mistakes.empty()) return mistakes.ToStatus();
  for (int i = 0; i < request.tasks_size(); ++i) {
    CheckTask(absl::StrCat("tasks[", i, "]."), request.tasks(i), now_us,
              &mistakes);
  }
  return mistakes.ToStatus();
}

absl::Status ValidateListTasks(const v1::ListTasksRequest& request) {
  Mistakes mistakes;
  if (!request.queue().empty() && !IsQueueName(request.queue())) {
    mistakes.Add("queue", QuoteForMessage(request.queue()), kQueueWant);
  }
  if (!request.type().empty() && !IsTypeName(request.type())) {
    mistakes.Add("type", QuoteForMessage(request.type()), kTypeWant);
  }
  CheckStates(request, &mistakes);
  CheckMaxBytes("partition_key", request.partition_key(), kMaxPartitionKeyBytes,
                &mistakes);
  if (!request.batch_id().empty() && !ParseTaskId(request.batch_id())) {
    mistakes.Add("batch_id", QuoteForMessage(request.batch_id()),
                 "the id of a batch");
  }
  CheckCreateTimes(request, &mistakes);
  if (request.page_size() < 0) {
    mistakes.Add("page_size", absl::StrCat(request.page_size()), ">= 0");
  }
  return mistakes.ToStatus();
}

absl::Status ValidateWaitTask(const v1::WaitTaskRequest& request) {
  Mistakes mistakes;
  CheckDuration("timeout", request.timeout(), 0, kMaxWaitUs, "0-10m",
                &mistakes);
  return mistakes.ToStatus();
}

absl::Status ValidateQueueName(const std::string& name) {
  Mistakes mistakes;
  if (!IsQueueName(name)) {
    mistakes.Add("name", QuoteForMessage(name), kQueueWant);
  }
  return mistakes.ToStatus();
}

absl::Status ValidateCancelTask(const v1::CancelTaskRequest& request) {
  Mistakes mistakes;
  CheckMaxBytes("reason", request.reason(), kMaxReasonBytes, &mistakes);
  return mistakes.ToStatus();
}

absl::StatusOr<TaskId> ReadTaskId(absl::string_view text) {
  const std::optional<int64_t> id = ParseTaskId(text);
  if (id) return *id;
  return absl::NotFoundError(
      absl::StrCat("task ", QuoteForMessage(text), ": not found"));
}

}  // namespace leasehold::scheduler
