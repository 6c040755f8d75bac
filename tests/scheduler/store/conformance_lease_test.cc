// Dispatch and leases: the ready scan, claims, renewals, bodies.
#include <algorithm>

#include "scheduler/domain/limits.h"
#include "tests/scheduler/store/task_store_conformance.h"

namespace leasehold::scheduler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

Renewal RenewalOf(const LeaseRef& lease, HolderId holder) {
  Renewal renewal;
  renewal.lease = lease;
  renewal.holder = holder;
  renewal.lease_us = 2 * kLeaseUs;
  return renewal;
}

std::vector<TaskId> IdsOf(const ReadyPage& page) {
  std::vector<TaskId> ids;
  for (const ReadyTask& task : page.tasks) ids.push_back(task.id);
  return ids;
}

TEST_P(TaskStoreTest, ListsWhereTasksWait) {
  TaskSpec urgent = Spec();
  urgent.priority = 0;
  TaskSpec other = Spec();
  other.type = "u";
  Submit({Spec(), Spec(), urgent, other});
  Claim(Submit(other));

  const auto heads = store_.ListReadyHeads().value();

  ASSERT_THAT(heads, SizeIs(3));
  for (const ReadyHead& head : heads) EXPECT_GT(head.run_us, 0);
}

TEST_P(TaskStoreTest, ScansWaitingTasksInOrder) {
  const LaneId lane = Lane("q");
  TaskSpec future = Spec();
  future.schedule_us = Now() + 3'600'000'000;
  const std::vector<TaskId> ids = Submit({Spec(), Spec(), Spec(), future});
  Claim(Submit());
  const int64_t until = Now();

  const ReadyPage first = store_.ScanReady(lane, 5, 0, 0, until, 2, {}).value();
  const ReadyTask& last = first.tasks.back();
  const ReadyPage rest =
      store_.ScanReady(lane, 5, last.run_us, last.id, until, 10, {}).value();

  EXPECT_THAT(IdsOf(first), ElementsAre(ids[0], ids[1]));
  EXPECT_FALSE(first.complete);
  EXPECT_THAT(IdsOf(rest), ElementsAre(ids[2]));
  EXPECT_TRUE(rest.complete);
  EXPECT_GE(rest.now_us, until);
  EXPECT_EQ(rest.tasks[0].lease_number, 0);
}

TEST_P(TaskStoreTest, ScansAShareOfTheIds) {
  const auto ids = Submit(std::vector<TaskSpec>(10, Spec()));
  const LaneId lane = Lane("q");
  std::vector<TaskId> found;

  for (int index = 0; index < 3; ++index) {
    const ReadyPage page =
        store_.ScanReady(lane, 5, 0, 0, Now(), 10, {index, 3}).value();
    EXPECT_TRUE(page.complete);
    for (const TaskId id : IdsOf(page)) {
      EXPECT_EQ(id % 3, index);
      found.push_back(id);
    }
  }

  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, ids);
}

TEST_P(TaskStoreTest, LeasesAWaitingTaskOnce) {
  const TaskId id = Submit();
  const int64_t before = Now();

  EXPECT_TRUE(TryClaim(id, 0));
  EXPECT_FALSE(TryClaim(id, 0));
  EXPECT_FALSE(TryClaim(id, 1));

  const LiveTask task = Live(id);
  EXPECT_EQ(task.state, TaskState::kDispatched);
  EXPECT_EQ(task.phase, Phase::kLeased);
  EXPECT_EQ(task.lease_end, LeaseEnd::kOpen);
  EXPECT_EQ(task.lease_number, 1);
  EXPECT_EQ(task.attempt, 1);
  EXPECT_EQ(task.holder, Holder());
  EXPECT_GE(task.lease_expire_us, before + kLeaseUs);
  EXPECT_EQ(Get(id).executor_id, "executor-1");
}

