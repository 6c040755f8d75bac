// The tasks that wait, as far as this replica remembers them: per lane and
// priority, by due time, then id. Filled by submits and retries of this
// replica, and by scans of the database. Never the truth: a claim that fails
// drops the entry.
#ifndef SCHEDULER_DISPATCH_READY_INDEX_H_
#define SCHEDULER_DISPATCH_READY_INDEX_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "scheduler/dispatch/placement.h"
#include "scheduler/dispatch/ready_shelf.h"
#include "scheduler/domain/limits.h"
#include "scheduler/engine/change_listener.h"
#include "scheduler/engine/db_clock.h"
#include "scheduler/engine/ready_feed.h"

namespace leasehold::scheduler {

// Longer than the pause between two polls of the heads, so that the replica
// whose share it is has had its chance.
inline constexpr int64_t kForeignWaitUs = 2'000'000;

// Thread-safe. Only lanes that a session of this replica serves are kept.
class ReadyIndex : public ReadyFeed, public ChangeListener {
 public:
  // Holds at most `max_tasks`, and payloads of at most `max_spec_bytes`; tasks
  // beyond that are kept without their payload, or read again later. `wake` is
  // called, without locks, when something came that may be leased.
  ReadyIndex(const DbClock& clock, size_t max_tasks, size_t max_spec_bytes,
             std::function<void()> wake);

  // A session that serves `lanes` came or went.
  void Serve(absl::Span<const LaneId> lanes);
  void Unserve(absl::Span<const LaneId> lanes);

  void Offer(std::vector<OfferedTask> tasks) override;
  // Tasks that wait again.
  void OnChanged(absl::Span<const CommittedChange> changes) override;

  struct Taken {
    ReadyTask task;
    std::unique_ptr<TaskSpec> spec;  // May be null.
    size_t session = 0;              // Index in the placement.
  };
  // Takes up to `limit` due tasks that `placement` has room for: over all its
  // lanes lowest priority number first, then longest due.
  std::vector<Taken> Take(Placement& placement, size_t limit);

  // Nothing of the lane is due, as far as this replica can know.
  bool NothingWaits(LaneId lane) const;

  // When the next task of the placement's lanes becomes due; 0 if none is
  // known.
  int64_t NextDueUs(const Placement& placement) const;

  // Which ids this replica reads; another share than before starts every shelf
  // over. What this replica stores itself it leases whatever the id.
  void SetShare(const IdShare& share);

  struct Scan {
    LaneId lane_id = 0;
    int priority = 0;
    ReadyShelf::Cursor after;
    IdShare share;
  };
  // The database has nothing waiting but `heads`, as of `now_us`. Starts passes
  // over those shelves of the placement's lanes that are low and may lack
  // something.
  void NoteHeads(absl::Span<const ReadyHead> heads, const Placement& placement,
                 int64_t now_us);
  // Shelves where something of others' share has been due for kForeignWaitUs
  // longer than what this replica is at: whoever it belongs to is gone, full,
  // slower, or has no executor for it. Read a page up to kForeignWaitUs ago and
  // give it to AddForeign. Each is named once after a NoteHeads.
  std::vector<Scan> TakeForeignScans();
  void AddForeign(const Scan& scan, const ReadyPage& page);
  // Pages to read now: of shelves of the placement's lanes that are in the
  // middle of a pass and low.
  std::vector<Scan> PlanScans(const Placement& placement) const;
  // What does not fit is left for the next page. True if anything was new.
  bool AddPage(const Scan& scan, ReadyPage page);

  // True once after a lane came to be served: the heads should be read now.
  bool TakePollRequest();

  size_t size() const;
  size_t spec_bytes() const;

 private:
  struct LaneShelves {
    int sessions = 0;
    std::array<ReadyShelf, kMaxPriority + 1> shelves;
  };

  bool AddLocked(OfferedTask task);
  // False if it was there already.
  bool Insert(ReadyShelf& shelf, const ReadyTask& task,
              std::unique_ptr<TaskSpec> spec);
  bool MakeRoom(const ReadyShelf& for_shelf);
  void Forget(const ReadyShelf::Entry& entry);
  ReadyShelf* FindShelf(LaneId lane, int priority);
  // Whether the shelf's first waiting task in the database, due at `first_us`,
  // is one that this replica should help with.
  bool Foreign(const ReadyShelf& shelf, int64_t first_us, int64_t now_us) const;
  static bool Low(const ReadyShelf& shelf, int64_t now_us);

  const DbClock& clock_;
  const size_t max_tasks_;
  const size_t max_spec_bytes_;
  const std::function<void()> wake_;
  mutable std::mutex mutex_;
  absl::flat_hash_map<LaneId, std::unique_ptr<LaneShelves>> lanes_;
  IdShare share_;
  std::vector<Scan> foreign_scans_;
  size_t size_ = 0;
  size_t spec_bytes_ = 0;
  bool poll_requested_ = true;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_DISPATCH_READY_INDEX_H_
