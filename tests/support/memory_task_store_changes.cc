// MemoryTaskStore: how live tasks change, and what is found to be overdue.
#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "tests/support/memory_task_store.h"
#include "tests/support/memory_task_store_run.h"

namespace leasehold::scheduler {

TaskView MemoryTaskStore::ViewOf(TaskId id, EndedTask* ended) const {
  TaskView view;
  view.now_us = Now();
  if (const auto found = live_.find(id); found != live_.end()) {
    view.live = &found->second;
    const TaskSpec& spec = bodies_.at(id).spec;
    const auto queue = queues_.find(spec.queue);
    view.policy = ResolveRetryPolicy(
        spec.retry_policy, queue == queues_.end() ? RetryPolicySpec{}
                                                  : queue->second.retry_policy);
    const auto expire = expire_us_.find(id);
    view.expire_us = expire == expire_us_.end() ? 0 : expire->second;
    const auto reason = cancel_reasons_.find(id);
    if (reason != cancel_reasons_.end()) view.cancel_reason = reason->second;
  } else if (const auto row = ended_.find(id); row != ended_.end()) {
    *ended = row->second;
    ended->result = {};
    ended->error.reset();
    view.ended = ended;
  }
  return view;
}

absl::Status MemoryTaskStore::ChangeTasks(
    absl::Span<const TaskId> ids,
    absl::FunctionRef<Change(size_t, const TaskView&)> decide, Role role) {
  return Run<absl::Status>(StoreMethod::kChangeTasks, role, [&] {
    if (std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>()) !=
        ids.end()) {
      return absl::InvalidArgumentError(
          "ChangeTasks: ids, want ascending and distinct");
    }
    std::vector<Change> changes(ids.size());
    for (int round = 0; round < (repeat_decisions_ ? 2 : 1); ++round) {
      for (size_t i = 0; i < ids.size(); ++i) {
        EndedTask ended;
        changes[i] = decide(i, ViewOf(ids[i], &ended));
      }
    }
    for (size_t i = 0; i < ids.size(); ++i) {
      const bool brings_back =
          changes[i].update.has_value() && ended_.contains(ids[i]);
      if (changes[i].writes() && !live_.contains(ids[i]) && !brings_back) {
        return absl::InternalError(
            absl::StrCat("ChangeTasks: task ", ids[i], " is not stored"));
      }
    }
    for (size_t i = 0; i < ids.size(); ++i) Apply(ids[i], changes[i]);
    return absl::OkStatus();
  });
}

void MemoryTaskStore::Apply(TaskId id, const Change& change) {
  if (change.writes() && change.attempt.has_value()) {
    attempts_[id][change.attempt->lease_number] = *change.attempt;
  }
  if (change.end.has_value()) {
    EraseLive(id);
    ended_[id] = *change.end;
    checkpoints_.erase(id);
    progress_.erase(id);
    expire_us_.erase(id);
    cancel_reasons_.erase(id);
  } else if (change.update.has_value()) {
    if (const auto ended = ended_.find(id); ended != ended_.end()) {
      const int64_t expire_us = bodies_.at(id).spec.expire_us;
      if (expire_us != 0 && ended->second.reason != FailureReason::kExpired) {
        expire_us_[id] = expire_us;
      }
      ended_.erase(ended);
    }
    SetLive(*change.update);
    if (change.checkpoint.has_value()) checkpoints_[id] = *change.checkpoint;
    if (change.cancel_reason.has_value()) {
      cancel_reasons_[id] = *change.cancel_reason;
    }
  }
}

absl::StatusOr<std::vector<LeasedTask>> MemoryTaskStore::FindExpiredLeases(
    int limit) {
  return Run<absl::StatusOr<std::vector<LeasedTask>>>(
      StoreMethod::kFindExpiredLeases, Role::kFinish, [&] {
        std::vector<LeasedTask> expired = LeasedWhere(
            [&](const LiveTask& row) { return row.lease_expire_us <= Now(); });
        std::stable_sort(expired.begin(), expired.end(),
                         [](const LeasedTask& a, const LeasedTask& b) {
                           return a.lease_expire_us < b.lease_expire_us;
                         });
        if (expired.size() > static_cast<size_t>(limit)) expired.resize(limit);
        return expired;
      });
}

absl::StatusOr<std::vector<TaskId>> MemoryTaskStore::FindExpiredTasks(
    int limit) {
  return Run<absl::StatusOr<std::vector<TaskId>>>(
      StoreMethod::kFindExpiredTasks, Role::kFinish, [&] {
        std::vector<std::pair<int64_t, TaskId>> expired;
        for (const auto& [id, expire_us] : expire_us_) {
          if (expire_us <= Now()) expired.emplace_back(expire_us, id);
        }
        std::sort(expired.begin(), expired.end());
        std::vector<TaskId> ids;
        for (const auto& [expire_us, id] : expired) {
          if (ids.size() >= static_cast<size_t>(limit)) break;
          ids.push_back(id);
        }
        return ids;
      });
}

absl::StatusOr<std::vector<TaskId>> MemoryTaskStore::FindOverdueCancels(
    int limit) {
  return Run<absl::StatusOr<std::vector<TaskId>>>(
      StoreMethod::kFindOverdueCancels, Role::kFinish, [&] {
        std::vector<TaskId> ids;
        for (const LeasedTask& lease : LeasedWhere([&](const LiveTask& row) {
               return row.cancel_expire_us != 0 &&
                      row.cancel_expire_us <= Now();
             })) {
          if (ids.size() >= static_cast<size_t>(limit)) break;
          ids.push_back(lease.lease.task_id);
        }
        return ids;
      });
}

}  // namespace leasehold::scheduler
