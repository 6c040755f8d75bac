// Dispatch: the ready scan, claims, bodies.
#include <algorithm>

#include "scheduler/domain/limits.h"
#include "tests/scheduler/store/task_store_conformance.h"

namespace leasehold::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

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

}  // namespace
}  // namespace leasehold::scheduler
