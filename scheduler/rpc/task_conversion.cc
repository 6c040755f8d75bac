#include "scheduler/rpc/task_conversion.h"

#include <algorithm>
#include <optional>

#include "common/ids/ids.h"
#include "scheduler/domain/limits.h"
#include "scheduler/rpc/proto_time.h"

namespace leasehold::scheduler {
namespace {

// 0 stands for "not set" in the scheduler.
void SetTime(int64_t micros, v1::Task* task,
             google::protobuf::Timestamp* (v1::Task::*field)()) {
  if (micros != 0) SetMicros(micros, (task->*field)());
}

Payload ToPayload(const v1::Payload& payload) {
  switch (payload.kind_case()) {
    case v1::Payload::kJson:
      return {PayloadKind::kJson, payload.json()};
    case v1::Payload::kData:
      return {PayloadKind::kData, payload.data()};
    case v1::Payload::KIND_NOT_SET:
      break;
  }
  return {};
}

std::optional<int64_t> NonZeroMicros(
    const google::protobuf::Duration& duration) {
  const int64_t micros = ToMicros(duration).value_or(0);
  return micros == 0 ? std::nullopt : std::optional<int64_t>(micros);
}

RetryPolicySpec ToRetryPolicySpec(const v1::RetryPolicy& policy) {
  RetryPolicySpec spec;
  if (policy.max_attempts() != 0) spec.max_attempts = policy.max_attempts();
  spec.initial_backoff_us = NonZeroMicros(policy.initial_backoff());
  spec.max_backoff_us = NonZeroMicros(policy.max_backoff());
  for (const auto& wait : policy.backoff_schedule()) {
    spec.backoff_schedule_us.push_back(ToMicros(wait).value_or(0));
  }
  spec.non_retryable_codes.assign(policy.non_retryable_codes().begin(),
                                  policy.non_retryable_codes().end());
  return spec;
}

void SetRetryPolicy(const RetryPolicySpec& spec, v1::Task* task) {
  if (spec == RetryPolicySpec{}) return;
  v1::RetryPolicy* policy = task->mutable_retry_policy();
  if (spec.max_attempts) policy->set_max_attempts(*spec.max_attempts);
  if (spec.initial_backoff_us) {
    SetMicros(*spec.initial_backoff_us, policy->mutable_initial_backoff());
  }
  if (spec.max_backoff_us) {
    SetMicros(*spec.max_backoff_us, policy->mutable_max_backoff());
  }
  for (const int64_t wait_us : spec.backoff_schedule_us) {
    SetMicros(wait_us, policy->add_backoff_schedule());
  }
  for (const std::string& code : spec.non_retryable_codes) {
    policy->add_non_retryable_codes(code);
  }
}

// What the client sent, without the payload.
void SetSpec(const TaskSpec& spec, v1::Task* task) {
  task->set_queue(spec.queue);
  task->set_type(spec.type);
  task->set_priority(spec.priority);
  task->set_partition_key(spec.partition_key);
  task->set_idempotency_key(spec.idempotency_key);
  ToProto(spec.labels, task->mutable_labels());
  SetRetryPolicy(spec.retry_policy, task);
  if (spec.attempt_timeout_us != 0) {
    SetMicros(spec.attempt_timeout_us, task->mutable_attempt_timeout());
  }
  SetTime(spec.schedule_us, task, &v1::Task::mutable_schedule_time);
  SetTime(spec.expire_us, task, &v1::Task::mutable_expire_time);
  task->set_traceparent(spec.traceparent);
  if (spec.batch_id != 0) task->set_batch_id(FormatTaskId(spec.batch_id));
}

bool WaitsForRetry(const LiveTask& live) {
  return live.state == TaskState::kRetrying;
}

void SetLive(const TaskRecord& record, const LiveTask& live, v1::Task* task) {
  task->set_state(static_cast<v1::TaskState>(live.state));
  task->set_attempt(live.attempt);
  task->set_cancel_requested(live.cancel_expire_us != 0);
  if (live.phase == Phase::kLeased) {
    SetTime(live.lease_expire_us, task, &v1::Task::mutable_lease_expire_time);
  }
  SetTime(std::max(live.state_us, record.create_us), task,
          &v1::Task::mutable_update_time);
  SetTime(live.first_start_us, task, &v1::Task::mutable_start_time);
  if (WaitsForRetry(live)) {
    // RETRYING waits for its next schedule_time, says the contract.
    SetTime(live.run_us, task, &v1::Task::mutable_schedule_time);
    if (record.last_error) ToProto(*record.last_error, task->mutable_error());
  }
}

void SetEnded(const EndedTask& ended, bool with_result, v1::Task* task) {
  task->set_state(static_cast<v1::TaskState>(ended.state));
  task->set_failure_reason(static_cast<v1::FailureReason>(ended.reason));
  task->set_attempt(ended.attempt);
  if (with_result && ended.state == TaskState::kSucceeded &&
      ended.result.kind != PayloadKind::kNone) {
    ToProto(ended.result, task->mutable_result());
  }
  if (ended.error) ToProto(*ended.error, task->mutable_error());
  SetTime(ended.start_us, task, &v1::Task::mutable_start_time);
  SetTime(ended.finish_us, task, &v1::Task::mutable_finish_time);
  SetTime(ended.finish_us, task, &v1::Task::mutable_update_time);
}

void SetAttempts(const TaskRecord& record, v1::Task* task) {
  for (size_t i = 0; i < record.attempts.size(); ++i) {
    const Attempt& attempt = record.attempts[i];
    v1::Attempt* out = task->add_attempts();
    out->set_number(attempt.number);
    if (i < record.attempt_executor_ids.size()) {
      out->set_executor_id(record.attempt_executor_ids[i]);
    }
    if (attempt.start_us != 0) {
      SetMicros(attempt.start_us, out->mutable_start_time());
    }
    SetMicros(attempt.finish_us, out->mutable_finish_time());
    ToProto(attempt.error, out->mutable_error());
  }
}

}  // namespace

TaskSpec ToTaskSpec(const v1::Task& task) {
  TaskSpec spec;
  spec.queue = task.queue();
  spec.type = task.type();
  spec.payload = ToPayload(task.payload());
  spec.priority = task.has_priority() ? task.priority() : kDefaultPriority;
  spec.partition_key = task.partition_key();
  spec.idempotency_key = task.idempotency_key();
  spec.labels = ToLabels(task.labels());
  spec.retry_policy = ToRetryPolicySpec(task.retry_policy());
  spec.attempt_timeout_us = ToMicros(task.attempt_timeout()).value_or(0);
  // Before 1970 is the past, and the past means now.
  spec.schedule_us =
      std::max<int64_t>(0, ToMicros(task.schedule_time()).value_or(0));
  spec.expire_us = ToMicros(task.expire_time()).value_or(0);
  spec.traceparent = task.traceparent();
  return spec;
}

ListFilter ToListFilter(const v1::ListTasksRequest& request) {
  ListFilter filter;
  filter.queue = request.queue();
  filter.type = request.type();
  for (const int state : request.states()) {
    filter.states.push_back(static_cast<TaskState>(state));
  }
  // Sorted and distinct: the order of states is no part of the question.
  std::sort(filter.states.begin(), filter.states.end());
  filter.states.erase(std::unique(filter.states.begin(), filter.states.end()),
                      filter.states.end());
  filter.partition_key = request.partition_key();
  filter.batch_id = ParseTaskId(request.batch_id()).value_or(0);
  filter.create_from_us =
      std::max<int64_t>(0, ToMicros(request.create_time_from()).value_or(0));
  if (request.has_create_time_until()) {
    // 0 would mean "open"; nothing was created before 1970.
    filter.create_until_us =
        std::max<int64_t>(1, ToMicros(request.create_time_until()).value_or(0));
  }
  return filter;
}

v1::Task ToProto(const TaskRecord& record, const ReadOptions& read) {
  v1::Task task;
  task.set_id(FormatTaskId(record.id));
  SetSpec(record.spec, &task);
  if (read.payload && record.spec.payload.kind != PayloadKind::kNone) {
    ToProto(record.spec.payload, task.mutable_payload());
  }
  SetTime(record.create_us, &task, &v1::Task::mutable_create_time);
  task.set_executor_id(record.executor_id);
  if (record.live) SetLive(record, *record.live, &task);
  if (record.ended) SetEnded(*record.ended, read.result, &task);
  if (record.progress) {
    v1::Progress* progress = task.mutable_progress();
    progress->set_done(record.progress->done);
    progress->set_total(record.progress->total);
    progress->set_message(record.progress->message);
  }
  SetAttempts(record, &task);
  return task;
}

v1::Task ToProto(const SubmittedTask& stored, const TaskSpec& spec) {
  v1::Task task;
  task.set_id(FormatTaskId(stored.id));
  SetSpec(spec, &task);
  task.set_state(v1::TASK_STATE_PENDING);
  SetTime(stored.create_us, &task, &v1::Task::mutable_create_time);
  SetTime(stored.create_us, &task, &v1::Task::mutable_update_time);
  return task;
}

void ToProto(const Payload& payload, v1::Payload* out) {
  switch (payload.kind) {
    case PayloadKind::kNone:
      out->clear_kind();
      break;
    case PayloadKind::kJson:
      out->set_json(payload.bytes);
      break;
    case PayloadKind::kData:
      out->set_data(payload.bytes);
      break;
  }
}

void ToProto(const TaskError& error, v1::TaskError* out) {
  out->set_error_class(static_cast<v1::ErrorClass>(error.error_class));
  out->set_code(error.code);
  out->set_message(error.message);
  if (error.retry_after_us != 0) {
    SetMicros(error.retry_after_us, out->mutable_retry_after());
  }
}

void ToProto(const std::vector<std::pair<std::string, std::string>>& labels,
             google::protobuf::Map<std::string, std::string>* out) {
  for (const auto& [key, value] : labels) (*out)[key] = value;
}

std::vector<std::pair<std::string, std::string>> ToLabels(
    const google::protobuf::Map<std::string, std::string>& labels) {
  std::vector<std::pair<std::string, std::string>> sorted(labels.begin(),
                                                          labels.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace leasehold::scheduler
