// What only a real database can show: locks, lost connections, restarts.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "scheduler/store/mysql/mysql_store.h"
#include "tests/scheduler/store/sql_store_fixture.h"

namespace leasehold::scheduler {
namespace {

using ::testing::SizeIs;

INSTANTIATE_TEST_SUITE_P(Sql, SqlStoreTest, testing::Values(MakeSqlHarness));

TEST_P(SqlStoreTest, ChangesNothingWhenTheConnectionIsCutInATransaction) {
  const LeaseRef lease = Claim(Submit());

  const absl::Status cut = store_.ChangeTasks(
      {&lease.task_id, 1}, [&](size_t, const TaskView& view) {
        KillStoreConnections();
        scheduler::Report report;
        report.lease = lease;
        report.holder = view.live->holder;
        report.outcome = Payload{};
        return DecideReport(view, report, 0).change;
      });

  EXPECT_EQ(cut.code(), absl::StatusCode::kUnavailable) << cut;
  EXPECT_EQ(Live(lease.task_id).state, TaskState::kDispatched);
  EXPECT_EQ(Report(lease, Payload{}), ReportDisposition::kRecorded);
  EXPECT_EQ(Ended(lease.task_id).state, TaskState::kSucceeded);
}

TEST_P(SqlStoreTest, RecoversEveryRoleFromLostConnections) {
  const LeaseRef lease = Claim(Submit());
  KillStoreConnections();

  // One statement without a transaction cannot know whether it has happened.
  const Renewal renewal{lease, Holder(), kLeaseUs, 0, 0};
  static_cast<void>(store_.RenewLeases({&renewal, 1}));
  static_cast<void>(store_.NowUs());

  EXPECT_TRUE(store_.GetTasks({&lease.task_id, 1}, {}).ok());
  EXPECT_TRUE(store_.RenewLeases({&renewal, 1}).ok());
  EXPECT_TRUE(Touch(store_, {lease.task_id}).ok());
  EXPECT_TRUE(store_.NowUs().ok());
}

TEST_P(SqlStoreTest, SaysThatTheServerIsAwayAndRecoversByItself) {
  const TaskId id = Submit();
  Server().Stop();

  const absl::Status away = store_.NowUs().status();
  const absl::Status still_away = Touch(store_, {id});
  Server().Start();

  EXPECT_EQ(away.code(), absl::StatusCode::kUnavailable) << away;
  EXPECT_EQ(still_away.code(), absl::StatusCode::kUnavailable) << still_away;
  EXPECT_TRUE(store_.NowUs().ok());
  EXPECT_TRUE(Touch(store_, {id}).ok());
  EXPECT_TRUE(TryClaim(id, 0));
}

// wait_timeout is 10 s for connections that write.
TEST_P(SqlStoreTest, NoticesThatTheServerHasClosedAnIdleConnection) {
  const TaskId id = Submit();
  ASSERT_TRUE(Touch(store_, {id}).ok());

  std::this_thread::sleep_for(std::chrono::milliseconds(11'500));

  EXPECT_TRUE(Touch(store_, {id}).ok());
  EXPECT_TRUE(store_.NowUs().ok());
}

TEST_P(SqlStoreTest, EndsTheTransactionOfAReplicaThatHangs) {
  const TaskId id = Submit();
  std::atomic<bool> entered = false;
  std::atomic<bool> stuck = true;
  absl::Status frozen;
  std::thread replica([&] {
    frozen = store_.ChangeTasks({&id, 1}, [&](size_t, const TaskView& view) {
      entered = true;
      while (stuck) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      Change change;
      change.update = *view.live;
      change.update->priority = 9;
      return change;
    });
  });

  while (!entered) std::this_thread::yield();
  const absl::Time start = absl::Now();
  absl::Status freed = absl::AbortedError("");
  while (absl::IsAborted(freed) && absl::Now() - start < absl::Seconds(30)) {
    freed = Touch(harness_->other(), {id});
  }
  stuck = false;
  replica.join();

  EXPECT_TRUE(freed.ok()) << freed;
  EXPECT_EQ(frozen.code(), absl::StatusCode::kUnavailable) << frozen;
  EXPECT_EQ(Live(id).priority, 5);
}

TEST_P(SqlStoreTest, ClaimsWhatOthersHaveNotLocked) {
  const std::vector<TaskId> ids = Submit({Spec(), Spec(), Spec()});
  sql().Run("BEGIN");
  sql().Run(absl::StrCat("SELECT id FROM task_live WHERE id = ", ids[1],
                         " FOR UPDATE"));
  std::vector<scheduler::Claim> claims;
  for (const TaskId id : ids) claims.push_back({id, 0, Holder(), kLeaseUs});

  const auto result = store_.ClaimLeases(claims);
  sql().Run("ROLLBACK");

  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->won, (std::vector<bool>{true, false, true}));
  EXPECT_EQ(Live(ids[1]).phase, Phase::kWaiting);
}

TEST_P(SqlStoreTest, AClaimThatIsHeldOpenLeavesTheRestToOtherReplicas) {
  std::vector<TaskSpec> specs(200, Spec());
  for (size_t i = 0; i < specs.size(); ++i) {
    specs[i].priority = static_cast<int>(i % 10);
  }
  const std::vector<TaskId> ids = Submit(specs);
  sql().Run("BEGIN");
  sql().Run(absl::StrCat(
      "UPDATE task_live FORCE INDEX (PRIMARY) SET phase = 1 WHERE id IN (",
      ids[0], ",", ids[1], ",", ids[2], ",", ids[3], ",", ids[4], ")"));
  std::vector<scheduler::Claim> claims;
  for (size_t i = 5; i < ids.size(); ++i) {
    claims.push_back({ids[i], 0, Holder(), kLeaseUs});
  }

  const absl::Time start = absl::Now();
  const auto result = store_.ClaimLeases(claims);
  const absl::Duration took = absl::Now() - start;
  sql().Run("ROLLBACK");

  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(std::count(result->won.begin(), result->won.end(), true), 195);
  // It waited for no lock, which would have taken a second.
  EXPECT_LT(took, absl::Milliseconds(900));
}

TEST_P(SqlStoreTest, RenewsTheNeighboursOfALockedLease) {
  const LeaseRef locked = Claim(Submit(), 1'000'000);
  const LeaseRef free = Claim(Submit(), 1'000'000);
  sql().Run("BEGIN");
  sql().Run(absl::StrCat("SELECT id FROM task_live WHERE id = ", locked.task_id,
                         " FOR UPDATE"));
  const std::vector<Renewal> renewals = {{locked, Holder(), 2 * kLeaseUs, 0, 0},
                                         {free, Holder(), 2 * kLeaseUs, 0, 0}};

  const auto outcomes = store_.RenewLeases(renewals);
  sql().Run("ROLLBACK");

  EXPECT_EQ(outcomes.status().code(), absl::StatusCode::kAborted);
  EXPECT_GT(Live(free.task_id).lease_expire_us, Now() + kLeaseUs);
  EXPECT_LT(Live(locked.task_id).lease_expire_us, Now() + kLeaseUs);
}

TEST_P(SqlStoreTest, GivesUpOnALockedTaskAndChangesNothing) {
  const std::vector<TaskId> ids = Submit({Spec(), Spec()});
  sql().Run("BEGIN");
  sql().Run(absl::StrCat("SELECT id FROM task_live WHERE id = ", ids[1],
                         " FOR UPDATE"));

  const absl::Status status = Touch(store_, ids);
  sql().Run("ROLLBACK");

  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  EXPECT_EQ(Live(ids[0]).rate_limited_count, 0);
  EXPECT_TRUE(Touch(store_, ids).ok());
}

TEST_P(SqlStoreTest, RunsAgainAfterADeadlock) {
  const std::vector<TaskId> ids = Submit(std::vector<TaskSpec>(40, Spec()));
  std::atomic<int> deadlocks = 0;
  const auto store =
      OpenMySqlStore(config(), [&](absl::string_view, absl::string_view cause) {
        if (cause == "deadlock") ++deadlocks;
      });
  // The transaction that has changed more rows is not the one to be undone.
  sql().Run("BEGIN");
  for (size_t i = 1; i < ids.size(); ++i) {
    sql().Run(absl::StrCat(
        "UPDATE task_live SET rate_limited_count = 7 WHERE id = ", ids[i]));
  }
  absl::Status status;
  std::thread other([&] { status = Touch(*store, {ids[0], ids[1]}); });
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (absl::Now() < deadline &&
         sql().Number("SELECT COUNT(*) FROM information_schema.innodb_trx "
                      "WHERE trx_state = 'LOCK WAIT'") < 1) {
    // InnoDB shows transactions as they were a tenth of a second ago.
    std::this_thread::sleep_for(std::chrono::milliseconds(120));
  }
  sql().Run(absl::StrCat(
      "UPDATE task_live SET rate_limited_count = 7 WHERE id = ", ids[0]));
  sql().Run("COMMIT");
  other.join();

  EXPECT_TRUE(status.ok()) << status;
  EXPECT_GE(deadlocks, 1);
  EXPECT_EQ(Live(ids[0]).rate_limited_count, 8);
  EXPECT_EQ(Live(ids[1]).rate_limited_count, 8);
}

TEST_P(SqlStoreTest, LosesNoChangeOfTwoReplicas) {
  const bool has_snapshot_isolation =
      !sql()
           .Run("SHOW GLOBAL VARIABLES LIKE 'innodb_snapshot_isolation'")
           .empty();
  if (has_snapshot_isolation) {
    sql().Run("SET GLOBAL innodb_snapshot_isolation = ON");
    KillStoreConnections();
  }
  std::vector<TaskId> ids = Submit(std::vector<TaskSpec>(20, Spec()));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      TaskStore& store = t % 2 == 0 ? store_ : harness_->other();
      for (int i = 0; i < 25; ++i) {
        absl::Status status = absl::AbortedError("");
        while (absl::IsAborted(status) || absl::IsUnavailable(status)) {
          status = Touch(store, ids);
        }
        EXPECT_TRUE(status.ok()) << status;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (has_snapshot_isolation) {
    sql().Run("SET GLOBAL innodb_snapshot_isolation = DEFAULT");
  }

  for (const TaskId id : ids) EXPECT_EQ(Live(id).rate_limited_count, 100);
}

TEST_P(SqlStoreTest, FindsATaskWhoseSubmitCommittedLate) {
  const LaneId lane = Lane("q");
  const TaskId early = store_.ReserveIds(1).value();
  sql().Run("BEGIN");
  sql().Run(absl::StrCat("INSERT INTO task_live SELECT ", early, ", ", lane,
                         ", 0, 1, 5, 0, ", Now(),
                         ", 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0"));
  const TaskId late = Submit();
  const ReadyPage before =
      store_.ScanReady(lane, 5, 0, 0, Now(), 10, {}).value();

  sql().Run("COMMIT");
  // The cursor goes back by more than any write takes.
  const ReadyPage after =
      store_
          .ScanReady(lane, 5, before.tasks.back().run_us - 10'000'000, 0, Now(),
                     10, {})
          .value();

  ASSERT_THAT(before.tasks, SizeIs(1));
  ASSERT_THAT(after.tasks, SizeIs(2));
  EXPECT_EQ(after.tasks[0].id, early);
  EXPECT_EQ(after.tasks[1].id, late);
}

TEST_P(SqlStoreTest, KeepsItsTimesWhenTheServersZoneChanges) {
  const int64_t before = Now();
  TaskSpec spec = Spec();
  spec.schedule_us = before + 2'600'001;
  const TaskId id = Submit(spec);
  sql().Run("SET GLOBAL time_zone = '+09:00'");
  const auto fresh = OpenMySqlStore(config());

  const int64_t old_connection = Now();
  const int64_t new_connection = fresh->NowUs().value();
  sql().Run("SET GLOBAL time_zone = 'SYSTEM'");

  EXPECT_NEAR(old_connection, before, 60'000'000);
  EXPECT_NEAR(new_connection, before, 60'000'000);
  EXPECT_EQ(Live(id).run_us, before + 2'600'001);
}

TEST_P(SqlStoreTest, ReadsTheClockInWholeMicrosecondsNeverAhead) {
  for (int i = 0; i < 50; ++i) {
    const int64_t earliest = absl::ToUnixMicros(absl::Now());
    const int64_t now_us = Now();
    const int64_t latest = absl::ToUnixMicros(absl::Now());
    EXPECT_GE(now_us, earliest - 1'000);
    EXPECT_LE(now_us, latest + 1'000);
  }
}

TEST_P(SqlStoreTest, TakesOverAKeyWhoseTaskIsGone) {
  TaskSpec spec = Spec("old");
  spec.idempotency_key = "k";
  const TaskId old = Submit(spec);
  Report(Claim(old), Payload{});
  sql().Run(absl::StrCat("DELETE FROM task_result WHERE id = ", old));
  TaskSpec other = Spec("new");
  other.idempotency_key = "k";

  const TaskId fresh = Submit(other);

  EXPECT_NE(fresh, old);
  EXPECT_EQ(Submit(other), fresh);
}

TEST_P(SqlStoreTest, BringsAnEndedTaskBackWithItsExpireTime) {
  TaskSpec spec = Spec();
  spec.expire_us = Now() + 3'600'000'000;
  spec.retry_policy.max_attempts = 3;
  const TaskId id = Submit(spec);
  Cancel(id);
  const LaneId lane = Lane("q");

  const absl::Status status =
      store_.ChangeTasks({&id, 1}, [&](size_t, const TaskView& view) {
        Change change;
        change.update = DecideRetry(id, lane, 5, *view.ended, view.now_us);
        return change;
      });

  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Live(id).state, TaskState::kPending);
  EXPECT_EQ(Live(id).lease_number, 1);
  ASSERT_TRUE(store_
                  .ChangeTasks({&id, 1},
                               [&](size_t, const TaskView& view) {
                                 EXPECT_EQ(view.expire_us, spec.expire_us);
                                 EXPECT_EQ(view.policy.max_attempts, 3);
                                 return Change{};
                               })
                  .ok());
}

TEST_P(SqlStoreTest, DecidesByTheQueuesRetryPolicy) {
  const LeaseRef lease = Claim(Submit());
  sql().Run(
      "UPDATE queues SET retry_policy = '{\"max_attempts\":1}' WHERE name = "
      "'q'");
  // Policies are read again after a second.
  const auto fresh = OpenMySqlStore(config());
  int max_attempts = 0;

  ASSERT_TRUE(fresh
                  ->ChangeTasks({&lease.task_id, 1},
                                [&](size_t, const TaskView& view) {
                                  max_attempts = view.policy.max_attempts;
                                  return Change{};
                                })
                  .ok());

  EXPECT_EQ(max_attempts, 1);
}

}  // namespace
}  // namespace leasehold::scheduler
