#include "scheduler/engine/control_batcher.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/concurrency/thread_pool.h"
#include "common/ids/ids.h"
#include "common/logging/log.h"
#include "common/status/status_macros.h"
#include "scheduler/domain/task_names.h"
#include "scheduler/engine/shutting_down.h"

namespace leasehold::scheduler {
namespace {

constexpr size_t kMaxQueued = 10'000;
constexpr size_t kMaxQueuedBytes = 16u << 20;
constexpr size_t kBatchCalls = 200;
constexpr size_t kCallOverheadBytes = 256;
constexpr absl::Duration kRoundLimit = absl::Seconds(30);

std::string Named(TaskId id) { return absl::StrCat("task ", FormatTaskId(id)); }

absl::Status NotFound(TaskId id) {
  return absl::NotFoundError(absl::StrCat(Named(id), ": not found"));
}

absl::string_view WantedState(ControlAction action) {
  switch (action) {
    case ControlAction::kCancel:
      return "want one that has not ended";
    case ControlAction::kPause:
      return "want one that waits (PENDING or RETRYING); a task that runs can "
             "be cancelled";
    case ControlAction::kResume:
      return "want PAUSED";
    case ControlAction::kRetry:
      return "want FAILED or CANCELLED";
  }
  return "";
}

TaskState StateOf(const TaskView& task) {
  if (task.live != nullptr) return task.live->state;
  return task.ended != nullptr ? task.ended->state : TaskState::kUnspecified;
}

ControlDecision DecideRetryOf(const TaskView& task, TaskId id,
                              const LiveTask& wanted) {
  if (task.live != nullptr) return {{}, ControlOutcome::kWrongState};
  if (task.ended == nullptr) return {{}, ControlOutcome::kNotFound};
  std::optional<LiveTask> back = DecideRetry(
      id, wanted.lane_id, wanted.priority, *task.ended, task.now_us);
  if (!back.has_value()) return {{}, ControlOutcome::kWrongState};
  ControlDecision decision;
  decision.outcome = ControlOutcome::kDone;
  decision.change.update = *back;
  return decision;
}

absl::Status ToStatus(ControlOutcome outcome, ControlAction action, TaskId id,
                      TaskState state) {
  switch (outcome) {
    case ControlOutcome::kDone:
    case ControlOutcome::kAlreadyDone:
      return absl::OkStatus();
    case ControlOutcome::kNotFound:
      return NotFound(id);
    case ControlOutcome::kWrongState:
      break;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      Named(id), ": is ", TaskStateName(state), ", ", WantedState(action)));
}

}  // namespace

ControlBatcher::ControlBatcher(TaskStore& store, TaskChanger& changer,
                               LaneDirectory& lanes, const Clock& clock)
    : store_(store),
      changer_(changer),
      lanes_(lanes),
      probe_("control", kRoundLimit, clock),
      queue_(kMaxQueued, kMaxQueuedBytes),
      thread_([this] { Run(); }) {}

void ControlBatcher::Control(ControlRequest request, Done done) {
  const size_t weight = kCallOverheadBytes + request.reason.size();
  Call call{std::move(request), std::move(done)};
  if (queue_.TryPush(std::move(call), weight)) return;
  // NOLINTBEGIN(bugprone-use-after-move): TryPush leaves what it refuses.
  if (queue_.closed()) {
    return call.done(ShuttingDown());
  }
  call.done(absl::ResourceExhaustedError(
      "too many changes of tasks are waiting, try again later"));
  // NOLINTEND(bugprone-use-after-move)
}

void ControlBatcher::Stop() {
  queue_.Close();
  if (thread_.joinable()) thread_.join();
}

void ControlBatcher::Run() {
  NameThisThread("control");
  Calls calls;
  while (queue_.PopBatch(kBatchCalls, kMaxQueuedBytes, &calls)) {
    LoopProbe::Round round(probe_);
    while (!calls.empty()) calls = DoDistinct(std::move(calls));
  }
}

ControlBatcher::Calls ControlBatcher::DoDistinct(Calls calls) {
  absl::flat_hash_set<TaskId> seen;
  Calls now;
  Calls later;
  for (Call& call : calls) {
    const bool first = seen.insert(call.request.id).second;
    (first ? now : later).push_back(std::move(call));
  }
  std::sort(now.begin(), now.end(), [](const Call& a, const Call& b) {
    return a.request.id < b.request.id;
  });
  Do(std::move(now));
  return later;
}

