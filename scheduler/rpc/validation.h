// Checks requests of clients against the contract, field by field. Every
// mistake of a request is named at once, with its value and what is wanted:
//
//   task.queue: "Ä b", want 1-64 of [a-z0-9._-]; task.priority: 12, want 0-9
//
// "Output only." fields are ignored. Strings are valid UTF-8, or Protobuf would
// not have parsed the request; beyond that, keys and labels are bytes: no
// normalisation, no case folding, and NUL is a character like any other.
#ifndef SCHEDULER_RPC_VALIDATION_H_
#define SCHEDULER_RPC_VALIDATION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "leasehold/v1/task_service.pb.h"
#include "scheduler/domain/task.h"
#include "scheduler/rpc/mistakes.h"

namespace leasehold::scheduler {

// Whether `text` is 1-64 characters of [a-z0-9._-] (queues), and the same with
// capitals (types).
bool IsQueueName(absl::string_view text);
bool IsTypeName(absl::string_view text);

// `now_us` decides what is "in the past".
absl::Status ValidateSubmitTask(const v1::SubmitTaskRequest& request,
                                int64_t now_us);
absl::Status ValidateSubmitTasks(const v1::SubmitTasksRequest& request,
                                 int64_t now_us);
absl::Status ValidateListTasks(const v1::ListTasksRequest& request);
absl::Status ValidateQueueName(const std::string& name);  // Of AdminService.
absl::Status ValidateCancelTask(const v1::CancelTaskRequest& request);
absl::Status ValidateWaitTask(const v1::WaitTaskRequest& request);

// The id, or NOT_FOUND: an id that no task can have names no task.
absl::StatusOr<TaskId> ReadTaskId(absl::string_view text);

// For sessions too: `field` is at most `max_bytes` long.
void CheckMaxBytes(absl::string_view field, absl::string_view value,
                   size_t max_bytes, Mistakes* mistakes);
void CheckLabels(absl::string_view field,
                 const google::protobuf::Map<std::string, std::string>& labels,
                 Mistakes* mistakes);

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_RPC_VALIDATION_H_
