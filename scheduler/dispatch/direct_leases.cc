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
      std::vector<LaneId> lanes = target->lanes();
      std::erase_if(lanes,
                    [&](LaneId lane) { return leaser_.lanes_.Paused(lane); });
      // A slot belongs to what waits for it, of whatever lane.
      const bool idle =
          std::all_of(lanes.begin(), lanes.end(),
                      [this](LaneId lane) { return NothingWaits(lane); });
      if (!idle) continue;
      placement_.AddSession(free, free, lanes);
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

  // Asked once a batch: what comes to wait during it comes after.
  bool NothingWaits(LaneId lane) {
    const auto [it, fresh] = nothing_waits_.try_emplace(lane, false);
    if (fresh) it->second = leaser_.index_.NothingWaits(lane);
    return it->second;
  }

  const DirectLeases& leaser_;
  Placement placement_;
  std::vector<Session> sessions_;
  absl::flat_hash_map<LaneId, bool> nothing_waits_;
};

std::unique_ptr<DirectLeaseBatch> DirectLeases::Begin() {
  auto batch = std::make_unique<Batch>(*this);
  if (!batch->has_room()) return nullptr;
  return batch;
}

}  // namespace leasehold::scheduler
