#include "tests/support/memory_task_store.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "scheduler/domain/limits.h"
#include "tests/support/memory_task_store_run.h"

namespace leasehold::scheduler {

int64_t MemoryTaskStore::Now() const {
  return clock_ != nullptr ? absl::ToUnixMicros(clock_->Now()) : fake_now_us_;
}

bool MemoryTaskStore::Exists(TaskId id) const {
  return live_.count(id) != 0 || ended_.count(id) != 0;
}

void MemoryTaskStore::SetLive(const LiveTask& row) {
  EraseLive(row.id);
  live_[row.id] = row;
  if (row.phase == Phase::kWaiting) {
    ready_.emplace(row.lane_id, row.priority, row.run_us, row.id);
  }
}

void MemoryTaskStore::EraseLive(TaskId id) {
  const auto found = live_.find(id);
  if (found == live_.end()) return;
  const LiveTask& row = found->second;
  ready_.erase({row.lane_id, row.priority, row.run_us, row.id});
  live_.erase(found);
}

// ---- kControl ----

absl::StatusOr<int64_t> MemoryTaskStore::NowUs() {
  return Run<absl::StatusOr<int64_t>>(StoreMethod::kNowUs, Role::kControl,
                                      [&] { return Now(); });
}

absl::StatusOr<TaskId> MemoryTaskStore::ReserveIds(int64_t count) {
  return Run<absl::StatusOr<TaskId>>(StoreMethod::kReserveIds, Role::kControl,
                                     [&] {
                                       const TaskId first = next_id_;
                                       next_id_ += count;
                                       return first;
                                     });
}

absl::StatusOr<std::vector<LaneId>> MemoryTaskStore::InternLanes(
    absl::Span<const std::pair<std::string, std::string>> names) {
  using Result = absl::StatusOr<std::vector<LaneId>>;
  return Run<Result>(
      StoreMethod::kInternLanes, Role::kControl, [&]() -> Result {
        std::set<std::pair<std::string, std::string>> missing;
        for (const auto& name : names) {
          if (lane_ids_.count(name) == 0) missing.insert(name);
        }
        if (lanes_.size() + missing.size() > static_cast<size_t>(kMaxLanes)) {
          return absl::ResourceExhaustedError(absl::StrCat(
              "lanes: more than ", kMaxLanes, " pairs of queue and type"));
        }
        std::vector<LaneId> ids;
        for (const auto& name : names) {
          const auto next = static_cast<LaneId>(lanes_.size() + 1);
          const auto [found, made] = lane_ids_.emplace(name, next);
          if (made) lanes_.push_back({next, name.first, name.second});
          if (queues_.count(name.first) == 0) {
            queues_[name.first].name = name.first;
          }
          ids.push_back(found->second);
        }
        return ids;
      });
}

absl::StatusOr<std::vector<Lane>> MemoryTaskStore::ListLanes() {
  return Run<absl::StatusOr<std::vector<Lane>>>(
      StoreMethod::kListLanes, Role::kControl, [&] { return lanes_; });
}

absl::StatusOr<std::vector<QueueRow>> MemoryTaskStore::ListQueues() {
  return Run<absl::StatusOr<std::vector<QueueRow>>>(
      StoreMethod::kListQueues, Role::kControl, [&] {
        std::vector<QueueRow> rows;
        for (const auto& [name, row] : queues_) rows.push_back(row);
        return rows;
      });
}

absl::StatusOr<QueueRow> MemoryTaskStore::SetQueuePaused(
    const std::string& name, bool paused) {
  return Run<absl::StatusOr<QueueRow>>(
      StoreMethod::kSetQueuePaused, Role::kControl,
      [&]() -> absl::StatusOr<QueueRow> {
        const auto queue = queues_.find(name);
        if (queue == queues_.end()) {
          return absl::NotFoundError(
              absl::StrCat("queue \"", name, "\": not found"));
        }
        if (queue->second.paused != paused) {
          queue->second.paused = paused;
          queue->second.version = ++queue_version_;
        }
        return queue->second;
      });
}

absl::StatusOr<std::vector<ReplicaRow>> MemoryTaskStore::TouchReplica(
    const ReplicaRow& replica, int64_t alive_us) {
  return Run<absl::StatusOr<std::vector<ReplicaRow>>>(
      StoreMethod::kTouchReplica, Role::kControl, [&] {
        ReplicaRow& mine = replicas_[replica.id];
        mine = replica;
        mine.seen_us = Now();
        std::vector<ReplicaRow> alive;
        for (const auto& [id, row] : replicas_) {
          if (row.seen_us >= Now() - alive_us) alive.push_back(row);
        }
        return alive;
      });
}

absl::Status MemoryTaskStore::RemoveReplica(const std::string& id) {
  return Run<absl::Status>(StoreMethod::kRemoveReplica, Role::kControl, [&] {
    replicas_.erase(id);
    return absl::OkStatus();
  });
}

absl::StatusOr<HolderId> MemoryTaskStore::InternHolder(
    const std::string& executor_id, const std::string& incarnation) {
  return Run<absl::StatusOr<HolderId>>(
      StoreMethod::kInternHolder, Role::kControl, [&] {
        const std::pair<std::string, std::string> name(executor_id,
                                                       incarnation);
        auto found = std::find(holders_.begin(), holders_.end(), name);
        if (found == holders_.end()) found = holders_.insert(found, name);
        return static_cast<HolderId>(found - holders_.begin() + 1);
      });
}

absl::StatusOr<std::vector<LeasedTask>> MemoryTaskStore::ListLeases(
    HolderId holder) {
  return Run<absl::StatusOr<std::vector<LeasedTask>>>(
      StoreMethod::kListLeases, Role::kControl, [&] {
        return LeasedWhere(
            [&](const LiveTask& row) { return row.holder == holder; });
      });
}

// ---- kSubmit ----

absl::StatusOr<std::vector<absl::StatusOr<std::vector<SubmittedTask>>>>
MemoryTaskStore::SubmitTasks(absl::Span<const std::vector<NewTask>> calls) {
  using Answers = std::vector<absl::StatusOr<std::vector<SubmittedTask>>>;
  return Run<absl::StatusOr<Answers>>(StoreMethod::kSubmitTasks, Role::kSubmit,
                                      [&] {
                                        Answers answers;
                                        for (const auto& call : calls)
                                          answers.push_back(SubmitCall(call));
                                        return answers;
                                      });
}

absl::StatusOr<std::vector<SubmittedTask>> MemoryTaskStore::SubmitCall(
    const std::vector<NewTask>& call) {
  const int64_t now_us = Now();  // One time a transaction.
  std::vector<SubmittedTask> submitted;
  std::vector<const NewTask*> missing;
  Keys fresh;
  for (const NewTask& task : call) {
    if (const auto known = FindKnown(task, fresh); known.has_value()) {
      if (!known->ok()) return known->status();
      submitted.push_back(**known);
      continue;
    }
    if (!task.spec.idempotency_key.empty()) {
      fresh[{task.spec.queue, task.spec.idempotency_key}] = {task.id,
                                                             task.content_hash};
    }
    missing.push_back(&task);
    submitted.push_back(
        {task.id, false, now_us, std::max(now_us, task.spec.schedule_us)});
  }
  for (auto& [name, key] : fresh) keys_[name] = key;
  for (const NewTask* task : missing) {
    bodies_[task->id] = {task->lane_id, task->spec, now_us};
    SetLive(task->holder == 0
                ? NewLiveTask(task->id, task->lane_id, task->spec, now_us)
                : NewLeasedTask(task->id, task->lane_id, task->spec,
                                task->holder, task->lease_us, now_us));
    if (task->spec.expire_us != 0) expire_us_[task->id] = task->spec.expire_us;
  }
  return submitted;
}

// The task that a new one turns out to be; nullopt if it is new indeed.
std::optional<absl::StatusOr<SubmittedTask>> MemoryTaskStore::FindKnown(
    const NewTask& task, const Keys& fresh) {
  // The call is repeated, since its first outcome was unknown.
  if (const auto body = bodies_.find(task.id);
      body != bodies_.end() && Exists(task.id)) {
    return SubmittedTask{
        task.id, false, body->second.create_us,
        std::max(body->second.create_us, task.spec.schedule_us)};
  }
  if (task.spec.idempotency_key.empty()) return std::nullopt;
  const std::pair<std::string, std::string> name(task.spec.queue,
                                                 task.spec.idempotency_key);
  const Key* key = nullptr;
  if (const auto found = fresh.find(name); found != fresh.end()) {
    key = &found->second;
  } else if (const auto stored = keys_.find(name);
             stored != keys_.end() && Exists(stored->second.id)) {
    key = &stored->second;
  }
  if (key == nullptr) return std::nullopt;
  if (key->content_hash != task.content_hash) {
    return absl::AlreadyExistsError(
        absl::StrCat("task.idempotency_key: taken by task ", key->id,
                     ", whose queue, type or payload is different"));
  }
  return SubmittedTask{key->id, true, 0, 0};
}

// ---- kClaim ----

absl::StatusOr<std::vector<ReadyHead>> MemoryTaskStore::ListReadyHeads() {
  return Run<absl::StatusOr<std::vector<ReadyHead>>>(
      StoreMethod::kListReadyHeads, Role::kClaim, [&] {
        std::vector<ReadyHead> heads;
        for (const auto& [lane_id, priority, run_us, id] : ready_) {
          if (heads.empty() || heads.back().lane_id != lane_id ||
              heads.back().priority != priority) {
            heads.push_back({lane_id, priority, run_us});
          }
        }
        return heads;
      });
}

absl::StatusOr<ReadyPage> MemoryTaskStore::ScanReady(
    LaneId lane_id, int priority, int64_t after_run_us, TaskId after_id,
    int64_t until_us, int limit, const IdShare& share) {
  return Run<absl::StatusOr<ReadyPage>>(
      StoreMethod::kScanReady, Role::kClaim, [&] {
        ReadyPage page;
        page.now_us = Now();
        page.complete = true;
        for (auto row = ready_.upper_bound(
                 {lane_id, priority, after_run_us, after_id});
             row != ready_.end(); ++row) {
          const auto& [lane, row_priority, run_us, id] = *row;
          if (lane != lane_id || row_priority != priority ||
              run_us > until_us) {
            break;
          }
          if (!share.Has(id)) continue;
          if (page.tasks.size() >= static_cast<size_t>(std::max(limit, 0))) {
            page.complete = false;
            break;
          }
          const LiveTask& live = live_.at(id);
          page.tasks.push_back({id, lane, row_priority, run_us,
                                live.lease_number, live.attempt});
        }
        return page;
      });
}

absl::StatusOr<ClaimResult> MemoryTaskStore::ClaimLeases(
    absl::Span<const Claim> claims) {
  return Run<absl::StatusOr<ClaimResult>>(
      StoreMethod::kClaimLeases, Role::kClaim, [&] {
        ClaimResult result;
        // One time a statement, as in the database.
        const int64_t now_us = result.now_us = Now();
        for (const Claim& claim : claims) {
          const auto found = live_.find(claim.id);
          const bool won = found != live_.end() &&
                           found->second.phase == Phase::kWaiting &&
                           found->second.run_us <= now_us &&
                           found->second.lease_number == claim.lease_number;
          result.won.push_back(won);
          if (!won) continue;
          LiveTask row = found->second;
          row.phase = Phase::kLeased;
          row.state = TaskState::kDispatched;
          ++row.attempt;
          ++row.lease_number;
          row.holder = claim.holder;
          row.lease_end = LeaseEnd::kOpen;
          row.lease_expire_us = now_us + claim.lease_us;
          row.attempt_expire_us = 0;
          row.cancel_expire_us = 0;
          row.state_us = now_us;
          SetLive(row);
        }
        return result;
      });
}

absl::StatusOr<std::vector<LeaseBody>> MemoryTaskStore::LoadLeaseBodies(
    absl::Span<const TaskId> ids, int64_t max_bytes) {
  return Run<absl::StatusOr<std::vector<LeaseBody>>>(
      StoreMethod::kLoadLeaseBodies, Role::kClaim, [&] {
        std::vector<LeaseBody> bodies;
        int64_t bytes = 0;
        for (const TaskId id : ids) {
          const auto found = bodies_.find(id);
          if (found == bodies_.end()) continue;
          LeaseBody body{id, found->second.spec, ""};
          if (const auto saved = checkpoints_.find(id);
              saved != checkpoints_.end()) {
            body.checkpoint = saved->second;
          }
          bytes += static_cast<int64_t>(body.spec.payload.bytes.size() +
                                        body.checkpoint.size());
          bodies.push_back(std::move(body));
          if (bytes > max_bytes) break;
        }
        return bodies;
      });
}

// ---- kRenew ----

LiveTask* MemoryTaskStore::HeldLive(const LeaseRef& lease, HolderId holder) {
  const auto found = live_.find(lease.task_id);
  if (found == live_.end()) return nullptr;
  LiveTask& row = found->second;
  const bool held = row.phase == Phase::kLeased &&
                    row.lease_number == lease.lease_number &&
                    row.holder == holder;
  return held ? &row : nullptr;
}

absl::StatusOr<std::vector<RenewOutcome>> MemoryTaskStore::RenewLeases(
    absl::Span<const Renewal> renewals) {
  return Run<absl::StatusOr<std::vector<RenewOutcome>>>(
      StoreMethod::kRenewLeases, Role::kRenew, [&] {
        std::vector<RenewOutcome> outcomes;
        for (const Renewal& renewal : renewals) {
          outcomes.push_back(Renew(renewal));
        }
        return outcomes;
      });
}

RenewOutcome MemoryTaskStore::Renew(const Renewal& renewal) {
  LiveTask* row = HeldLive(renewal.lease, renewal.holder);
  if (row == nullptr) return RenewOutcome::kLost;
  const auto passed = [&](int64_t us) { return us != 0 && us <= Now(); };
  const bool cancelling = row->cancel_expire_us != 0;
  if (passed(row->attempt_expire_us) || passed(row->cancel_expire_us)) {
    return cancelling ? RenewOutcome::kCancelRequested : RenewOutcome::kLost;
  }
  row->lease_expire_us =
      std::max(row->lease_expire_us, Now() + renewal.lease_us);
  if (renewal.start_us != 0 && row->state == TaskState::kDispatched) {
    row->state = TaskState::kRunning;
    row->state_us = Now();
    row->start_us = renewal.start_us;
    if (row->first_start_us == 0) row->first_start_us = renewal.start_us;
    row->attempt_expire_us =
        renewal.start_us + renewal.attempt_timeout_us + kAttemptTimeoutGraceUs;
  }
  return cancelling ? RenewOutcome::kCancelRequested : RenewOutcome::kRenewed;
}

absl::Status MemoryTaskStore::SaveLeaseUpdates(
    absl::Span<const LeaseUpdate> updates) {
  return Run<absl::Status>(StoreMethod::kSaveLeaseUpdates, Role::kControl, [&] {
    for (const LeaseUpdate& update : updates) {
      if (HeldLive(update.lease, update.holder) == nullptr) continue;
      const TaskId id = update.lease.task_id;
      if (update.progress.has_value()) progress_[id] = *update.progress;
      if (update.checkpoint.has_value()) {
        checkpoints_[id] = *update.checkpoint;
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace leasehold::scheduler