void ControlBatcher::Do(Calls calls) {
  absl::StatusOr<Records> records = Read(calls);
  if (!records.ok()) return FailAll(calls, records.status());
  RefuseImpossible(*records, &calls);
  if (calls.empty()) return;
  std::vector<absl::Status> refusals(calls.size());
  const absl::Status changed = Change(calls, *records, &refusals);
  if (!changed.ok() && !absl::IsUnavailable(changed) && calls.size() > 1) {
    // One of them may be at fault.
    LogError("changes of tasks failed, will do them one by one",
             {{"tasks", calls.size()}, {"error", changed}});
    for (Call& call : calls) {
      Calls one;
      one.push_back(std::move(call));
      Do(std::move(one));
    }
    return;
  }
  if (!changed.ok()) return FailAll(calls, changed);
  records = Read(calls);
  // They are done, and not to be done again: a second retry would be refused.
  if (!records.ok()) return FailAll(calls, records.status());
  for (size_t i = 0; i < calls.size(); ++i) {
    const auto record = records->find(calls[i].request.id);
    if (!refusals[i].ok()) {
      calls[i].done(refusals[i]);
    } else if (record == records->end()) {
      calls[i].done(NotFound(calls[i].request.id));
    } else {
      calls[i].done(std::move(record->second));
    }
  }
}

void ControlBatcher::FailAll(const Calls& calls, const absl::Status& status) {
  for (const Call& call : calls) call.done(status);
}

absl::StatusOr<ControlBatcher::Records> ControlBatcher::Read(
    const Calls& calls) {
  std::vector<TaskId> ids;
  for (const Call& call : calls) ids.push_back(call.request.id);
  LEASEHOLD_ASSIGN_OR_RETURN(std::vector<TaskRecord> tasks,
                             store_.GetTasks(ids, ReadOptions{}));
  Records records;
  for (TaskRecord& task : tasks) {
    const TaskId id = task.id;
    records[id] = std::move(task);
  }
  return records;
}

void ControlBatcher::RefuseImpossible(const Records& records, Calls* calls) {
  std::erase_if(*calls, [&](Call& call) {
    const TaskId id = call.request.id;
    const auto record = records.find(id);
    if (record == records.end()) {
      call.done(NotFound(id));
      return true;
    }
    const bool by_batch = call.request.action == ControlAction::kCancel ||
                          call.request.action == ControlAction::kRetry;
    if (by_batch && record->second.spec.batch_id != 0) {
      call.done(absl::FailedPreconditionError(absl::StrCat(
          Named(id), ": belongs to batch ", record->second.spec.batch_id,
          "; cancel or retry the batch")));
      return true;
    }
    return false;
  });
}

absl::Status ControlBatcher::Change(const Calls& calls, const Records& records,
                                    std::vector<absl::Status>* refusals) {
  std::vector<TaskId> ids;
  std::vector<int64_t> lease_us;
  std::vector<LiveTask> wanted(calls.size());
  for (size_t i = 0; i < calls.size(); ++i) {
    const TaskSpec& spec = records.at(calls[i].request.id).spec;
    ids.push_back(calls[i].request.id);
    lease_us.push_back(lanes_.Settings(spec.queue).lease_duration_us);
    if (calls[i].request.action != ControlAction::kRetry) continue;
    LEASEHOLD_ASSIGN_OR_RETURN(
        const std::vector<LaneId> lane,
        lanes_.Intern({LaneName(spec.queue, spec.type)}));
    wanted[i].lane_id = lane[0];
    wanted[i].priority = spec.priority;
  }
  return changer_.ChangeTasks(
      ids, /*reported=*/false,
      [&](size_t i, const TaskView& task) {
        const ControlRequest& request = calls[i].request;
        ControlDecision decision;
        switch (request.action) {
          case ControlAction::kCancel:
            decision = DecideCancel(task, lease_us[i], request.reason);
            break;
          case ControlAction::kPause:
            decision = DecidePause(task);
            break;
          case ControlAction::kResume:
            decision = DecideResume(task);
            break;
          case ControlAction::kRetry:
            decision = DecideRetryOf(task, request.id, wanted[i]);
            break;
        }
        (*refusals)[i] = ToStatus(decision.outcome, request.action, request.id,
                                  StateOf(task));
        return std::move(decision.change);
      },
      Role::kControl);
}

}  // namespace leasehold::scheduler
