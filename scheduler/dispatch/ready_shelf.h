// The waiting tasks of one lane and priority that this replica knows of, and
// how far it has read them from the database.
//
// A shelf is filled by passes: scans of the `ready` index page by page, from a
// starting point to the present. A pass that reached the present makes the
// shelf complete: from then on what is offered directly may enter, and what
// other replicas store is found by further passes. Whatever becomes waiting
// gets the run_us of that moment or later, and commits within kLongestWriteUs;
// so a pass that starts that much before the previous one's first page misses
// nothing.
#ifndef SCHEDULER_DISPATCH_READY_SHELF_H_
#define SCHEDULER_DISPATCH_READY_SHELF_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/container/btree_map.h"
#include "scheduler/store/task_store.h"

namespace leasehold::scheduler {

inline constexpr int64_t kLongestWriteUs = 10'000'000;
// Passes read this far into the future, so that a task which becomes due
// between two polls is leased on time.
inline constexpr int64_t kScanAheadUs = 2'000'000;
// A pass from the very beginning, in case a write took longer after all.
inline constexpr int64_t kFullPassUs = 60'000'000;

// Not thread-safe.
class ReadyShelf {
 public:
  struct Cursor {  // Exclusive.
    int64_t run_us = 0;
    TaskId id = 0;
    friend bool operator==(const Cursor&, const Cursor&) = default;
  };
  struct Entry {
    int64_t lease_number = 0;
    int attempt = 0;
    std::unique_ptr<TaskSpec> spec;  // Null: read from the database.
    size_t spec_bytes = 0;
  };
  using Key = std::pair<int64_t, TaskId>;  // (run_us, id)

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  bool complete() const { return complete_; }

  // False if it is there already.
  bool Add(const ReadyTask& task, std::unique_ptr<TaskSpec> spec,
           size_t spec_bytes);

  // The first task, or null.
  const std::pair<const Key, Entry>* Head() const;
  std::pair<Key, Entry> TakeHead();

  // Removes the later half; a pass will read it again. Calls `dropped` for
  // each.
  template <typename F>
  void DropLaterHalf(F dropped) {
    auto it = entries_.begin();
    for (size_t keep = entries_.size() / 2; keep > 0; --keep) ++it;
    if (it == entries_.end()) return;
    const int64_t from_us = it->first.first;
    for (auto drop = it; drop != entries_.end(); ++drop) dropped(drop->second);
    entries_.erase(it, entries_.end());
    Reread(from_us);
  }

  // Something that belongs here was turned away: it must be read again. Moves
  // back, never forward.
  void Reread(int64_t from_us);

  // Where the next page of the current pass starts; nullopt when complete.
  std::optional<Cursor> NextPage() const;
  // Starts a pass if the shelf is complete.
  void BeginPass(int64_t now_us);
  // The page that started at `after` was read and added. Counts for nothing
  // when the shelf has since been told to read from elsewhere.
  void EndPage(const Cursor& after, const ReadyPage& page);
  // A grouped scan at `now_us` showed nothing waiting: as good as a pass.
  void MarkNothingWaiting(int64_t now_us);

 private:
  absl::btree_map<Key, Entry> entries_;
  bool complete_ = false;
  bool turned_away_ = false;  // Something was, since the latest page.
  Cursor cursor_;
  int64_t pass_started_us_ =
      0;                      // Database time of the pass's first page, or 0.
  int64_t restart_us_ = 0;    // Where the next pass starts.
  int64_t full_pass_us_ = 0;  // When the latest pass from 0 started.
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_DISPATCH_READY_SHELF_H_
