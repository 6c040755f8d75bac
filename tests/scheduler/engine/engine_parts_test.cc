// The small parts: database clock, lane directory, loop probe, renewer, update
// writer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "scheduler/engine/lease_renewer.h"
#include "scheduler/engine/loop_probe.h"
#include "scheduler/engine/update_writer.h"
#include "tests/scheduler/engine/core_fixture.h"

namespace leasehold::scheduler {
namespace {

class DbClockTest : public CoreFixture {};

TEST_F(DbClockTest, RunsOnBetweenAnswers) {
  const int64_t before = db_clock_.NowUs();
  Advance(absl::Seconds(3));
  EXPECT_EQ(db_clock_.NowUs(), before + 3'000'000);
}

TEST_F(DbClockTest, AJumpOfTheWallClockChangesNothing) {
  const int64_t before = db_clock_.NowUs();
  clock_.JumpWall(absl::Hours(-5));
  EXPECT_EQ(db_clock_.NowUs(), before);
}

TEST_F(DbClockTest, AQuickAnswerMovesIt) {
  db_clock_.Observe(clock_.SteadyNow(), 5'000'000);
  EXPECT_EQ(db_clock_.NowUs(), 5'000'000);
}

TEST_F(DbClockTest, ASlowAnswerIsIgnored) {
  const SteadyTime sent = clock_.SteadyNow();
  Advance(absl::Seconds(2));
  const int64_t before = db_clock_.NowUs();

  db_clock_.Observe(sent, 5'000'000);

  EXPECT_EQ(db_clock_.NowUs(), before);
}

TEST_F(DbClockTest, ASlowAnswerIsBetterThanAnOldOne) {
  Advance(absl::Hours(10));
  const SteadyTime sent = clock_.SteadyNow();
  Advance(absl::Seconds(2));

  db_clock_.Observe(sent, 5'000'000);

  EXPECT_EQ(db_clock_.NowUs(), 5'000'000);
}

class LaneDirectoryTest : public CoreFixture {};

TEST_F(LaneDirectoryTest, AsksTheDatabaseForNewNamesOnly) {
  const int before = store_.CallsOf(StoreMethod::kInternLanes);
  const auto ids =
      lanes_.Intern({LaneName("q", "t"), LaneName("q", "t")}).value();
  EXPECT_EQ(store_.CallsOf(StoreMethod::kInternLanes), before);
  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_EQ(*lanes_.Name(ids[0]), LaneName("q", "t"));
}

TEST_F(LaneDirectoryTest, KeepsTheOrderOfTheNames) {
  const auto ids = lanes_
                       .Intern({LaneName("z", "t"), LaneName("q", "t"),
                                LaneName("a", "t"), LaneName("z", "t")})
                       .value();
  EXPECT_EQ(ids[1], lane_);
  EXPECT_EQ(ids[0], ids[3]);
  EXPECT_EQ(*lanes_.Name(ids[2]), LaneName("a", "t"));
}

TEST_F(LaneDirectoryTest, LoadFindsWhatOthersInterned) {
  const LaneId id = store_.InternLanes({{"x", "y"}}).value()[0];
  EXPECT_EQ(lanes_.Name(id), nullptr);
  ASSERT_TRUE(lanes_.Load().ok());
  EXPECT_EQ(*lanes_.Name(id), LaneName("x", "y"));
}

TEST_F(LaneDirectoryTest, QueuesOverrideTheDefaults) {
  QueueRow queue;
  queue.name = "q";
  queue.paused = true;
  queue.lease_duration_us = 4'000'000;
  queue.attempt_timeout_us = 7'000'000;
  store_.PutQueue(queue);
  ASSERT_TRUE(lanes_.RefreshQueues().ok());

  const QueueSettings settings = lanes_.Settings("q");
  EXPECT_TRUE(lanes_.Paused(lane_));
  EXPECT_EQ(settings.first_lease_us, 4'000'000);
  EXPECT_EQ(settings.attempt_timeout_us, 7'000'000);
  EXPECT_EQ(lanes_.Settings("other").lease_duration_us, 15'000'000);
  EXPECT_EQ(lanes_.Settings("other").first_lease_us, 10'000'000);
  EXPECT_EQ(lanes_.LongestLeaseUs(), 15'000'000);
}

TEST_F(LaneDirectoryTest, ARefreshThatFailedLeavesTheSettings) {
  store_.FailNext(StoreMethod::kListQueues, 1, absl::UnavailableError("away"));
  EXPECT_FALSE(lanes_.RefreshQueues().ok());
  EXPECT_EQ(lanes_.Settings("q").lease_duration_us, 15'000'000);
}

TEST(LoopProbeTest, MeasuresTheRoundUnderWay) {
  FakeClock clock(absl::UnixEpoch());
  LoopProbe probe("loop", absl::Seconds(30), clock);
  EXPECT_EQ(probe.Age(), absl::ZeroDuration());
  {
    LoopProbe::Round round(probe);
    clock.Advance(absl::Seconds(5));
    EXPECT_EQ(probe.Age(), absl::Seconds(5));
  }
  EXPECT_EQ(probe.Age(), absl::ZeroDuration());
}

class FakeRenewals : public RenewalSource {
 public:
  std::vector<Renewal> TakeRenewals() override {
    ++asked;
    std::lock_guard lock(mutex_);
    return std::exchange(renewals_, {});
  }
  void OnRenewed(
      absl::Span<const Renewal>,
      const absl::StatusOr<std::vector<RenewOutcome>>& result) override {
    results.Add(result);
  }
  void Put(const LeaseRef& lease) {
    std::lock_guard lock(mutex_);
    renewals_.emplace_back();
    renewals_.back().lease = lease;
    renewals_.back().holder = 1;
    renewals_.back().lease_us = 15'000'000;
  }