TEST_P(TaskStoreTest, StoresATaskAsLeased) {
  NewTask leased = New(Spec());
  leased.holder = Holder();
  leased.lease_us = kLeaseUs;
  const NewTask waiting = New(Spec());
  const int64_t before = Now();

  ASSERT_TRUE(store_.SubmitTasks({{leased, waiting}}).ok());

  EXPECT_EQ(Live(waiting.id).phase, Phase::kWaiting);
  const LiveTask task = Live(leased.id);
  EXPECT_EQ(task.state, TaskState::kDispatched);
  EXPECT_EQ(task.phase, Phase::kLeased);
  EXPECT_EQ(task.lease_end, LeaseEnd::kOpen);
  EXPECT_EQ(task.lease_number, 1);
  EXPECT_EQ(task.attempt, 1);
  EXPECT_EQ(task.holder, Holder());
  EXPECT_GE(task.lease_expire_us, before + kLeaseUs);
  EXPECT_FALSE(TryClaim(leased.id, 0));
  EXPECT_FALSE(TryClaim(leased.id, 1));
  EXPECT_EQ(Report({leased.id, 1}, Payload{PayloadKind::kJson, "1"}),
            ReportDisposition::kRecorded);
}

TEST_P(TaskStoreTest, LeasesNobodyATaskThatExisted) {
  TaskSpec spec = Spec();
  spec.idempotency_key = "k";
  NewTask first = New(spec);
  ASSERT_TRUE(store_.SubmitTasks({{first}}).ok());
  NewTask second = New(spec);
  second.holder = Holder();
  second.lease_us = kLeaseUs;

  const auto answers = store_.SubmitTasks({{second}});

  ASSERT_TRUE(answers.ok() && answers->at(0).ok());
  EXPECT_TRUE(answers->at(0)->at(0).existed);
  EXPECT_EQ(Live(first.id).phase, Phase::kWaiting);
}

TEST_P(TaskStoreTest, LeasesNothingBeforeItsTime) {
  TaskSpec future = Spec();
  future.schedule_us = Now() + 3'600'000'000;

  EXPECT_FALSE(TryClaim(Submit(future), 0));
}

TEST_P(TaskStoreTest, LeasesByTheHintsNumberOnly) {
  const TaskId id = Submit();
  Report(Claim(id), Release{ReleaseReason::kDraining, 0});

  EXPECT_FALSE(TryClaim(id, 0));
  EXPECT_TRUE(TryClaim(id, 1));
}

TEST_P(TaskStoreTest, SaysWhichClaimsWon) {
  const std::vector<TaskId> ids = Submit({Spec(), Spec(), Spec(), Spec()});
  const HolderId one = Holder("one");
  const HolderId two = Holder("two");
  const scheduler::Claim earlier{ids[1], 0, two, kLeaseUs};
  ASSERT_TRUE(harness_->other().ClaimLeases({&earlier, 1}).ok());
  const std::vector<scheduler::Claim> claims = {{ids[0], 0, one, kLeaseUs},
                                                {ids[1], 0, two, kLeaseUs},
                                                {ids[2], 5, one, kLeaseUs},
                                                {ids[3], 0, two, 1'000'000}};

  const ClaimResult result = store_.ClaimLeases(claims).value();

  EXPECT_EQ(result.won, (std::vector<bool>{true, false, false, true}));
  EXPECT_EQ(Live(ids[0]).holder, one);
  EXPECT_EQ(Live(ids[3]).holder, two);
  EXPECT_EQ(Live(ids[0]).lease_expire_us, result.now_us + kLeaseUs);
  EXPECT_EQ(Live(ids[3]).lease_expire_us, result.now_us + 1'000'000);
  EXPECT_EQ(Live(ids[2]).phase, Phase::kWaiting);
}

TEST_P(TaskStoreTest, ClaimsMoreThanFitOneStatement) {
  const std::vector<TaskId> ids = Submit(std::vector<TaskSpec>(900, Spec()));
  std::vector<scheduler::Claim> claims;
  for (const TaskId id : ids) claims.push_back({id, 0, Holder(), kLeaseUs});

  const ClaimResult result = store_.ClaimLeases(claims).value();

  EXPECT_EQ(std::count(result.won.begin(), result.won.end(), true), 900);
  EXPECT_THAT(store_.ListLeases(Holder()).value(), SizeIs(900));
}

TEST_P(TaskStoreTest, LoadsBodiesUpToABound) {
  TaskSpec large = Spec(std::string(1000, 'x'));
  const std::vector<TaskId> ids = Submit({large, large, large});

  const auto some = store_.LoadLeaseBodies(ids, 1500).value();
  const auto all = store_.LoadLeaseBodies(ids, 1 << 20).value();

  EXPECT_THAT(some, SizeIs(2));
  ASSERT_THAT(all, SizeIs(3));
  EXPECT_EQ(all[0].spec.payload, large.payload);
  EXPECT_EQ(all[0].spec.queue, "q");
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
