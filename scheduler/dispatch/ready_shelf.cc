#include "scheduler/dispatch/ready_shelf.h"

#include <algorithm>
#include <utility>

namespace leasehold::scheduler {

bool ReadyShelf::Add(const ReadyTask& task, std::unique_ptr<TaskSpec> spec,
                     size_t spec_bytes) {
  Entry entry{task.lease_number, task.attempt, std::move(spec), spec_bytes};
  return entries_.try_emplace(Key(task.run_us, task.id), std::move(entry))
      .second;
}

const std::pair<const ReadyShelf::Key, ReadyShelf::Entry>* ReadyShelf::Head()
    const {
  return entries_.empty() ? nullptr : &*entries_.begin();
}

std::pair<ReadyShelf::Key, ReadyShelf::Entry> ReadyShelf::TakeHead() {
  auto it = entries_.begin();
  std::pair<Key, Entry> head(it->first, std::move(it->second));
  entries_.erase(it);
  return head;
}

void ReadyShelf::Reread(int64_t from_us) {
  if (complete_) {
    complete_ = false;
    pass_started_us_ = 0;
    cursor_ = {std::min(restart_us_, from_us), 0};
    return;
  }
  turned_away_ = true;
  if (from_us < cursor_.run_us) cursor_ = {from_us, 0};
}

std::optional<ReadyShelf::Cursor> ReadyShelf::NextPage() const {
  if (complete_) return std::nullopt;
  return cursor_;
}

void ReadyShelf::BeginPass(int64_t now_us) {
  if (!complete_) return;
  if (now_us - full_pass_us_ >= kFullPassUs) restart_us_ = 0;
  complete_ = false;
  pass_started_us_ = 0;
  cursor_ = {restart_us_, 0};
}

void ReadyShelf::EndPage(const Cursor& after, const ReadyPage& page) {
  if (complete_ || !(cursor_ == after)) return;
  if (pass_started_us_ == 0) {
    pass_started_us_ = page.now_us;
    if (cursor_.run_us == 0) full_pass_us_ = page.now_us;
  }
  if (!page.tasks.empty()) {
    cursor_ = {page.tasks.back().run_us, page.tasks.back().id};
  }
  const bool turned_away = std::exchange(turned_away_, false);
  if (!page.complete || turned_away) return;
  complete_ = true;
  restart_us_ = std::max<int64_t>(0, pass_started_us_ - kLongestWriteUs);
}

void ReadyShelf::MarkNothingWaiting(int64_t now_us) {
  complete_ = true;
  restart_us_ = std::max<int64_t>(0, now_us - kLongestWriteUs);
  full_pass_us_ = now_us;
}

}  // namespace leasehold::scheduler
