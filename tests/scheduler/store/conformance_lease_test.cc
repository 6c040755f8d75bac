// Leases: renewals, starts, progress and checkpoints, expiry.
#include <algorithm>

#include "scheduler/domain/limits.h"
#include "tests/scheduler/store/task_store_conformance.h"

namespace leasehold::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

Renewal RenewalOf(const LeaseRef& lease, HolderId holder) {
  Renewal renewal;
  renewal.lease = lease;
  renewal.holder = holder;
  renewal.lease_us = 2 * kLeaseUs;
  return renewal;
}

TEST_P(TaskStoreTest, RenewsTheHoldersLease) {
  const LeaseRef lease = Claim(Submit(), 1'000'000);
  const Renewal renewal = RenewalOf(lease, Holder());

  const auto outcomes = store_.RenewLeases({&renewal, 1}).value();

  EXPECT_THAT(outcomes, ElementsAre(RenewOutcome::kRenewed));
  EXPECT_GT(Live(lease.task_id).lease_expire_us, Now() + kLeaseUs);
  EXPECT_EQ(Live(lease.task_id).state, TaskState::kDispatched);
}

TEST_P(TaskStoreTest, NeverShortensALease) {
  const LeaseRef lease = Claim(Submit(), 60'000'000);
  const int64_t before = Live(lease.task_id).lease_expire_us;
  const Renewal renewal = RenewalOf(lease, Holder());

  ASSERT_TRUE(store_.RenewLeases({&renewal, 1}).ok());

  EXPECT_EQ(Live(lease.task_id).lease_expire_us, before);
}

TEST_P(TaskStoreTest, TellsLostLeasesFromHeldOnes) {
  const LeaseRef held = Claim(Submit());
  const LeaseRef other_holder = Claim(Submit());
  const LeaseRef older = {Claim(Submit()).task_id, 0};
  const LeaseRef ended = Claim(Submit());
  Report(ended, Payload{});
  const std::vector<Renewal> renewals = {
      RenewalOf(ended, Holder()), RenewalOf(held, Holder()),
      RenewalOf(other_holder, Holder("executor-2")), RenewalOf(older, Holder()),
      RenewalOf({1'000'000, 1}, Holder())};
  const int64_t before = Live(other_holder.task_id).lease_expire_us;

  const auto outcomes = store_.RenewLeases(renewals).value();

  EXPECT_THAT(outcomes, ElementsAre(RenewOutcome::kLost, RenewOutcome::kRenewed,
                                    RenewOutcome::kLost, RenewOutcome::kLost,
                                    RenewOutcome::kLost));
  EXPECT_EQ(Live(other_holder.task_id).lease_expire_us, before);
}

TEST_P(TaskStoreTest, RenewsTheValidOneOfTwoLeasesOfATask) {
  const TaskId id = Submit();
  const LeaseRef old = Claim(id);
  Report(old, Release{ReleaseReason::kDraining, 0});
  const LeaseRef valid = Claim(id, 1'000'000);
  const std::vector<Renewal> renewals = {RenewalOf(old, Holder()),
                                         RenewalOf(valid, Holder())};

  const auto outcomes = store_.RenewLeases(renewals).value();

  EXPECT_THAT(outcomes,
              ElementsAre(RenewOutcome::kLost, RenewOutcome::kRenewed));
  EXPECT_GT(Live(id).lease_expire_us, Now() + kLeaseUs);
}

TEST_P(TaskStoreTest, WritesAStartOnce) {
  const LeaseRef lease = Claim(Submit());
  const int64_t start_us = Now();
  Renewal renewal = RenewalOf(lease, Holder());
  renewal.start_us = start_us;
  renewal.attempt_timeout_us = 5'000'000;
  ASSERT_TRUE(store_.RenewLeases({&renewal, 1}).ok());
  const LiveTask running = Live(lease.task_id);

  ASSERT_TRUE(store_.RenewLeases({&renewal, 1}).ok());

  EXPECT_EQ(running.state, TaskState::kRunning);
  EXPECT_EQ(running.start_us, start_us);
  EXPECT_EQ(running.first_start_us, start_us);
  EXPECT_EQ(running.attempt_expire_us,
            start_us + 5'000'000 + kAttemptTimeoutGraceUs);
  EXPECT_EQ(Live(lease.task_id).state_us, running.state_us);
}

