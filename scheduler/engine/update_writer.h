// Writes progress and checkpoints, which come with heartbeats but must never
// make a renewal wait. Only the latest of each lease counts, so what waits is
// bounded by the leases held; what cannot be written comes again with the next
// heartbeat.
#ifndef SCHEDULER_ENGINE_UPDATE_WRITER_H_
#define SCHEDULER_ENGINE_UPDATE_WRITER_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "scheduler/engine/loop_probe.h"
#include "scheduler/store/task_store.h"

namespace leasehold::scheduler {

// Thread-safe.
class UpdateWriter {
 public:
  // `written` hears of the tasks whose updates have been stored.
  UpdateWriter(TaskStore& store,
               std::function<void(absl::Span<const TaskId>)> written,
               const Clock& clock);
  ~UpdateWriter() { Stop(); }

  // Never blocks. Beyond 64 MiB of checkpoints waiting, updates are dropped;
  // the executor's next heartbeat brings newer ones.
  void Write(std::vector<LeaseUpdate> updates);

  void Stop();

  const LoopProbe& probe() const { return probe_; }

 private:
  void Run();
  void WriteAll(absl::flat_hash_map<LeaseRef, LeaseUpdate>&& updates);

  TaskStore& store_;
  const std::function<void(absl::Span<const TaskId>)> written_;
  LoopProbe probe_;
  std::mutex mutex_;
  std::condition_variable changed_;
  absl::flat_hash_map<LeaseRef, LeaseUpdate> waiting_;
  size_t waiting_bytes_ = 0;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_ENGINE_UPDATE_WRITER_H_
