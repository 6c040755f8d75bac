#include "scheduler/engine/update_writer.h"

#include <utility>

#include "common/concurrency/thread_pool.h"
#include "common/logging/rate_limited_log.h"

namespace leasehold::scheduler {
namespace {

constexpr size_t kMaxWaitingBytes = 64u << 20;
constexpr size_t kUpdateOverheadBytes = 256;
constexpr size_t kUpdatesPerWrite = 200;
constexpr absl::Duration kWriteLimit = absl::Seconds(30);

size_t WeightOf(const LeaseUpdate& update) {
  return kUpdateOverheadBytes +
         (update.checkpoint.has_value() ? update.checkpoint->size() : 0);
}

// What the newer update leaves as it is stays as the older one has it.
void Merge(const LeaseUpdate& older, LeaseUpdate* newer) {
  if (!newer->progress.has_value()) newer->progress = older.progress;
  if (!newer->checkpoint.has_value()) newer->checkpoint = older.checkpoint;
}

}  // namespace

UpdateWriter::UpdateWriter(
    TaskStore& store, std::function<void(absl::Span<const TaskId>)> written,
    const Clock& clock)
    : store_(store),
      written_(std::move(written)),
      probe_("updates", kWriteLimit, clock),
      thread_([this] { Run(); }) {}

void UpdateWriter::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void UpdateWriter::Write(std::vector<LeaseUpdate> updates) {
  {
    std::lock_guard lock(mutex_);
    if (stopped_) return;
    for (LeaseUpdate& update : updates) {
      // What it replaces makes room for it.
      const auto older = waiting_.find(update.lease);
      if (older != waiting_.end()) Merge(older->second, &update);
      const size_t freed =
          older != waiting_.end() ? WeightOf(older->second) : 0;
      const size_t weight = WeightOf(update);
      if (waiting_bytes_ - freed + weight > kMaxWaitingBytes) continue;
      waiting_bytes_ += weight - freed;
      waiting_[update.lease] = std::move(update);
    }
  }
  changed_.notify_one();
}

void UpdateWriter::Run() {
  NameThisThread("updates");
  while (true) {
    absl::flat_hash_map<LeaseRef, LeaseUpdate> updates;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopped_ || !waiting_.empty(); });
      if (waiting_.empty()) return;  // Stopped, and everything is written.
      updates = std::exchange(waiting_, {});
      waiting_bytes_ = 0;
    }
    LoopProbe::Round round(probe_);
    WriteAll(std::move(updates));
  }
}

void UpdateWriter::WriteAll(
    absl::flat_hash_map<LeaseRef, LeaseUpdate>&& updates) {
  std::vector<LeaseUpdate> some;
  std::vector<TaskId> ids;
  const auto flush = [&] {
    if (some.empty()) return;
    const absl::Status status = store_.SaveLeaseUpdates(some);
    if (status.ok()) {
      written_(ids);
    } else {
      static RateLimitedLog log;
      log.Warning("progress not stored, waiting for the next heartbeat",
                  {{"leases", some.size()}, {"error", status}});
    }
    some.clear();
    ids.clear();
  };
  for (auto& [lease, update] : updates) {
    ids.push_back(lease.task_id);
    some.push_back(std::move(update));
    if (some.size() >= kUpdatesPerWrite) flush();
  }
  flush();
}

}  // namespace leasehold::scheduler
