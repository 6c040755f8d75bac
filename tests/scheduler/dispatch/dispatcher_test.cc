#include "scheduler/dispatch/dispatcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/scheduler/dispatch/dispatcher_fixture.h"

namespace leasehold::scheduler {
namespace {

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

}  // namespace
}  // namespace leasehold::scheduler
