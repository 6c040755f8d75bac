#include "scheduler/dispatch/placement.h"

namespace leasehold::scheduler {

size_t Placement::AddSession(int free_leases, int free_slots,
                             const std::vector<LaneId>& lanes) {
  const size_t session = sessions_.size();
  sessions_.push_back({free_leases, free_slots});
  if (free_leases <= 0) return session;
  total_free_ += free_leases;
  for (const LaneId lane : lanes) by_lane_[lane].push(Rank(session));
  return session;
}

std::vector<LaneId> Placement::Lanes() const {
  std::vector<LaneId> lanes;
  lanes.reserve(by_lane_.size());
  for (const auto& [lane, ranked] : by_lane_) lanes.push_back(lane);
  return lanes;
}

std::optional<size_t> Placement::Place(LaneId lane) {
  const auto it = by_lane_.find(lane);
  if (it == by_lane_.end()) return std::nullopt;
  std::priority_queue<Ranked>& ranked = it->second;
  while (!ranked.empty()) {
    const Ranked top = ranked.top();
    Session& session = sessions_[top.session];
    ranked.pop();
    if (session.free_leases <= 0) continue;
    if (session.free_leases != top.free_leases) {
      ranked.push(Rank(top.session));
      continue;
    }
    --session.free_leases;
    --session.free_slots;
    --total_free_;
    if (session.free_leases > 0) ranked.push(Rank(top.session));
    return top.session;
  }
  return std::nullopt;
}

}  // namespace leasehold::scheduler
