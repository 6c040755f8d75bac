#include "scheduler/dispatch/direct_leases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scheduler/dispatch/dispatcher_fixture.h"

namespace leasehold::scheduler {
namespace {

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
