#include "scheduler/maintenance/lease_reaper.h"

#include <gtest/gtest.h>

#include "scheduler/maintenance/deadline_patrol.h"
#include "tests/scheduler/engine/core_fixture.h"

namespace leasehold::scheduler {
namespace {

constexpr HolderId kHolder = 1;

class LeaseReaperTest : public CoreFixture {
 protected:
  // Rounds as the loop makes them, until `time` has passed.
  void RunFor(absl::Duration time) {
    for (absl::Duration t; t < time; t += absl::Milliseconds(500)) {
      Advance(absl::Milliseconds(500));
      (void)reaper_.RunOnce();
    }
  }
  // A lease that has run out, found after the grace of the start.
  TaskId ExpiredTask(bool started) {
    RunFor(absl::Seconds(16));
    const TaskId id = StoreOne();
    const LeaseRef lease = Lease(id, kHolder);
    if (started) Run(lease, kHolder);
    RunFor(absl::Seconds(16));
    return id;
  }

  bool heard_ = true;
  LeaseReaper reaper_{{},
                      store_,
                      changer_,
                      lanes_,
                      [this](HolderId, int64_t) { return heard_; },
                      metrics_,
                      clock_};
};

TEST_F(LeaseReaperTest, TakesBackAnExpiredLease) {
  const TaskId id = ExpiredTask(/*started=*/true);

  const LiveTask row = *store_.LiveRow(id);
  EXPECT_EQ(row.phase, Phase::kWaiting);
  EXPECT_EQ(row.state, TaskState::kRetrying);
  EXPECT_EQ(row.lease_end, LeaseEnd::kExpired);
  EXPECT_EQ(row.attempt, 1);
  EXPECT_EQ(store_.AttemptRows(id).size(), 1u);
}

TEST_F(LeaseReaperTest, LeavesARenewedLeaseAlone) {
  RunFor(absl::Seconds(16));
  const TaskId id = StoreOne();
  const LeaseRef lease = Lease(id, kHolder);
  for (int i = 0; i < 6; ++i) {
    Run(lease, kHolder);
    RunFor(absl::Seconds(5));
  }

  EXPECT_EQ(store_.LiveRow(id)->phase, Phase::kLeased);
}

TEST_F(LeaseReaperTest, AfterTheStartNothingIsTakenForOneLease) {
  const TaskId id = StoreOne();
  Lease(id, kHolder, absl::Seconds(1));

  RunFor(absl::Milliseconds(14'500));
  EXPECT_EQ(store_.LiveRow(id)->phase, Phase::kLeased);

  RunFor(absl::Seconds(1));
  EXPECT_EQ(store_.LiveRow(id)->phase, Phase::kWaiting);
}

TEST_F(LeaseReaperTest, GraceLastsAsLongAsTheLongestLeaseOfAnyQueue) {
  QueueRow queue;
  queue.name = "slow";
  queue.lease_duration_us = 60'000'000;
  store_.PutQueue(queue);
  ASSERT_TRUE(lanes_.RefreshQueues().ok());
  const TaskId id = StoreOne();
  Lease(id, kHolder, absl::Seconds(1));

  RunFor(absl::Seconds(59));
  EXPECT_EQ(store_.LiveRow(id)->phase, Phase::kLeased);
}

TEST_F(LeaseReaperTest, AfterAnOutageNothingIsTakenForOneLease) {
  RunFor(absl::Seconds(16));
  const TaskId id = StoreOne();
  Lease(id, kHolder, absl::Seconds(5));
  store_.SetReachable(false);
  RunFor(absl::Seconds(10));
  EXPECT_FALSE(reaper_.database_up());
  store_.SetReachable(true);

  RunFor(absl::Seconds(14));
  EXPECT_TRUE(reaper_.database_up());
  EXPECT_EQ(store_.LiveRow(id)->phase, Phase::kLeased);

  RunFor(absl::Seconds(2));
  EXPECT_EQ(store_.LiveRow(id)->phase, Phase::kWaiting);
}

TEST_F(LeaseReaperTest, AStandstillOfTheProcessCountsAsAnOutage) {
  RunFor(absl::Seconds(16));
  const TaskId id = StoreOne();
  Lease(id, kHolder, absl::Seconds(5));

  Advance(absl::Seconds(60));  // Stopped, then continued.
  ASSERT_TRUE(reaper_.RunOnce().ok());

  EXPECT_EQ(store_.LiveRow(id)->phase, Phase::kLeased);
}

TEST_F(LeaseReaperTest, ASlowRoundTakesNothingItself) {
  RunFor(absl::Seconds(16));
  const TaskId id = StoreOne();
  Lease(id, kHolder, absl::Seconds(5));
  RunFor(absl::Seconds(4));
  store_.CloseGate(Role::kFinish);

  std::thread round([this] { EXPECT_TRUE(reaper_.RunOnce().ok()); });
  store_.AwaitBlocked(Role::kFinish, 1);
  Advance(absl::Seconds(20));  // Heartbeats hung as long as this read.
  store_.OpenGate(Role::kFinish);
  round.join();

  EXPECT_EQ(store_.LiveRow(id)->phase, Phase::kLeased);
  RunFor(absl::Seconds(14));
  EXPECT_EQ(store_.LiveRow(id)->phase, Phase::kLeased);
  RunFor(absl::Seconds(2));
  EXPECT_EQ(store_.LiveRow(id)->phase, Phase::kWaiting);
}

TEST_F(LeaseReaperTest, NeverStartedIsNoExpiryOfAnExecutorThatSpokeAgain) {
  heard_ = true;
  const TaskId id = ExpiredTask(/*started=*/false);

  EXPECT_EQ(store_.LiveRow(id)->attempt, 0);
  EXPECT_EQ(store_.LiveRow(id)->expiry_count, 0);
}

TEST_F(LeaseReaperTest, NeverStartedCountsWhenTheExecutorNeverSpokeAgain) {
  heard_ = false;
  const TaskId id = ExpiredTask(/*started=*/false);

  EXPECT_EQ(store_.LiveRow(id)->attempt, 0);
  EXPECT_EQ(store_.LiveRow(id)->expiry_count, 1);
}

TEST_F(LeaseReaperTest, ATaskThatKillsItsExecutorsIsPoisoned) {
  heard_ = false;
  RunFor(absl::Seconds(16));
  const TaskId id = StoreOne();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(store_.LiveRow(id).has_value());
    Lease(id, kHolder, absl::Seconds(5));
    RunFor(absl::Seconds(6));
  }

  ASSERT_TRUE(store_.EndedRow(id).has_value());
  EXPECT_EQ(store_.EndedRow(id)->reason, FailureReason::kPoisoned);
}

TEST_F(LeaseReaperTest, TakesBackMoreThanOneBatch) {
  RunFor(absl::Seconds(16));
  const auto ids = Store(std::vector<TaskSpec>(1'200, MakeSpec()));
  for (const TaskId id : ids) Lease(id, kHolder, absl::Seconds(1));

  RunFor(absl::Seconds(2));

  for (const TaskId id : ids) {
    ASSERT_EQ(store_.LiveRow(id)->phase, Phase::kWaiting);
  }
}

// Failure case 9.
TEST_F(LeaseReaperTest, TwoReplicasTakeALeaseBackOnce) {
  LeaseReaper other(
      {}, store_, changer_, lanes_, [](HolderId, int64_t) { return true; },
      metrics_, clock_);
  RunFor(absl::Milliseconds(500));
  const auto ids = Store(std::vector<TaskSpec>(500, MakeSpec()));
  for (const TaskId id : ids) {
    Run(Lease(id, kHolder, absl::Seconds(1)), kHolder, absl::Seconds(1));
  }
  for (int i = 0; i < 40; ++i) {
    Advance(absl::Milliseconds(500));
    std::thread at_once([&] { ASSERT_TRUE(other.RunOnce().ok()); });
    ASSERT_TRUE(reaper_.RunOnce().ok());
    at_once.join();
  }

  for (const TaskId id : ids) {
    const LiveTask row = *store_.LiveRow(id);
    ASSERT_EQ(row.attempt, 1);
    ASSERT_EQ(row.expiry_count, 1);
    ASSERT_EQ(row.lease_number, 1);
    ASSERT_EQ(store_.AttemptRows(id).size(), 1u);
  }
}

class DeadlinePatrolTest : public CoreFixture {
 protected:
  DeadlinePatrol patrol_{{}, store_, changer_};
};

TEST_F(DeadlinePatrolTest, EndsATaskWhoseTimeHasPassed) {
  TaskSpec spec = MakeSpec();
  spec.expire_us = NowUs() + 5'000'000;
  const TaskId id = StoreOne(spec);
  ASSERT_TRUE(patrol_.RunOnce().ok());
  EXPECT_TRUE(store_.LiveRow(id).has_value());

  Advance(absl::Seconds(5));
  ASSERT_TRUE(patrol_.RunOnce().ok());

  ASSERT_TRUE(store_.EndedRow(id).has_value());
  EXPECT_EQ(store_.EndedRow(id)->reason, FailureReason::kExpired);
}

TEST_F(DeadlinePatrolTest, EndsARunningTaskWhoseCancelDeadlineHasPassed) {
  const TaskId id = StoreOne();
  Run(Lease(id, kHolder), kHolder, absl::Seconds(100));
  LiveTask row = *store_.LiveRow(id);
  row.cancel_expire_us = NowUs() + 1'000'000;
  store_.PutLiveRow(row);

  Advance(absl::Seconds(1));
  ASSERT_TRUE(patrol_.RunOnce().ok());

  ASSERT_TRUE(store_.EndedRow(id).has_value());
  EXPECT_EQ(store_.EndedRow(id)->state, TaskState::kCancelled);
}

TEST_F(DeadlinePatrolTest, EndsMoreThanOneBatch) {
  TaskSpec spec = MakeSpec();
  spec.expire_us = NowUs() + 1;
  Store(std::vector<TaskSpec>(1'200, spec));

  Advance(absl::Seconds(1));
  ASSERT_TRUE(patrol_.RunOnce().ok());

  EXPECT_EQ(store_.live_count(), 0u);
}

TEST_F(DeadlinePatrolTest, SaysThatTheDatabaseIsAway) {
  store_.SetReachable(false);
  EXPECT_EQ(patrol_.RunOnce().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace leasehold::scheduler
