#include "scheduler/dispatch/ready_index.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"

namespace leasehold::scheduler {
namespace {

// Below this many tasks a shelf is low and is read on; also when none of them
// is due, since retries that wait must not hide what could run.
constexpr size_t kLowWater = 2'000;
// Tasks that are due later than this are not kept; a scan finds them in time.
constexpr int64_t kKeepAheadUs = 60'000'000;
// What a spec weighs besides its payload.
constexpr size_t kSpecOverheadBytes = 512;

}  // namespace

ReadyIndex::ReadyIndex(const DbClock& clock, size_t max_tasks,
                       size_t max_spec_bytes, std::function<void()> wake)
    : clock_(clock),
      max_tasks_(max_tasks),
      max_spec_bytes_(max_spec_bytes),
      wake_(std::move(wake)) {}

void ReadyIndex::Serve(absl::Span<const LaneId> lanes) {
  {
    std::lock_guard lock(mutex_);
    for (const LaneId lane : lanes) {
      std::unique_ptr<LaneShelves>& shelves = lanes_[lane];
      if (shelves == nullptr) shelves = std::make_unique<LaneShelves>();
      ++shelves->sessions;
    }
    poll_requested_ = true;
  }
  wake_();
}

void ReadyIndex::Unserve(absl::Span<const LaneId> lanes) {
  std::lock_guard lock(mutex_);
  for (const LaneId lane : lanes) {
    const auto it = lanes_.find(lane);
    if (it == lanes_.end() || --it->second->sessions > 0) continue;
    for (ReadyShelf& shelf : it->second->shelves) {
      while (!shelf.empty()) Forget(shelf.TakeHead().second);
    }
    lanes_.erase(it);
  }
}

void ReadyIndex::Offer(std::vector<OfferedTask> tasks) {
  bool added = false;
  {
    std::lock_guard lock(mutex_);
    for (OfferedTask& task : tasks) added |= AddLocked(std::move(task));
    added |= poll_requested_;
  }
  if (added) wake_();
}

void ReadyIndex::OnChanged(absl::Span<const CommittedChange> changes) {
  std::vector<OfferedTask> offers;
  for (const CommittedChange& change : changes) {
    if (!change.after.has_value()) continue;
    const LiveTask& live = *change.after;
    if (live.phase != Phase::kWaiting) continue;
    offers.push_back({.task = {.id = live.id,
                               .lane_id = live.lane_id,
                               .priority = live.priority,
                               .run_us = live.run_us,
                               .lease_number = live.lease_number,
                               .attempt = live.attempt},
                      .spec = nullptr});
  }
  if (!offers.empty()) Offer(std::move(offers));
}

bool ReadyIndex::AddLocked(OfferedTask offer) {
  if (offer.task.run_us > clock_.NowUs() + kKeepAheadUs) return false;
  ReadyShelf* shelf = FindShelf(offer.task.lane_id, offer.task.priority);
  if (shelf == nullptr) return false;
  // Older tasks that have not been read yet go first: the pass will read this
  // one in its turn. A shelf that is low takes it at once, for the sake of
  // speed.
  if (!shelf->complete() && shelf->size() >= kLowWater) {
    shelf->Reread(offer.task.run_us);
    return false;
  }
  if (size_ >= max_tasks_ && !MakeRoom(*shelf)) {
    shelf->Reread(offer.task.run_us);
    return false;
  }
  Insert(*shelf, offer.task, std::move(offer.spec));
  return true;
}

bool ReadyIndex::Low(const ReadyShelf& shelf, int64_t now_us) {
  return shelf.size() < kLowWater || shelf.Head()->first.first > now_us;
}

bool ReadyIndex::Insert(ReadyShelf& shelf, const ReadyTask& task,
                        std::unique_ptr<TaskSpec> spec) {
  size_t bytes = 0;
  if (spec != nullptr) {
    bytes = kSpecOverheadBytes + spec->payload.bytes.size();
    if (spec_bytes_ + bytes > max_spec_bytes_) {
      spec.reset();
      bytes = 0;
    }
  }
  if (!shelf.Add(task, std::move(spec), bytes)) return false;
  ++size_;
  spec_bytes_ += bytes;
  return true;
}

// Makes the fullest shelf forget half of its tasks, unless that is the one that
// wants more.
bool ReadyIndex::MakeRoom(const ReadyShelf& for_shelf) {
  ReadyShelf* fullest = nullptr;
  for (auto& [lane, shelves] : lanes_) {
    for (ReadyShelf& shelf : shelves->shelves) {
      if (fullest == nullptr || shelf.size() > fullest->size()) {
        fullest = &shelf;
      }
    }
  }
  if (fullest == nullptr || fullest->size() <= for_shelf.size()) return false;
  fullest->DropLaterHalf([this](const auto& entry) { Forget(entry); });
  return true;
}

void ReadyIndex::Forget(const ReadyShelf::Entry& entry) {
  --size_;
  spec_bytes_ -= entry.spec_bytes;
}

ReadyShelf* ReadyIndex::FindShelf(LaneId lane, int priority) {
  const auto it = lanes_.find(lane);
  if (it == lanes_.end()) return nullptr;
  return &it->second->shelves[std::clamp(priority, 0, kMaxPriority)];
}

std::vector<ReadyIndex::Taken> ReadyIndex::Take(Placement& placement,
                                                size_t limit) {
  const int64_t now_us = clock_.NowUs();
  std::vector<Taken> taken;
  std::lock_guard lock(mutex_);
  // The first due task of every lane, the one to run first on top.
  using Head = std::tuple<int, int64_t, TaskId, LaneId>;
  std::priority_queue<Head, std::vector<Head>, std::greater<Head>> heads;
  const auto push_head = [&](LaneId lane, const LaneShelves& shelves) {
    for (int priority = 0; priority <= kMaxPriority; ++priority) {
      const auto* head = shelves.shelves[priority].Head();
      if (head == nullptr || head->first.first > now_us) continue;
      heads.emplace(priority, head->first.first, head->first.second, lane);
      return;
    }
  };
  for (const LaneId lane : placement.Lanes()) {
    const auto it = lanes_.find(lane);
    if (it != lanes_.end()) push_head(lane, *it->second);
  }
  while (taken.size() < limit && !heads.empty()) {
    const auto [priority, run_us, id, lane] = heads.top();
    heads.pop();
    const std::optional<size_t> session = placement.Place(lane);
    if (!session.has_value()) continue;  // The lane's sessions are full.
    LaneShelves& shelves = *lanes_[lane];
    auto [key, entry] = shelves.shelves[priority].TakeHead();
    Forget(entry);
    taken.push_back({.task = {.id = id,
                              .lane_id = lane,
                              .priority = priority,
                              .run_us = run_us,
                              .lease_number = entry.lease_number,
                              .attempt = entry.attempt},
                     .spec = std::move(entry.spec),
                     .session = *session});
    push_head(lane, shelves);
  }
  return taken;
}

bool ReadyIndex::NothingWaits(LaneId lane) const {
  const int64_t now_us = clock_.NowUs();
  std::lock_guard lock(mutex_);
  const auto it = lanes_.find(lane);
  if (it == lanes_.end()) return false;
  for (const ReadyShelf& shelf : it->second->shelves) {
    const auto* head = shelf.Head();
    if (!shelf.complete()) return false;
    if (head != nullptr && head->first.first <= now_us) return false;
  }
  return true;
}

int64_t ReadyIndex::NextDueUs(const Placement& placement) const {
  int64_t next_us = 0;
  std::lock_guard lock(mutex_);
  for (const LaneId lane : placement.Lanes()) {
    const auto it = lanes_.find(lane);
    if (it == lanes_.end()) continue;
    for (const ReadyShelf& shelf : it->second->shelves) {
      const auto* head = shelf.Head();
      if (head == nullptr) continue;
      if (next_us == 0 || head->first.first < next_us) {
        next_us = head->first.first;
      }
    }
  }
  return next_us;
}

void ReadyIndex::NoteHeads(absl::Span<const ReadyHead> heads,
                           const Placement& placement, int64_t now_us) {
  absl::flat_hash_map<std::pair<LaneId, int>, int64_t> waiting;
  for (const ReadyHead& head : heads) {
    if (head.run_us <= now_us + kScanAheadUs) {
      waiting[{head.lane_id, head.priority}] = head.run_us;
    }
  }
  std::lock_guard lock(mutex_);
  foreign_scans_.clear();
  for (const LaneId lane : placement.Lanes()) {
    const auto it = lanes_.find(lane);
    if (it == lanes_.end()) continue;
    for (int priority = 0; priority <= kMaxPriority; ++priority) {
      ReadyShelf& shelf = it->second->shelves[priority];
      const auto head = waiting.find({lane, priority});
      if (head == waiting.end()) {
        if (shelf.empty()) shelf.MarkNothingWaiting(now_us);
        continue;
      }
      if (Foreign(shelf, head->second, now_us)) {
        foreign_scans_.push_back({lane, priority, {}, {}});
      }
      if (Low(shelf, now_us)) shelf.BeginPass(now_us);
    }
  }
}

std::vector<ReadyIndex::Scan> ReadyIndex::PlanScans(
    const Placement& placement) const {
  std::vector<Scan> scans;
  const int64_t now_us = clock_.NowUs();
  std::lock_guard lock(mutex_);
  for (const LaneId lane : placement.Lanes()) {
    const auto it = lanes_.find(lane);
    if (it == lanes_.end()) continue;
    for (int priority = 0; priority <= kMaxPriority; ++priority) {
      const ReadyShelf& shelf = it->second->shelves[priority];
      const auto after = shelf.NextPage();
      if (!after.has_value() || !Low(shelf, now_us)) continue;
      scans.push_back({lane, priority, *after, share_});
    }
  }
  return scans;
}

// Also while this replica's own tasks wait: it would be busy with them for as
// long as more come, and nobody else might serve the lane.
bool ReadyIndex::Foreign(const ReadyShelf& shelf, int64_t first_us,
                         int64_t now_us) const {
  if (share_.of <= 1) return false;
  if (shelf.empty() && !shelf.complete()) return false;  // Not read yet.
  const int64_t own_us =
      shelf.empty() ? now_us : std::min(now_us, shelf.Head()->first.first);
  return first_us <= own_us - kForeignWaitUs;
}

std::vector<ReadyIndex::Scan> ReadyIndex::TakeForeignScans() {
  std::lock_guard lock(mutex_);
  return std::exchange(foreign_scans_, {});
}

void ReadyIndex::AddForeign(const Scan& scan, const ReadyPage& page) {
  std::lock_guard lock(mutex_);
  ReadyShelf* shelf = FindShelf(scan.lane_id, scan.priority);
  if (shelf == nullptr) return;
  for (const ReadyTask& task : page.tasks) {
    if (size_ >= max_tasks_) return;
    Insert(*shelf, task, nullptr);
  }
}

void ReadyIndex::SetShare(const IdShare& share) {
  std::lock_guard lock(mutex_);
  if (share == share_) return;
  share_ = share;
  for (auto& [lane, shelves] : lanes_) {
    for (ReadyShelf& shelf : shelves->shelves) shelf.Reread(0);
  }
}

bool ReadyIndex::AddPage(const Scan& scan, ReadyPage page) {
  std::lock_guard lock(mutex_);
  ReadyShelf* shelf = FindShelf(scan.lane_id, scan.priority);
  // A page of another share says nothing about this one.
  if (shelf == nullptr || scan.share != share_) return false;
  while (size_ + page.tasks.size() > max_tasks_ && MakeRoom(*shelf)) {
  }
  bool any = false;
  for (size_t i = 0; i < page.tasks.size(); ++i) {
    // An empty shelf gets one in any case, so that no lane starves.
    if (size_ >= max_tasks_ && !shelf->empty()) {
      page.tasks.resize(i);
      page.complete = false;
      break;
    }
    any |= Insert(*shelf, page.tasks[i], nullptr);
  }
  shelf->EndPage(scan.after, page);
  return any;
}

bool ReadyIndex::TakePollRequest() {
  std::lock_guard lock(mutex_);
  return std::exchange(poll_requested_, false);
}

size_t ReadyIndex::size() const {
  std::lock_guard lock(mutex_);
  return size_;
}

size_t ReadyIndex::spec_bytes() const {
  std::lock_guard lock(mutex_);
  return spec_bytes_;
}

}  // namespace leasehold::scheduler
