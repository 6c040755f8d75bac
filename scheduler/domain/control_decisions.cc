// What people ask for: submit, cancel, pause, resume, retry.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "scheduler/domain/limits.h"
#include "scheduler/domain/state_machine.h"
#include "scheduler/domain/task_changes.h"

namespace leasehold::scheduler {
namespace {

// For a task that is not live: done already if it ended as `wanted`.
ControlDecision WithoutLive(const TaskView& task,
                            std::optional<TaskState> wanted) {
  if (task.ended == nullptr) return {{}, ControlOutcome::kNotFound};
  const bool stands = wanted.has_value() && task.ended->state == *wanted;
  return {{},
          stands ? ControlOutcome::kAlreadyDone : ControlOutcome::kWrongState};
}

ControlDecision Done(Change change) {
  return {std::move(change), ControlOutcome::kDone};
}

}  // namespace

ControlDecision DecideCancel(const TaskView& task, int64_t lease_duration_us,
                             const std::string& reason) {
  if (task.live == nullptr) return WithoutLive(task, TaskState::kCancelled);
  const LiveTask& live = *task.live;
  Change change;
  if (live.phase != Phase::kLeased) {
    change.end = CancelledEnd(task, live);
    change.end->error = CancelledError(reason);
    return Done(std::move(change));
  }
  if (live.cancel_expire_us != 0) return {{}, ControlOutcome::kAlreadyDone};
  // At least one lease_duration: by then the executor has heard of it, or its
  // lease is over.
  change.update = live;
  change.update->cancel_expire_us =
      task.now_us + std::max(kMinCancelGraceUs, lease_duration_us);
  if (!reason.empty()) change.cancel_reason = reason;
  return Done(std::move(change));
}

Change DecideCancelDeadline(const TaskView& task) {
  // A DISPATCHED task may start yet; it ends by its report or its expiry, so
  // that nothing starts after CANCELLED has been shown.
  if (task.live == nullptr || task.live->state != TaskState::kRunning ||
      task.live->cancel_expire_us == 0 ||
      task.live->cancel_expire_us > task.now_us) {
    return {};
  }
  const LiveTask& live = *task.live;
  Change change;
  change.end = CancelledEnd(task, live);
  change.end->lease_expire_us = CutShortUs(live, task.now_us);
  change.attempt =
      AttemptOf(live, StartOf(live),
                MakeError(ErrorClass::kCancelled, kCodeCancelled,
                          "the handler did not confirm the cancellation"),
                task.now_us);
  return change;
}

ControlDecision DecidePause(const TaskView& task) {
  if (task.live == nullptr) return WithoutLive(task, std::nullopt);
  const LiveTask& live = *task.live;
  if (live.phase == Phase::kPaused) return {{}, ControlOutcome::kAlreadyDone};
  if (live.phase == Phase::kLeased) return {{}, ControlOutcome::kWrongState};
  Change change;
  // lease_end stays: a late report of the latest lease still counts.
  change.update = live;
  change.update->phase = Phase::kPaused;
  change.update->state = TaskState::kPaused;
  change.update->state_us = task.now_us;
  return Done(std::move(change));
}

ControlDecision DecideResume(const TaskView& task) {
  if (task.live == nullptr) return WithoutLive(task, std::nullopt);
  const LiveTask& live = *task.live;
  // Not paused is what was asked for, also when it is leased again by now.
  if (live.phase != Phase::kPaused) return {{}, ControlOutcome::kAlreadyDone};
  Change change;
  change.update = BackToWaiting(live, live.lease_end, live.run_us, task.now_us);
  return Done(std::move(change));
}

std::optional<LiveTask> DecideRetry(TaskId id, LaneId lane_id, int priority,
                                    const EndedTask& ended, int64_t now_us) {
  if (ended.state != TaskState::kFailed &&
      ended.state != TaskState::kCancelled) {
    return std::nullopt;
  }
  LiveTask live;
  live.id = id;
  live.lane_id = lane_id;
  live.priority = priority;
  live.run_us = std::max(now_us, ended.lease_expire_us);
  // One more than any lease that was: hints and reports from before never
  // match.
  live.lease_number = ended.lease_number + 1;
  live.state_us = now_us;
  live.first_start_us = ended.start_us;
  return live;
}

LiveTask NewLiveTask(TaskId id, LaneId lane_id, const TaskSpec& spec,
                     int64_t now_us) {
  LiveTask live;
  live.id = id;
  live.lane_id = lane_id;
  live.priority = spec.priority;
  live.run_us = std::max(now_us, spec.schedule_us);
  live.state_us = now_us;
  return live;
}

}  // namespace leasehold::scheduler
