#include "scheduler/dispatch/dispatcher.h"

#include <algorithm>
#include <chrono>

#include "common/concurrency/thread_pool.h"
#include "common/logging/log.h"
#include "common/logging/rate_limited_log.h"

namespace leasehold::scheduler {
namespace {

// How soon tasks that other replicas stored are found.
constexpr auto kPollTime = std::chrono::seconds(1);
// After the database failed; it is asked again soon, since a restart of it must
// not hold tasks back for long.
constexpr auto kPauseAfterFailure = std::chrono::milliseconds(500);
constexpr absl::Duration kRoundLimit = absl::Seconds(30);
constexpr int kPageTasks = 1'000;
// Of other replicas' tasks no more are taken a poll, since they may be back.
constexpr int kForeignTasks = 1'000;
// Leases of one message; payloads are bounded by the transport's splitting.
constexpr size_t kMaxUnsent = 100'000;

void LogFailure(const char* what, const absl::Status& status) {
  static RateLimitedLog log;
  log.Warning(what, {{"error", status}});
}

}  // namespace

Dispatcher::Dispatcher(TaskStore& store, TaskChanger& changer,
                       LaneDirectory& lanes, DbClock& clock,
                       const EngineBounds& bounds,
                       std::function<Targets()> list_targets,
                       SchedulerMetrics& metrics)
    : store_(store),
      changer_(changer),
      lanes_(lanes),
      clock_(clock),
      bounds_(bounds),
      list_targets_(std::move(list_targets)),
      metrics_(metrics),
      index_(clock, bounds.ready_index_tasks, bounds.ready_index_payload_bytes,
             [this] { Wake(); }),
      builder_(store, lanes),
      direct_leases_(
          index_, lanes, builder_, list_targets_,
          [this](auto unsent) { GiveBackSoon(std::move(unsent)); }, metrics),
      probe_("dispatch", kRoundLimit, clock.steady()) {}

void Dispatcher::Start() {
  next_poll_ = clock_.steady().SteadyNow();
  failing_until_ = next_poll_;
  thread_ = std::thread([this] { Run(); });
}

void Dispatcher::Wake() {
  {
    std::lock_guard lock(mutex_);
    if (woken_) return;
    woken_ = true;
  }
  changed_.notify_one();
}

void Dispatcher::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Dispatcher::Run() {
  NameThisThread("dispatch");
  while (true) {
    {
      std::lock_guard lock(mutex_);
      if (stopped_) return;
      woken_ = false;
    }
    bool leased;
    {
      LoopProbe::Round round(probe_);
      leased = RunOnce();
    }
    if (!leased) WaitForWork(index_.NextDueUs(BeginRound().placement));
  }
}

bool Dispatcher::RunOnce() {
  if (clock_.steady().SteadyNow() < failing_until_) return false;
  std::vector<std::pair<LeaseRef, HolderId>> returned;
  {
    std::lock_guard lock(mutex_);
    returned.swap(returned_);
  }
  GiveBack(std::move(returned));
  Round round = BeginRound();
  const SteadyTime now = clock_.steady().SteadyNow();
  if (index_.TakePollRequest() || now >= next_poll_) {
    next_poll_ = now + kPollTime;
    GiveBack(std::exchange(unsent_, {}));
    PollHeads(round.placement);
  }
  if (!round.placement.has_room()) return false;
  const bool read = ReadPages(round.placement);
  std::vector<ReadyIndex::Taken> taken = ReserveRoom(
      round, index_.Take(round.placement, bounds_.claim_batch_tasks));
  if (taken.empty()) return read;
  Lease(round, std::move(taken));
  return true;
}

Dispatcher::Round Dispatcher::BeginRound() {
  Round round;
  for (std::shared_ptr<DispatchTarget>& target : list_targets_()) {
    const DispatchTarget::Room room = target->GetRoom();
    if (room.free_leases <= 0) continue;
    std::vector<LaneId> lanes = target->lanes();
    std::erase_if(lanes, [this](LaneId lane) { return lanes_.Paused(lane); });
    round.placement.AddSession(room.free_leases, room.free_slots, lanes);
    round.sessions.push_back({std::move(target), room});
  }
  return round;
}

void Dispatcher::Pause() {
  failing_until_ = clock_.steady().SteadyNow() + kPauseAfterFailure;
}

void Dispatcher::PollHeads(const Placement& placement) {
  const int64_t now_us = clock_.NowUs();
  const absl::StatusOr<std::vector<ReadyHead>> heads = store_.ListReadyHeads();
  if (!heads.ok()) {
    Pause();
    return LogFailure("waiting tasks not read, will retry", heads.status());
  }
  index_.NoteHeads(*heads, placement, now_us);
  for (const ReadyIndex::Scan& scan : index_.TakeForeignScans()) {
    const absl::StatusOr<ReadyPage> page =
        store_.ScanReady(scan.lane_id, scan.priority, 0, 0,
                         now_us - kForeignWaitUs, kForeignTasks, scan.share);
    if (!page.ok()) {
      Pause();
      return LogFailure("waiting tasks not read, will retry", page.status());
    }
    index_.AddForeign(scan, *page);
  }
}

bool Dispatcher::ReadPages(const Placement& placement) {
  bool any = false;
  for (const ReadyIndex::Scan& scan : index_.PlanScans(placement)) {
    const SteadyTime sent = clock_.steady().SteadyNow();
    absl::StatusOr<ReadyPage> page = store_.ScanReady(
        scan.lane_id, scan.priority, scan.after.run_us, scan.after.id,
        clock_.NowUs() + kScanAheadUs, kPageTasks, scan.share);
    if (!page.ok()) {
      Pause();
      LogFailure("waiting tasks not read, will retry", page.status());
      return any;
    }
    clock_.Observe(sent, page->now_us);
    any |= index_.AddPage(scan, *std::move(page));
  }
  return any;
}

std::vector<ReadyIndex::Taken> Dispatcher::ReserveRoom(
    Round& round, std::vector<ReadyIndex::Taken> taken) {
  std::vector<int> room(round.sessions.size());
  for (const ReadyIndex::Taken& task : taken) ++room[task.session];
  for (size_t s = 0; s < room.size(); ++s) {
    if (room[s] > 0) room[s] = round.sessions[s].target->Reserve(room[s]);
  }
  std::vector<ReadyIndex::Taken> reserved;
  std::vector<OfferedTask> again;
  reserved.reserve(taken.size());
  for (ReadyIndex::Taken& task : taken) {
    if (room[task.session]-- > 0) {
      reserved.push_back(std::move(task));
    } else {
      again.push_back({task.task, std::move(task.spec)});
    }
  }
  if (!again.empty()) index_.Offer(std::move(again));
  return reserved;
}

void Dispatcher::Lease(Round& round, std::vector<ReadyIndex::Taken> taken) {
  std::vector<ReadyIndex::Taken> won = Claim(round, std::move(taken));
  if (!won.empty()) Send(round, std::move(won));
}

std::vector<ReadyIndex::Taken> Dispatcher::Claim(
    const Round& round, std::vector<ReadyIndex::Taken> taken) {
  std::vector<scheduler::Claim> claims;
  claims.reserve(taken.size());
  for (const ReadyIndex::Taken& task : taken) {
    const std::shared_ptr<const LaneName> lane = lanes_.Name(task.task.lane_id);
    const QueueSettings settings =
        lanes_.Settings(lane == nullptr ? std::string() : lane->first);
    claims.push_back({.id = task.task.id,
                      .lease_number = task.task.lease_number,
                      .holder = round.sessions[task.session].target->holder(),
                      .lease_us = settings.first_lease_us});
  }
  const SteadyTime sent = clock_.steady().SteadyNow();
  const absl::StatusOr<ClaimResult> result = store_.ClaimLeases(claims);
  if (!result.ok()) {
    Pause();
    LogFailure("claim failed, will retry", result.status());
    // Won or not, nobody knows; an entry that was won is dropped by its next
    // claim, and its lease expires.
    std::vector<OfferedTask> again;
    for (ReadyIndex::Taken& task : taken) {
      round.sessions[task.session].target->Unreserve(1);
      again.push_back({task.task, std::move(task.spec)});
    }
    index_.Offer(std::move(again));
    return {};
  }
  clock_.Observe(sent, result->now_us);
  std::vector<ReadyIndex::Taken> won;
  won.reserve(taken.size());
  for (size_t i = 0; i < taken.size(); ++i) {
    if (!result->won[i]) {
      metrics_.claims_lost.Increment();
      round.sessions[taken[i].session].target->Unreserve(1);
      continue;
    }
    metrics_.queue_wait.Observe(static_cast<double>(std::max<int64_t>(
                                    0, result->now_us - taken[i].task.run_us)) /
                                1e6);
    won.push_back(std::move(taken[i]));
  }
  metrics_.claim_batch_tasks.Observe(static_cast<double>(won.size()));
  metrics_.leases_made.Increment(static_cast<double>(won.size()));
  return won;
}

void Dispatcher::Send(Round& round, std::vector<ReadyIndex::Taken> won) {
  absl::StatusOr<std::vector<std::optional<LeaseMessage>>> leases =
      builder_.Build(won);
  std::vector<std::pair<LeaseRef, HolderId>> unsent;
  std::vector<std::vector<LeaseMessage>> by_session(round.sessions.size());
  for (size_t i = 0; i < won.size(); ++i) {
    if (leases.ok() && (*leases)[i].has_value()) {
      by_session[won[i].session].push_back(*std::move((*leases)[i]));
    } else {
      round.sessions[won[i].session].target->Unreserve(1);
      unsent.emplace_back(
          LeaseRef{won[i].task.id, won[i].task.lease_number + 1},
          round.sessions[won[i].session].target->holder());
    }
  }
  if (!unsent.empty()) {  // They come back at once; not to claim in circles.
    Pause();
    LogFailure("task bodies not read, leases go back", leases.status());
  }
  for (size_t s = 0; s < by_session.size(); ++s) {
    if (!by_session[s].empty()) {
      DeliverTo(round.sessions[s], std::move(by_session[s]));
    }
  }
  GiveBack(std::move(unsent));
}

void Dispatcher::DeliverTo(Session& session, std::vector<LeaseMessage> leases) {
  std::vector<std::pair<LeaseRef, HolderId>> refs;
  refs.reserve(leases.size());
  for (const LeaseMessage& lease : leases) {
    refs.emplace_back(lease.lease, session.target->holder());
  }
  if (session.target->Deliver(std::move(leases),
                              session.room.heartbeat_sequence)) {
    return;
  }
  GiveBack(std::move(refs));
}

void Dispatcher::GiveBack(std::vector<std::pair<LeaseRef, HolderId>> unsent) {
  if (unsent.empty()) return;
  // One lease a task: an older one has long been superseded.
  std::sort(unsent.rbegin(), unsent.rend());
  unsent.erase(std::unique(unsent.begin(), unsent.end(),
                           [](const auto& a, const auto& b) {
                             return a.first.task_id == b.first.task_id;
                           }),
               unsent.end());
  std::reverse(unsent.begin(), unsent.end());
  std::vector<TaskId> ids;
  ids.reserve(unsent.size());
  for (const auto& [lease, holder] : unsent) ids.push_back(lease.task_id);
  const absl::Status status = changer_.ChangeTasks(
      ids, /*reported=*/false,
      [&](size_t i, const TaskView& task) {
        return DecideNotHeld(task, unsent[i].first, unsent[i].second);
      },
      Role::kClaim);
  if (status.ok()) {
    metrics_.leases_returned_unsent.Increment(
        static_cast<double>(unsent.size()));
    return;
  }
  Pause();
  LogFailure("unsent leases not given back, will retry", status);
  if (unsent_.size() + unsent.size() > kMaxUnsent) return;  // They expire.
  unsent_.insert(unsent_.end(), unsent.begin(), unsent.end());
}

void Dispatcher::GiveBackSoon(
    std::vector<std::pair<LeaseRef, HolderId>> unsent) {
  {
    std::lock_guard lock(mutex_);
    if (returned_.size() + unsent.size() > kMaxUnsent) return;  // They expire.
    returned_.insert(returned_.end(), unsent.begin(), unsent.end());
  }
  Wake();
}

void Dispatcher::WaitForWork(int64_t next_due_us) {
  const SteadyTime now = clock_.steady().SteadyNow();
  SteadyTime until = std::max(next_poll_, failing_until_);
  if (next_due_us > 0) {
    const int64_t wait_us = std::max<int64_t>(1, next_due_us - clock_.NowUs());
    until = std::min(until, now + std::chrono::microseconds(wait_us));
  }
  until = std::max(until, failing_until_);
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, until - now, [&] { return woken_ || stopped_; });
}

}  // namespace leasehold::scheduler
