#include "scheduler/engine/task_changer.h"

#include <utility>

#include "common/status/status_macros.h"

namespace leasehold::scheduler {

absl::Status TaskChanger::ChangeTasks(
    absl::Span<const TaskId> ids, bool reported,
    absl::FunctionRef<Change(size_t, const TaskView&)> decide, Role role) {
  // Overwritten when the store repeats the transaction.
  std::vector<CommittedChange> changes(ids.size());
  const auto decide_and_note = [&](size_t i, const TaskView& task) {
    CommittedChange& committed = changes[i];
    committed = CommittedChange();
    committed.id = ids[i];
    committed.reported = reported;
    if (task.live != nullptr) {
      committed.state_before = task.live->state;
      if (task.live->lease_end == LeaseEnd::kOpen) {
        committed.lease_number = task.live->lease_number;
        committed.holder = task.live->holder;
      }
    }
    Change change = decide(i, task);
    committed.after = change.update;
    if (change.end.has_value()) committed.ended_as = change.end->state;
    return change;
  };
  LEASEHOLD_RETURN_IF_ERROR(store_.ChangeTasks(ids, decide_and_note, role));

  std::erase_if(changes, [](const CommittedChange& committed) {
    return !committed.after.has_value() && !IsTerminal(committed.ended_as);
  });
  if (changes.empty()) return absl::OkStatus();
  for (ChangeListener* listener : listeners_) listener->OnChanged(changes);
  return absl::OkStatus();
}

}  // namespace leasehold::scheduler