TEST_P(TaskStoreTest, KeepsTheStartOfTheFirstAttempt) {
  const TaskId id = Submit();
  std::vector<int64_t> starts;
  for (int attempt = 1; attempt <= 2; ++attempt) {
    Renewal renewal = RenewalOf(Claim(id), Holder());
    renewal.start_us = Now();
    renewal.attempt_timeout_us = 5'000'000;
    starts.push_back(renewal.start_us);
    ASSERT_EQ(store_.RenewLeases({renewal}).value()[0], RenewOutcome::kRenewed);
    if (attempt == 1) {
      Report(renewal.lease, Release{ReleaseReason::kDraining, std::nullopt});
      harness_->Pass(absl::Milliseconds(2));
    }
  }

  EXPECT_EQ(Live(id).start_us, starts[1]);
  EXPECT_EQ(Live(id).first_start_us, starts[0]);
}

TEST_P(TaskStoreTest, StartsManyAtDifferentTimes) {
  std::vector<Renewal> renewals;
  const int64_t now_us = Now();
  for (const TaskId id : Submit(std::vector<TaskSpec>(120, Spec()))) {
    Renewal renewal = RenewalOf(Claim(id), Holder());
    renewal.start_us = now_us - id;
    renewal.attempt_timeout_us = 1'000'000 * id;
    renewals.push_back(renewal);
  }

  ASSERT_TRUE(store_.RenewLeases(renewals).ok());

  for (const Renewal& renewal : renewals) {
    const LiveTask task = Live(renewal.lease.task_id);
    EXPECT_EQ(task.start_us, renewal.start_us);
    EXPECT_EQ(
        task.attempt_expire_us,
        renewal.start_us + renewal.attempt_timeout_us + kAttemptTimeoutGraceUs);
  }
}

TEST_P(TaskStoreTest, DoesNotRenewPastTheAttemptsEnd) {
  const LeaseRef lease = Claim(Submit(), 1'000'000);
  Renewal start = RenewalOf(lease, Holder());
  start.lease_us = 1'000'000;
  start.start_us = Now() - kAttemptTimeoutGraceUs - 1'000'000;
  start.attempt_timeout_us = 1'000;
  ASSERT_TRUE(store_.RenewLeases({&start, 1}).ok());
  const int64_t before = Live(lease.task_id).lease_expire_us;
  const Renewal renewal = RenewalOf(lease, Holder());

  const auto outcomes = store_.RenewLeases({&renewal, 1}).value();

  EXPECT_THAT(outcomes, ElementsAre(RenewOutcome::kLost));
  EXPECT_EQ(Live(lease.task_id).lease_expire_us, before);
}

TEST_P(TaskStoreTest, SaysThatATaskIsToBeCancelledAndStillRenews) {
  const LeaseRef lease = Claim(Submit(), 1'000'000);
  const LeaseRef neighbour = Claim(Submit(), 1'000'000);
  EXPECT_EQ(Cancel(lease.task_id), ControlOutcome::kDone);
  const std::vector<Renewal> renewals = {RenewalOf(lease, Holder()),
                                         RenewalOf(neighbour, Holder())};

  const auto outcomes = store_.RenewLeases(renewals).value();

  EXPECT_THAT(outcomes, ElementsAre(RenewOutcome::kCancelRequested,
                                    RenewOutcome::kRenewed));
  EXPECT_GT(Live(lease.task_id).lease_expire_us, Now() + kLeaseUs);
}

TEST_P(TaskStoreTest, KeepsLatestProgressAndCheckpoint) {
  const LeaseRef lease = Claim(Submit());
  const HolderId holder = Holder();
  const std::vector<LeaseUpdate> first = {
      {lease, holder, Progress{1, 10, "half: 'way'"}, OddBytes()}};
  const std::vector<LeaseUpdate> second = {
      {lease, holder, Progress{2, 10, "more"}, std::nullopt}};
  ASSERT_TRUE(store_.SaveLeaseUpdates(first).ok());
  ASSERT_TRUE(store_.SaveLeaseUpdates(second).ok());

  EXPECT_EQ(Get(lease.task_id).progress, (Progress{2, 10, "more"}));
  const auto bodies =
      store_.LoadLeaseBodies({&lease.task_id, 1}, 1 << 20).value();
  EXPECT_EQ(bodies.at(0).checkpoint, OddBytes());
}

