#include "executor/sdk/task_run.h"

#include <string>
#include <utility>

namespace leasehold::executor {
namespace {

Payload TakePayload(v1::Payload* payload) {
  switch (payload->kind_case()) {
    case v1::Payload::kJson:
      return {Payload::Kind::kJson, std::move(*payload->mutable_json())};
    case v1::Payload::kData:
      return {Payload::Kind::kData, std::move(*payload->mutable_data())};
    case v1::Payload::KIND_NOT_SET:
      break;
  }
  return {};
}

}  // namespace

std::shared_ptr<TaskRun> MakeTaskRun(v1::Lease* lease) {
  auto run = std::make_shared<TaskRun>();
  TaskInput& input = run->input;
  input.task_id = std::move(*lease->mutable_lease()->mutable_task_id());
  input.lease_number = lease->lease().lease_number();
  input.queue = std::move(*lease->mutable_queue());
  input.type = std::move(*lease->mutable_type());
  if (lease->has_payload())
    input.payload = TakePayload(lease->mutable_payload());
  input.attempt = lease->attempt();
  input.max_attempts = lease->max_attempts();
  for (auto& [key, value] : *lease->mutable_labels()) {
    input.labels.emplace(key, std::move(value));
  }
  input.partition_key = std::move(*lease->mutable_partition_key());
  input.idempotency_key = std::move(*lease->mutable_idempotency_key());
  input.traceparent = std::move(*lease->mutable_traceparent());
  input.checkpoint = std::move(*lease->mutable_checkpoint());
  run->attempt_timeout =
      ToDuration(lease->has_attempt_timeout(), lease->attempt_timeout(),
                 absl::InfiniteDuration());
  return run;
}

absl::Duration ToDuration(bool is_set, const google::protobuf::Duration& value,
                          absl::Duration otherwise) {
  if (!is_set) return otherwise;
  return absl::Seconds(value.seconds()) + absl::Nanoseconds(value.nanos());
}

}  // namespace leasehold::executor
