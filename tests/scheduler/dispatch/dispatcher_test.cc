#include "scheduler/dispatch/dispatcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "tests/scheduler/engine/core_fixture.h"

namespace leasehold::scheduler {
namespace {

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

TEST_F(DispatcherTest, LeasesWhatWaitsToWhoHasRoom) {
  const auto ids = Store(3);
  auto target = Target(10);

  Replica replica(*this, {target});

  ASSERT_TRUE(target->got.Await(3));
  EXPECT_EQ(IdsOf(*target), ids);
  const LeaseMessage lease = target->got.All()[0];
  EXPECT_EQ(lease.lease.lease_number, 1);
  EXPECT_EQ(lease.attempt, 1);
  EXPECT_EQ(lease.max_attempts, kDefaultMaxAttempts);
  EXPECT_EQ(lease.spec.payload.bytes, "1");
}

TEST_F(DispatcherTest, LeasesEveryTaskExactlyOnceOverTwoReplicas) {
  const auto ids = Store(5'000);
  auto one = Target(5'000, 1);
  auto two = Target(5'000, 2);

  Replica first(*this, {one});
  Replica second(*this, {two});

  ASSERT_TRUE(
      WaitFor([&] { return one->got.size() + two->got.size() >= ids.size(); }));
  std::multiset<TaskId> got;
  for (const TaskId id : IdsOf(*one)) got.insert(id);
  for (const TaskId id : IdsOf(*two)) got.insert(id);
  EXPECT_EQ(got, std::multiset<TaskId>(ids.begin(), ids.end()));
}

TEST_F(DispatcherTest, AClaimThatLosesDropsTheEntry) {
  auto target = Target(10);
  Replica replica(*this, {target});
  ASSERT_TRUE(WaitFor(
      [&] { return store_.CallsOf(StoreMethod::kListReadyHeads) > 0; }));
  store_.CloseGate(Role::kClaim);
  const TaskId id = Store(1)[0];
  OfferedTask stale;
  stale.task.id = id;
  stale.task.lane_id = lane_;
  stale.task.priority = 5;
  stale.task.run_us = store_.LiveRow(id)->run_us;
  stale.task.lease_number = 7;  // As nobody has leased it.
  std::vector<OfferedTask> offers;
  offers.push_back(std::move(stale));
  replica.dispatcher.index().Offer(std::move(offers));
  store_.OpenGate(Role::kClaim);

  // Read again from the database, it is leased as what it is.
  ASSERT_TRUE(target->got.Await(1));
  EXPECT_EQ(target->got.All()[0].lease.lease_number, 1);
}

TEST_F(DispatcherTest, AFailedClaimKeepsTheTasks) {
  store_.FailNext(StoreMethod::kClaimLeases, 1, absl::UnavailableError("away"));
  const auto ids = Store(3);
  auto target = Target(10);

  Replica replica(*this, {target});

  ASSERT_TRUE(target->got.Await(3));
  EXPECT_EQ(IdsOf(*target), ids);
}

TEST_F(DispatcherTest, ResumesWhenTheDatabaseIsBack) {
  auto target = Target(10);
  Replica replica(*this, {target});
  store_.SetReachable(false);
  const int before = store_.CallsOf(StoreMethod::kListReadyHeads);
  ASSERT_TRUE(WaitFor([&] {
    return store_.CallsOf(StoreMethod::kListReadyHeads) > before + 1;
  }));

  store_.SetReachable(true);
  Store(2);

  EXPECT_TRUE(target->got.Await(2));
}

TEST_F(DispatcherTest, LeasesOfASessionThatEndedGoBackUncharged) {
  auto target = Target(10);
  target->ended = true;
  const TaskId id = Store(1)[0];

  Replica replica(*this, {target});

  // One look: it is leased again soon.
  LiveTask row;
  ASSERT_TRUE(WaitFor([&] {
    row = *store_.LiveRow(id);
    return row.lease_number > 0 && row.phase == Phase::kWaiting;
  }));
  EXPECT_EQ(row.attempt, 0);
  target->ended = false;
  EXPECT_TRUE(target->got.Await(1));
}

TEST_F(DispatcherTest, UnsentLeasesGoBackThoughTheFirstTryFails) {
  auto target = Target(10);
  target->ended = true;
  store_.FailNext(StoreMethod::kChangeTasks, 1, absl::AbortedError("deadlock"));
  const TaskId id = Store(1)[0];

  Replica replica(*this, {target});
  ASSERT_TRUE(
      WaitFor([&] { return store_.CallsOf(StoreMethod::kChangeTasks) >= 2; }));
  target->ended = false;

  ASSERT_TRUE(target->got.Await(1));
  EXPECT_EQ(target->got.All()[0].attempt, 1);
  EXPECT_EQ(store_.LiveRow(id)->attempt, 1);
}

TEST_F(DispatcherTest, LeasesWhoseBodiesCannotBeReadGoBackUncharged) {
  store_.FailNext(StoreMethod::kLoadLeaseBodies, 1,
                  absl::UnavailableError("away"));
  Store(1);
  auto target = Target(10);

  Replica replica(*this, {target});

  ASSERT_TRUE(target->got.Await(1));
  const LeaseMessage lease = target->got.All()[0];
  EXPECT_EQ(lease.lease.lease_number, 2);
  EXPECT_EQ(lease.attempt, 1);
}

TEST_F(DispatcherTest, BodiesThatCannotBeReadAreNotClaimedInCircles) {
  store_.FailNext(StoreMethod::kLoadLeaseBodies, 1'000'000,
                  absl::AbortedError("deadlock"));
  Store(1);
  auto target = Target(10);
  Replica replica(*this, {target});

  ASSERT_TRUE(WaitFor(
      [&] { return store_.CallsOf(StoreMethod::kListReadyHeads) >= 3; }));

  EXPECT_LE(store_.CallsOf(StoreMethod::kClaimLeases), 10);
}

TEST_F(DispatcherTest, APausedQueueLeasesNothingUntilItIsResumed) {
  QueueRow queue;
  queue.name = "q";
  queue.paused = true;
  store_.PutQueue(queue);
  ASSERT_TRUE(lanes_.RefreshQueues().ok());
  Store(2);
  auto target = Target(10);
  Replica replica(*this, {target});
  ASSERT_TRUE(WaitFor(
      [&] { return store_.CallsOf(StoreMethod::kListReadyHeads) >= 2; }));
  EXPECT_EQ(store_.CallsOf(StoreMethod::kClaimLeases), 0);

  queue.paused = false;
  store_.PutQueue(queue);
  ASSERT_TRUE(lanes_.RefreshQueues().ok());

  EXPECT_TRUE(target->got.Await(2));
}

TEST_F(DispatcherTest, AnIdleDispatcherPollsOnceASecond) {
  auto target = Target(10);
  Replica replica(*this, {target});
  const auto begin = std::chrono::steady_clock::now();

  ASSERT_TRUE(WaitFor(
      [&] { return store_.CallsOf(StoreMethod::kListReadyHeads) >= 3; }));

  EXPECT_GE(std::chrono::steady_clock::now() - begin,
            std::chrono::milliseconds(1'500));
  EXPECT_LE(store_.CallsOf(StoreMethod::kScanReady), 3);
  EXPECT_EQ(store_.CallsOf(StoreMethod::kClaimLeases), 0);
}

TEST_F(DispatcherTest, WithoutRoomItDoesNotAskForTasks) {
  Store(5);
  auto target = Target(0);
  Replica replica(*this, {target});

  ASSERT_TRUE(WaitFor(
      [&] { return store_.CallsOf(StoreMethod::kListReadyHeads) >= 2; }));

  EXPECT_EQ(store_.CallsOf(StoreMethod::kScanReady), 0);
  EXPECT_EQ(store_.CallsOf(StoreMethod::kClaimLeases), 0);
}

TEST_F(DispatcherTest, ADelayedTaskIsLeasedOnTimeAndNotBefore) {
  auto target = Target(10);
  Replica replica(*this, {target});
  TaskSpec spec = MakeSpec();
  spec.schedule_us = store_.NowUs().value() + 1'300'000;
  Store(1, spec);

  ASSERT_TRUE(target->got.Await(1));

  const int64_t late_us = store_.NowUs().value() - spec.schedule_us;
  EXPECT_GE(late_us, 0);
  EXPECT_LE(late_us, 700'000);
}

TEST_F(DispatcherTest, LanesThatNobodyServesAreNotLeased) {
  auto target = Target(10);
  TaskSpec other = MakeSpec();
  other.type = "nobody";
  std::vector<NewTask> call(1);
  call[0].id = store_.ReserveIds(1).value();
  call[0].lane_id = lanes_.Intern({LaneName("q", "nobody")}).value()[0];
  call[0].spec = other;
  ASSERT_TRUE(store_.SubmitTasks({call}).ok());
  const auto ids = Store(1);

  Replica replica(*this, {target});

  ASSERT_TRUE(target->got.Await(1));
  ASSERT_TRUE(WaitFor(
      [&] { return store_.CallsOf(StoreMethod::kListReadyHeads) >= 2; }));
  EXPECT_EQ(IdsOf(*target), ids);
}

TEST_F(DispatcherTest, NobodyGetsMoreThanItsRoom) {
  Store(10);
  auto small = Target(3, 1);
  auto full = Target(0, 2);

  Replica replica(*this, {small, full});

  ASSERT_TRUE(small->got.Await(3));
  ASSERT_TRUE(WaitFor(
      [&] { return store_.CallsOf(StoreMethod::kListReadyHeads) >= 2; }));
  EXPECT_EQ(small->got.size(), 3u);
  EXPECT_EQ(full->got.size(), 0u);
}

TEST_F(DispatcherTest, LargeBodiesComeFromTheStoreInParts) {
  TaskSpec spec = MakeSpec(std::string(1 << 20, 'x'));
  const auto ids = Store(20, spec);
  auto target = Target(100);

  Replica replica(*this, {target});

  ASSERT_TRUE(target->got.Await(20));
  for (const auto& lease : target->got.All()) {
    EXPECT_EQ(lease.spec.payload.bytes.size(), 1u << 20);
  }
  EXPECT_GE(store_.CallsOf(StoreMethod::kLoadLeaseBodies), 2);
}

TEST_F(DispatcherTest, AnOfferWithItsBodyIsNotReadFromTheStore) {
  auto target = Target(10);
  Replica replica(*this, {target});
  ASSERT_TRUE(WaitFor(
      [&] { return store_.CallsOf(StoreMethod::kListReadyHeads) > 0; }));
  const TaskId id = Store(1)[0];
  OfferedTask offer;
  offer.task.id = id;
  offer.task.lane_id = lane_;
  offer.task.priority = 5;
  offer.task.run_us = store_.LiveRow(id)->run_us;
  offer.spec = std::make_unique<TaskSpec>(MakeSpec());
  std::vector<OfferedTask> offers;
  offers.push_back(std::move(offer));

  replica.dispatcher.index().Offer(std::move(offers));

  ASSERT_TRUE(target->got.Await(1));
  EXPECT_EQ(store_.CallsOf(StoreMethod::kLoadLeaseBodies), 0);
}

TEST_F(DispatcherTest, TheFirstLeaseLastsNoLongerThanTheAcceptTimeout) {
  const TaskId id = Store(1)[0];
  auto target = Target(10);

  Replica replica(*this, {target});

  ASSERT_TRUE(target->got.Await(1));
  const LiveTask row = *store_.LiveRow(id);
  EXPECT_EQ(row.lease_expire_us - row.state_us, 10'000'000);
  EXPECT_EQ(target->got.All()[0].lease_duration_us, 15'000'000);
}

TEST_F(DispatcherTest, RoomThatSomebodyElseTookLeavesTheTaskWaiting) {
  auto target = Target(1);
  target->reservable = 0;
  const TaskId id = Store(1)[0];
  Replica replica(*this, {target});
  ASSERT_TRUE(WaitFor([&] { return target->refused > 0; }));
  EXPECT_EQ(store_.LiveRow(id)->phase, Phase::kWaiting);

  target->reservable = 1;
  replica.dispatcher.Wake();

  EXPECT_TRUE(target->got.Await(1));
}

// What a submit does that leases at once.
class DirectLeasesTest : public DispatcherTest {
 protected:
  // A replica that has seen that nothing waits.
  std::unique_ptr<Replica> Seen(std::vector<std::shared_ptr<FakeTarget>> t) {
    auto replica = std::make_unique<Replica>(*this, std::move(t));
    EXPECT_TRUE(WaitFor(
        [&] { return replica->dispatcher.index().NothingWaits(lane_); }));
    return replica;
  }
  static TaskSpec Spec() {
    TaskSpec spec = MakeSpec();
    spec.queue = "q";
    spec.type = "t";
    spec.priority = 5;
    return spec;
  }
};

TEST_F(DirectLeasesTest, SendsWhatWasCommittedUnderTheFirstLease) {
  auto target = Target(2, 7);
  auto replica = Seen({target});
  auto batch = replica->dispatcher.direct_leases().Begin();
  ASSERT_NE(batch, nullptr);

  const auto lease = batch->Reserve(lane_, Spec());
  ASSERT_TRUE(lease.has_value());
  EXPECT_EQ(lease->holder, 7u);
  EXPECT_EQ(lease->lease_us, 10'000'000);
  batch->Commit(*lease, 42, lane_, Spec());
  EXPECT_EQ(target->got.size(), 0u);
  batch->Send();

  ASSERT_EQ(target->got.size(), 1u);
  const LeaseMessage sent = target->got.All()[0];
  EXPECT_EQ(sent.lease, (LeaseRef{42, 1}));
  EXPECT_EQ(sent.attempt, 1);
  EXPECT_EQ(sent.spec.payload.bytes, "1");
  EXPECT_EQ(target->GetRoom().free_slots, 1);
}

TEST_F(DirectLeasesTest, GivesNoMoreThanThereIsRoomFor) {
  auto target = Target(2);
  auto replica = Seen({target});
  auto batch = replica->dispatcher.direct_leases().Begin();
  ASSERT_NE(batch, nullptr);

  const auto first = batch->Reserve(lane_, Spec());
  EXPECT_TRUE(first.has_value());
  EXPECT_TRUE(batch->Reserve(lane_, Spec()).has_value());
  EXPECT_FALSE(batch->Reserve(lane_, Spec()).has_value());
  EXPECT_EQ(replica->dispatcher.direct_leases().Begin(), nullptr);
  batch->Cancel(*first);

  EXPECT_EQ(target->GetRoom().free_slots, 1);
}

TEST_F(DirectLeasesTest, NothingOvertakesWhatWaitsForTheSameExecutor) {
  const LaneId other = lanes_.Intern({LaneName("q", "u")}).value()[0];
  const std::vector<LaneId> both = {lane_, other};
  auto target = std::make_shared<FakeTarget>(1, both, 2);
  DbClock clock(Clock::Real(), store_.NowUs().value());
  ReadyIndex index(clock, 1'000, 1 << 20, [] {});
  LeaseBuilder builder(store_, lanes_);
  DirectLeases leases(
      index, lanes_, builder, [&] { return Dispatcher::Targets{target}; },
      [](auto) {}, metrics_);
  index.Serve(both);
  Placement room;
  room.AddSession(2, 2, both);
  index.NoteHeads({}, room, clock.NowUs());
  auto batch = leases.Begin();
  ASSERT_NE(batch, nullptr);
  EXPECT_TRUE(batch->Reserve(other, Spec()).has_value());

  OfferedTask offer;
  offer.task.id = 1;
  offer.task.lane_id = lane_;
  offer.task.priority = 9;
  offer.task.run_us = clock.NowUs();
  std::vector<OfferedTask> offers;
  offers.push_back(std::move(offer));
  index.Offer(std::move(offers));

  EXPECT_EQ(leases.Begin(), nullptr);
}

TEST_F(DirectLeasesTest, LaterTasksAndPausedQueuesAreNotLeased) {
  auto target = Target(2);
  auto replica = Seen({target});
  auto batch = replica->dispatcher.direct_leases().Begin();
  ASSERT_NE(batch, nullptr);
  TaskSpec later = Spec();
  later.schedule_us = 1;
  EXPECT_FALSE(batch->Reserve(lane_, later).has_value());

  QueueRow queue;
  queue.name = "q";
  queue.paused = true;
  store_.PutQueue(queue);
  ASSERT_TRUE(lanes_.RefreshQueues().ok());
  batch = replica->dispatcher.direct_leases().Begin();
  EXPECT_TRUE(batch == nullptr || !batch->Reserve(lane_, Spec()).has_value());
}

TEST_F(DirectLeasesTest, LeasesOfASessionThatEndedGoBackUncharged) {
  auto target = Target(2);
  auto replica = Seen({target});
  auto batch = replica->dispatcher.direct_leases().Begin();
  ASSERT_NE(batch, nullptr);
  const auto lease = batch->Reserve(lane_, Spec());
  ASSERT_TRUE(lease.has_value());
  NewTask task;
  task.id = store_.ReserveIds(1).value();
  task.lane_id = lane_;
  task.spec = Spec();
  task.holder = lease->holder;
  task.lease_us = lease->lease_us;
  ASSERT_TRUE(store_.SubmitTasks({{task}}).ok());
  batch->Commit(*lease, task.id, lane_, Spec());
  target->ended = true;

  batch->Send();

  LiveTask row;
  ASSERT_TRUE(WaitFor([&] {
    row = *store_.LiveRow(task.id);
    return row.phase == Phase::kWaiting;
  }));
  EXPECT_EQ(row.attempt, 0);
  target->ended = false;
  EXPECT_TRUE(target->got.Await(1));
}

}  // namespace
}  // namespace leasehold::scheduler
