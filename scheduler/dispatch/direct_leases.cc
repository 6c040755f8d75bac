#include "scheduler/dispatch/direct_leases.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "scheduler/dispatch/placement.h"

namespace leasehold::scheduler {

class DirectLeases::Batch : public DirectLeaseBatch {
 public:
  explicit Batch(const DirectLeases& leaser) : leaser_(leaser) {
    for (std::shared_ptr<DispatchTarget>& target : leaser.list_targets_()) {
      const DispatchTarget::Room room = target->GetRoom();
      const int free = std::min(room.free_leases, room.free_slots);
      if (free <= 0) continue;
      std::vector<LaneId> open;
      bool idle = true;
      for (const LaneId lane : target->lanes()) {
        const LaneNow now = Look(lane);
        if (now == LaneNow::kIdle) open.push_back(lane);
        // A slot belongs to what waits for it, of whatever lane.
        idle &= now != LaneNow::kBusy;
      }
      if (!idle) continue;
      placement_.AddSession(free, free, open);
      sessions_.push_back({std::move(target), room.heartbeat_sequence, {}});
    }
  }

  bool has_room() const { return placement_.has_room(); }

  std::optional<DirectLease> Reserve(LaneId lane,
                                     const TaskSpec& spec) override {
    if (spec.schedule_us != 0) return std::nullopt;
    const std::optional<size_t> session = placement_.Place(lane);
    if (!session.has_value()) return std::nullopt;
    DispatchTarget& target = *sessions_[*session].target;
    if (target.Reserve(1) != 1) return std::nullopt;
    return DirectLease{target.holder(),
                       leaser_.lanes_.Settings(spec.queue).first_lease_us,
                       *session};
  }

  void Cancel(const DirectLease& lease) override {
    sessions_[lease.session].target->Unreserve(1);
  }

  void Commit(const DirectLease& lease, TaskId id, LaneId lane,
              TaskSpec spec) override {
    const ReadyTask task{.id = id, .lane_id = lane, .priority = spec.priority};
    sessions_[lease.session].leases.push_back(
        leaser_.builder_.MakeLease(task, std::move(spec), ""));
  }

  void Send() override {
    for (Session& session : sessions_) {
      if (session.leases.empty()) continue;
      const size_t count = session.leases.size();
      std::vector<std::pair<LeaseRef, HolderId>> refs;
      refs.reserve(count);
      for (const LeaseMessage& lease : session.leases) {
        refs.emplace_back(lease.lease, session.target->holder());
      }
      leaser_.metrics_.leases_made.Increment(static_cast<double>(count));
      leaser_.metrics_.leases_direct.Increment(static_cast<double>(count));
      if (!session.target->Deliver(std::exchange(session.leases, {}),
                                   session.heartbeat_sequence)) {
        leaser_.give_back_(std::move(refs));
      }
    }
  }

 private:
  struct Session {
    std::shared_ptr<DispatchTarget> target;
    int64_t heartbeat_sequence = 0;
    std::vector<LeaseMessage> leases;
  };

  enum class LaneNow { kPaused, kBusy, kIdle };

  // Asked once a batch and lane, however many executors serve it: what comes to
  // wait during the batch comes after.
  LaneNow Look(LaneId lane) {
    const auto [it, fresh] = lanes_now_.try_emplace(lane, LaneNow::kPaused);
    if (fresh && !leaser_.lanes_.Paused(lane)) {
      it->second =
          leaser_.index_.NothingWaits(lane) ? LaneNow::kIdle : LaneNow::kBusy;
    }
    return it->second;
  }

  const DirectLeases& leaser_;
  Placement placement_;
  std::vector<Session> sessions_;
  absl::flat_hash_map<LaneId, LaneNow> lanes_now_;
};

std::unique_ptr<DirectLeaseBatch> DirectLeases::Begin() {
  auto batch = std::make_unique<Batch>(*this);
  if (!batch->has_room()) return nullptr;
  return batch;
}

}  // namespace leasehold::scheduler
