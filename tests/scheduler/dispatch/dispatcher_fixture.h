// A dispatcher with threads of its own over the store in memory, and executors
// that take what they are sent.
#ifndef TESTS_SCHEDULER_DISPATCH_DISPATCHER_FIXTURE_H_
#define TESTS_SCHEDULER_DISPATCH_DISPATCHER_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "scheduler/dispatch/dispatcher.h"
#include "tests/scheduler/engine/core_fixture.h"

namespace leasehold::scheduler {

class FakeTarget : public DispatchTarget {
 public:
  FakeTarget(HolderId holder, std::vector<LaneId> lanes, int max_leases)
      : holder_(holder), lanes_(std::move(lanes)), free_(max_leases) {}

  HolderId holder() const override { return holder_; }
  const std::vector<LaneId>& lanes() const override { return lanes_; }
  Room GetRoom() const override {
    return {.free_leases = free_, .free_slots = free_};
  }
  int Reserve(int leases) override {
    const int got = std::min({leases, free_.load(), reservable.load()});
    if (got < leases) ++refused;
    free_ -= got;
    return got;
  }
  void Unreserve(int leases) override { free_ += leases; }
  bool Deliver(std::vector<LeaseMessage> leases, int64_t) override {
    if (ended) {
      free_ += static_cast<int>(leases.size());
      return false;
    }
    for (LeaseMessage& lease : leases) got.Add(std::move(lease));
    return true;
  }

  Inbox<LeaseMessage> got;
  std::atomic<bool> ended = false;
  std::atomic<int> reservable = 1'000'000;  // Less: others were faster.
  std::atomic<int> refused = 0;

 private:
  const HolderId holder_;
  const std::vector<LaneId> lanes_;
  std::atomic<int> free_;
};

// Threads run, so time is real: what these tests wait for takes milliseconds.
class DispatcherTest : public ::testing::Test {
 protected:
  struct Replica {
    Replica(DispatcherTest& test, std::vector<std::shared_ptr<FakeTarget>> t)
        : clock(Clock::Real(), test.store_.NowUs().value()),
          changer(test.store_),
          targets(std::move(t)),
          dispatcher(
              test.store_, changer, test.lanes_, clock, test.bounds_,
              [this] {
                return Dispatcher::Targets(targets.begin(), targets.end());
              },
              test.metrics_) {
      changer.AddListener(&dispatcher.index());
      for (const auto& target : targets) {
        dispatcher.index().Serve(target->lanes());
      }
      dispatcher.Start();
    }

    DbClock clock;
    TaskChanger changer;
    std::vector<std::shared_ptr<FakeTarget>> targets;
    Dispatcher dispatcher;
  };

  DispatcherTest() { lane_ = lanes_.Intern({LaneName("q", "t")}).value()[0]; }

  std::shared_ptr<FakeTarget> Target(int max_leases, HolderId holder = 1) {
    return std::make_shared<FakeTarget>(holder, std::vector<LaneId>{lane_},
                                        max_leases);
  }

  std::vector<TaskId> Store(size_t count, TaskSpec spec = MakeSpec()) {
    std::vector<NewTask> call(count);
    std::vector<TaskId> ids;
    TaskId id = store_.ReserveIds(static_cast<int64_t>(count)).value();
    for (NewTask& task : call) {
      task.id = id++;
      task.lane_id = lane_;
      task.spec = spec;
      ids.push_back(task.id);
    }
    EXPECT_TRUE(store_.SubmitTasks({call}).ok());
    return ids;
  }

  static std::vector<TaskId> IdsOf(const FakeTarget& target) {
    std::vector<TaskId> ids;
    for (const auto& lease : target.got.All()) {
      ids.push_back(lease.lease.task_id);
    }
    return ids;
  }

  MemoryTaskStore store_{&Clock::Real()};
  LeaseTimes times_;
  LaneDirectory lanes_{store_, times_};
  SchedulerMetrics metrics_;
  EngineBounds bounds_;
  LaneId lane_ = 0;
};

}  // namespace leasehold::scheduler

#endif  // TESTS_SCHEDULER_DISPATCH_DISPATCHER_FIXTURE_H_