TEST_P(TaskStoreTest, TakesNoUpdatesOfALeaseThatIsOver) {
  const LeaseRef lease = Claim(Submit());
  Report(lease, Release{ReleaseReason::kDraining, 0});
  const LeaseRef newer = Claim(lease.task_id);
  const std::vector<LeaseUpdate> updates = {
      {lease, Holder(), Progress{1, 2, "late"}, "late"},
      {newer, Holder("executor-2"), Progress{1, 2, "wrong"}, "wrong"}};

  EXPECT_TRUE(store_.SaveLeaseUpdates(updates).ok());

  EXPECT_FALSE(Get(lease.task_id).progress.has_value());
}

TEST_P(TaskStoreTest, CheckpointsSurviveALeaseAndGoWithTheTask) {
  const LeaseRef lease = Claim(Submit());
  const std::vector<LeaseUpdate> updates = {
      {lease, Holder(), std::nullopt, "step 3"}};
  ASSERT_TRUE(store_.SaveLeaseUpdates(updates).ok());
  Report(lease, Release{ReleaseReason::kDraining, 0});
  const LeaseRef next = Claim(lease.task_id);
  EXPECT_EQ(
      store_.LoadLeaseBodies({&next.task_id, 1}, 1000).value().at(0).checkpoint,
      "step 3");

  Report(next, Payload{});

  EXPECT_EQ(
      store_.LoadLeaseBodies({&next.task_id, 1}, 1000).value().at(0).checkpoint,
      "");
}

TEST_P(TaskStoreTest, HandsTheCheckpointOfAReleaseToTheNextLease) {
  const LeaseRef lease = Claim(Submit());
  scheduler::Report release;
  release.lease = lease;
  release.holder = Holder();
  release.outcome = Release{ReleaseReason::kDraining, 0};

  ASSERT_TRUE(store_
                  .ChangeTasks({&lease.task_id, 1},
                               [&](size_t, const TaskView& task) {
                                 Change change =
                                     DecideReport(task, release, 0.5).change;
                                 change.checkpoint = OddBytes();
                                 return change;
                               })
                  .ok());

  const LeaseRef next = Claim(lease.task_id);
  EXPECT_EQ(
      store_.LoadLeaseBodies({&next.task_id, 1}, 1000).value().at(0).checkpoint,
      OddBytes());
}

TEST_P(TaskStoreTest, ListsAHoldersLeasesAlone) {
  const LeaseRef mine = Claim(Submit());
  const HolderId other = Holder("executor-2");
  const scheduler::Claim claim{Submit(), 0, other, kLeaseUs};
  ASSERT_TRUE(store_.ClaimLeases({&claim, 1}).ok());

  const auto leases = store_.ListLeases(Holder()).value();

  ASSERT_THAT(leases, SizeIs(1));
  EXPECT_EQ(leases[0].lease, mine);
  EXPECT_EQ(leases[0].state, TaskState::kDispatched);
  EXPECT_EQ(leases[0].lane_id, Lane("q"));
}

TEST_P(TaskStoreTest, FindsExpiredLeasesOldestFirst) {
  const LeaseRef second = Claim(Submit(), 2'000);
  const LeaseRef first = Claim(Submit(), 1);
  Claim(Submit());
  harness_->Pass(absl::Milliseconds(5));

  const auto leases = store_.FindExpiredLeases(10).value();

  ASSERT_THAT(leases, SizeIs(2));
  EXPECT_LE(leases[0].lease_expire_us, leases[1].lease_expire_us);
  EXPECT_THAT((std::vector{leases[0].lease, leases[1].lease}),
              testing::UnorderedElementsAre(first, second));
  EXPECT_THAT(store_.FindExpiredLeases(1).value(), SizeIs(1));
}

}  // namespace
}  // namespace leasehold::scheduler
