// A ready index over the store in memory, read as the dispatcher reads it.
#ifndef TESTS_SCHEDULER_DISPATCH_READY_INDEX_FIXTURE_H_
#define TESTS_SCHEDULER_DISPATCH_READY_INDEX_FIXTURE_H_

#include <memory>
#include <utility>
#include <vector>

#include "scheduler/dispatch/ready_index.h"
#include "tests/scheduler/engine/core_fixture.h"

namespace leasehold::scheduler {

class ReadyIndexTest : public CoreFixture {
 protected:
  std::unique_ptr<ReadyIndex> NewIndex(size_t max_tasks = 100'000,
                                       size_t max_bytes = 1 << 20) {
    auto index = std::make_unique<ReadyIndex>(db_clock_, max_tasks, max_bytes,
                                              [this] { ++wakes_; });
    index->Serve({lane_});
    return index;
  }

  Placement Room(int leases = 1'000'000, std::vector<LaneId> lanes = {}) {
    Placement placement;
    if (lanes.empty()) lanes = {lane_};
    placement.AddSession(leases, leases, lanes);
    return placement;
  }

  // What a round of the dispatcher does before it takes. False: nothing new.
  bool ReadOnce(ReadyIndex& index, int page_tasks = 1'000) {
    bool any = false;
    for (const ReadyIndex::Scan& scan : index.PlanScans(room_)) {
      any |= index.AddPage(
          scan, store_
                    .ScanReady(scan.lane_id, scan.priority, scan.after.run_us,
                               scan.after.id, NowUs() + kScanAheadUs,
                               page_tasks, scan.share)
                    .value());
    }
    return any;
  }
  void Poll(ReadyIndex& index) {
    index.NoteHeads(store_.ListReadyHeads().value(), room_, NowUs());
    while (ReadOnce(index)) {
    }
  }

  std::vector<TaskId> TakeIds(ReadyIndex& index, size_t limit = 1'000'000) {
    Placement placement = room_;
    std::vector<TaskId> ids;
    for (const auto& taken : index.Take(placement, limit)) {
      ids.push_back(taken.task.id);
    }
    return ids;
  }

  OfferedTask Offered(TaskId id, int64_t run_us, LaneId lane = 0) {
    OfferedTask offer;
    offer.task.id = id;
    offer.task.lane_id = lane == 0 ? lane_ : lane;
    offer.task.priority = 5;
    offer.task.run_us = run_us;
    return offer;
  }
  void Offer(ReadyIndex& index, OfferedTask offer) {
    std::vector<OfferedTask> offers;
    offers.push_back(std::move(offer));
    index.Offer(std::move(offers));
  }
  // A row that became visible just now, whatever its run_us.
  TaskId CommitLate(int64_t run_us) {
    const TaskId id = StoreOne();
    LiveTask row = *store_.LiveRow(id);
    row.run_us = run_us;
    store_.PutLiveRow(row);
    return id;
  }

  Placement room_ = Room();
  int wakes_ = 0;
};

}  // namespace leasehold::scheduler

#endif  // TESTS_SCHEDULER_DISPATCH_READY_INDEX_FIXTURE_H_
