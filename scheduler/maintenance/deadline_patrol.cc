#include "scheduler/maintenance/deadline_patrol.h"

#include <algorithm>
#include <vector>

#include "common/logging/log.h"
#include "common/status/status_macros.h"
#include "scheduler/domain/state_machine.h"

namespace leasehold::scheduler {

absl::Status DeadlinePatrol::RunOnce() {
  LEASEHOLD_RETURN_IF_ERROR(EndOverdue(
      "task expired", [this](int n) { return store_.FindExpiredTasks(n); },
      DecideExpireTime));
  return EndOverdue(
      "cancel deadline passed",
      [this](int n) { return store_.FindOverdueCancels(n); },
      DecideCancelDeadline);
}

absl::Status DeadlinePatrol::EndOverdue(
    const char* what,
    absl::FunctionRef<absl::StatusOr<std::vector<TaskId>>(int)> find,
    absl::FunctionRef<Change(const TaskView&)> decide) {
  while (true) {
    LEASEHOLD_ASSIGN_OR_RETURN(std::vector<TaskId> ids, find(config_.batch));
    if (ids.empty()) return absl::OkStatus();
    std::sort(ids.begin(), ids.end());
    std::vector<bool> ended(ids.size());
    LEASEHOLD_RETURN_IF_ERROR(changer_.ChangeTasks(
        ids, /*reported=*/false, [&](size_t i, const TaskView& task) {
          Change change = decide(task);
          ended[i] = change.end.has_value();
          return change;
        }));
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ended[i]) LogInfo(what, {{"task", ids[i]}});
    }
    const bool any = std::find(ended.begin(), ended.end(), true) != ended.end();
    if (!any || static_cast<int>(ids.size()) < config_.batch) {
      return absl::OkStatus();
    }
  }
}

}  // namespace leasehold::scheduler
