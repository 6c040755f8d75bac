// How states read in messages to people: as in the API.
#ifndef SCHEDULER_DOMAIN_TASK_NAMES_H_
#define SCHEDULER_DOMAIN_TASK_NAMES_H_

#include "absl/strings/string_view.h"
#include "scheduler/domain/task.h"

namespace leasehold::scheduler {

// Such as "RUNNING".
inline absl::string_view TaskStateName(TaskState state) {
  switch (state) {
    case TaskState::kPending:
      return "PENDING";
    case TaskState::kDispatched:
      return "DISPATCHED";
    case TaskState::kRunning:
      return "RUNNING";
    case TaskState::kRetrying:
      return "RETRYING";
    case TaskState::kPaused:
      return "PAUSED";
    case TaskState::kSucceeded:
      return "SUCCEEDED";
    case TaskState::kFailed:
      return "FAILED";
    case TaskState::kCancelled:
      return "CANCELLED";
    case TaskState::kUnspecified:
      return "UNKNOWN";
  }
  return "UNKNOWN";
}

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_DOMAIN_TASK_NAMES_H_