  std::atomic<int> asked = 0;
  Inbox<absl::StatusOr<std::vector<RenewOutcome>>> results;

 private:
  std::mutex mutex_;
  std::vector<Renewal> renewals_;
};

class LeaseRenewerTest : public CoreFixture {
 protected:
  ~LeaseRenewerTest() override {
    store_.OpenGate(Role::kRenew);
    if (renewer_ != nullptr) renewer_->Stop();
  }
  LeaseRenewer& Start(absl::Duration sweep) {
    renewer_ = std::make_unique<LeaseRenewer>(
        store_, sweep,
        [this] { return std::vector<std::shared_ptr<RenewalSource>>{listed_}; },
        metrics_, clock_);
    return *renewer_;
  }

  std::shared_ptr<FakeRenewals> listed_ = std::make_shared<FakeRenewals>();
  std::unique_ptr<LeaseRenewer> renewer_;
};

TEST_F(LeaseRenewerTest, RoundsOfManySessionsAreOneStatement) {
  LeaseRenewer& renewer = Start(absl::Hours(1));
  auto blocker = std::make_shared<FakeRenewals>();
  blocker->Put(Lease(StoreOne(), 1));
  store_.CloseGate(Role::kRenew);
  renewer.Renew(blocker);
  store_.AwaitBlocked(Role::kRenew, 1);
  std::vector<std::shared_ptr<FakeRenewals>> sources;
  for (int i = 0; i < 20; ++i) {
    sources.push_back(std::make_shared<FakeRenewals>());
    sources.back()->Put(i == 7 ? LeaseRef{999, 1} : Lease(StoreOne(), 1));
    renewer.Renew(sources.back());
  }
  store_.OpenGate(Role::kRenew);

  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(sources[i]->results.Await(1));
    ASSERT_EQ(sources[i]->results.All()[0]->at(0),
              i == 7 ? RenewOutcome::kLost : RenewOutcome::kRenewed);
  }
  EXPECT_EQ(store_.CallsOf(StoreMethod::kRenewLeases), 2);
}

TEST_F(LeaseRenewerTest, ASessionThatWaitsIsAskedOnce) {
  LeaseRenewer& renewer = Start(absl::Hours(1));
  auto blocker = std::make_shared<FakeRenewals>();
  blocker->Put(Lease(StoreOne(), 1));
  store_.CloseGate(Role::kRenew);
  renewer.Renew(blocker);
  store_.AwaitBlocked(Role::kRenew, 1);
  auto source = std::make_shared<FakeRenewals>();
  for (int i = 0; i < 5; ++i) renewer.Renew(source);
  store_.OpenGate(Role::kRenew);

  ASSERT_TRUE(source->results.Await(1));
  renewer.Stop();
  EXPECT_EQ(source->asked, 1);
}

TEST_F(LeaseRenewerTest, AStoreThatFailsIsPassedOn) {
  LeaseRenewer& renewer = Start(absl::Hours(1));
  store_.FailNext(StoreMethod::kRenewLeases, 1, absl::UnavailableError("away"));
  listed_->Put({1, 1});

  renewer.Renew(listed_);

  ASSERT_TRUE(listed_->results.Await(1));
  EXPECT_FALSE(listed_->results.All()[0].ok());
}

TEST_F(LeaseRenewerTest, TheSweepIsNotStarvedByHeartbeats) {
  LeaseRenewer& renewer = Start(absl::Milliseconds(20));
  auto busy = std::make_shared<FakeRenewals>();

  EXPECT_TRUE(WaitFor([&] {
    renewer.Renew(busy);
    return listed_->asked >= 3;
  }));
}

TEST_F(LeaseRenewerTest, TheSweepKeepsSessionsThatWaitUnlisted) {
  LeaseRenewer& renewer = Start(absl::Milliseconds(1));
  for (int i = 1; i <= 200; ++i) {
    auto opening = std::make_shared<FakeRenewals>();
    renewer.Renew(opening);
    ASSERT_TRUE(opening->results.Await(1)) << i;
  }
}

class UpdateWriterTest : public CoreFixture {
 protected:
  ~UpdateWriterTest() override { store_.OpenGate(Role::kControl); }
  static LeaseUpdate Update(const LeaseRef& lease, int64_t done,
                            std::string checkpoint) {
    LeaseUpdate update;
    update.lease = lease;
    update.holder = 1;
    update.progress = Progress{done, 10, ""};
    update.checkpoint = std::move(checkpoint);
    return update;
  }
  std::string CheckpointOf(TaskId id) {
    return store_.LoadLeaseBodies({id}, 1 << 20).value()[0].checkpoint;
  }

