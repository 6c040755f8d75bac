// What everything that takes calls answers once the scheduler leaves.
#ifndef SCHEDULER_ENGINE_SHUTTING_DOWN_H_
#define SCHEDULER_ENGINE_SHUTTING_DOWN_H_

#include "absl/status/status.h"

namespace leasehold::scheduler {

inline absl::Status ShuttingDown() {
  return absl::UnavailableError(
      "scheduler is shutting down, try another replica");
}

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_ENGINE_SHUTTING_DOWN_H_