  Inbox<TaskId> written_;
  UpdateWriter writer_{store_,
                       [this](absl::Span<const TaskId> ids) {
                         for (const TaskId id : ids) written_.Add(id);
                       },
                       clock_};
};

TEST_F(UpdateWriterTest, OnlyTheLatestIsWritten) {
  const LeaseRef blocker = Lease(StoreOne(), 1);
  const LeaseRef lease = Lease(StoreOne(), 1);
  store_.CloseGate(Role::kControl);
  writer_.Write({Update(blocker, 0, "")});
  store_.AwaitBlocked(Role::kControl, 1);
  for (int i = 1; i <= 5; ++i) {
    writer_.Write({Update(lease, i, std::to_string(i))});
  }
  store_.OpenGate(Role::kControl);
  writer_.Stop();

  EXPECT_EQ(CheckpointOf(lease.task_id), "5");
  EXPECT_EQ(store_.CallsOf(StoreMethod::kSaveLeaseUpdates), 2);
  EXPECT_EQ(written_.size(), 2u);
}

TEST_F(UpdateWriterTest, AnUpdateKeepsWhatTheNextLeavesOut) {
  const LeaseRef blocker = Lease(StoreOne(), 1);
  const LeaseRef lease = Lease(StoreOne(), 1);
  store_.CloseGate(Role::kControl);
  writer_.Write({Update(blocker, 0, "")});
  store_.AwaitBlocked(Role::kControl, 1);
  writer_.Write({Update(lease, 1, "saved")});
  LeaseUpdate progress = Update(lease, 2, "");
  progress.checkpoint.reset();
  writer_.Write({progress});
  store_.OpenGate(Role::kControl);
  writer_.Stop();

  EXPECT_EQ(CheckpointOf(lease.task_id), "saved");
}

TEST_F(UpdateWriterTest, ManyUpdatesOfOneLeaseDoNotFillTheBound) {
  const LeaseRef blocker = Lease(StoreOne(), 1);
  const LeaseRef lease = Lease(StoreOne(), 1);
  store_.CloseGate(Role::kControl);
  writer_.Write({Update(blocker, 0, "")});
  store_.AwaitBlocked(Role::kControl, 1);
  for (int i = 0; i < 2'000; ++i) {  // 125 MiB in all.
    writer_.Write({Update(lease, i, std::string(64 << 10, 'x'))});
  }
  const std::string latest(64 << 10, 'y');
  writer_.Write({Update(lease, 1, latest)});
  store_.OpenGate(Role::kControl);
  writer_.Stop();

  EXPECT_TRUE(CheckpointOf(lease.task_id) == latest);
}

TEST_F(UpdateWriterTest, BeyondTheBoundUpdatesAreDropped) {
  const LeaseRef blocker = Lease(StoreOne(), 1);
  store_.CloseGate(Role::kControl);
  writer_.Write({Update(blocker, 0, "")});
  store_.AwaitBlocked(Role::kControl, 1);
  for (TaskId id = 1'000; id < 3'000; ++id) {
    writer_.Write({Update({id, 1}, 1, std::string(64 << 10, 'x'))});
  }
  store_.OpenGate(Role::kControl);
  writer_.Stop();

  EXPECT_LE(written_.size(), 1'025u);
  EXPECT_GE(written_.size(), 1'000u);
}

}  // namespace
}  // namespace leasehold::scheduler
