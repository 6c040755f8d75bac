// How tasks change and end, and what reads show.
#include <algorithm>

#include "tests/scheduler/store/task_store_conformance.h"

namespace leasehold::scheduler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TaskError Error(const std::string& code) {
  TaskError error;
  error.error_class = ErrorClass::kRetryable;
  error.code = code;
  error.message = "it's :broken \\ \"x\"";
  return error;
}

TEST_P(TaskStoreTest, RecordsASuccess) {
  const LeaseRef lease = Claim(Submit());

  EXPECT_EQ(Report(lease, Payload{PayloadKind::kData, OddBytes()}),
            ReportDisposition::kRecorded);

  const EndedTask ended = Ended(lease.task_id);
  EXPECT_EQ(ended.state, TaskState::kSucceeded);
  EXPECT_EQ(ended.result, (Payload{PayloadKind::kData, OddBytes()}));
  EXPECT_FALSE(ended.error.has_value());
  EXPECT_EQ(ended.attempt, 1);
  EXPECT_EQ(ended.lease_number, 1);
  EXPECT_EQ(ended.holder, Holder());
  EXPECT_GT(ended.finish_us, 0);
  const TaskRecord record = Get(lease.task_id);
  EXPECT_FALSE(record.live.has_value());
  EXPECT_EQ(record.ended->result.bytes, "");
  EXPECT_EQ(record.executor_id, "executor-1");
}

TEST_P(TaskStoreTest, TakesAResultOfOneMiB) {
  const LeaseRef lease = Claim(Submit());
  const Payload result{PayloadKind::kData, std::string(1 << 20, '\\')};

  Report(lease, result);

  EXPECT_EQ(Ended(lease.task_id).result, result);
}

TEST_P(TaskStoreTest, RecordsAReportOnce) {
  const LeaseRef lease = Claim(Submit());
  Report(lease, Payload{PayloadKind::kJson, "1"});

  EXPECT_EQ(Report(lease, Payload{PayloadKind::kJson, "2"}),
            ReportDisposition::kDuplicate);

  EXPECT_EQ(Ended(lease.task_id).result.bytes, "1");
}

TEST_P(TaskStoreTest, RefusesAnOlderLease) {
  const TaskId id = Submit();
  const LeaseRef old = Claim(id);
  Report(old, Release{ReleaseReason::kDraining, 0});
  Claim(id);

  EXPECT_EQ(Report(old, Payload{}), ReportDisposition::kStale);
  EXPECT_EQ(Live(id).state, TaskState::kDispatched);
}

TEST_P(TaskStoreTest, KnowsNothingOfATaskThatWasNeverStored) {
  EXPECT_EQ(Report({77'777, 1}, Payload{}), ReportDisposition::kStale);
  EXPECT_EQ(Cancel(77'777), ControlOutcome::kNotFound);
}

TEST_P(TaskStoreTest, RetriesAfterAnErrorAndKeepsIt) {
  const TaskId id = Submit();
  const int64_t before = Now();

  EXPECT_EQ(Report(Claim(id), Error("e1")), ReportDisposition::kRecorded);

  const TaskRecord record = Get(id, {false, false, true});
  ASSERT_TRUE(record.live.has_value());
  EXPECT_EQ(record.live->state, TaskState::kRetrying);
  EXPECT_EQ(record.live->phase, Phase::kWaiting);
  EXPECT_GE(record.live->run_us, before + 5'000'000);
  ASSERT_TRUE(record.last_error.has_value());
  EXPECT_EQ(record.last_error->code, "e1");
  EXPECT_EQ(record.last_error->message, "it's :broken \\ \"x\"");
  ASSERT_THAT(record.attempts, SizeIs(1));
  EXPECT_EQ(record.attempts[0].number, 1);
  EXPECT_THAT(record.attempt_executor_ids, ElementsAre("executor-1"));
}

TEST_P(TaskStoreTest, DecidesByTheTasksOwnRetryPolicy) {
  TaskSpec once = Spec();
  once.retry_policy.max_attempts = 1;
  const std::vector<TaskId> ids = Submit({once, Spec()});

  Report(Claim(ids[0]), Error("e"));
  Report(Claim(ids[1]), Error("e"));

  const EndedTask ended = Ended(ids[0]);
  EXPECT_EQ(ended.state, TaskState::kFailed);
  EXPECT_EQ(ended.reason, FailureReason::kAttemptsExhausted);
  ASSERT_TRUE(ended.error.has_value());
  EXPECT_EQ(ended.error->code, "e");
  EXPECT_EQ(Live(ids[1]).state, TaskState::kRetrying);
}

TEST_P(TaskStoreTest, KeepsTheLatestTwentyAttempts) {
  TaskSpec spec = Spec();
  spec.retry_policy.max_attempts = 1000;
  spec.retry_policy.initial_backoff_us = 10'000;
  spec.retry_policy.max_backoff_us = 10'000;
  const TaskId id = Submit(spec);
  for (int i = 1; i <= 23; ++i) {
    Report(Claim(id), Error("e" + std::to_string(i)));
    harness_->Pass(absl::Milliseconds(13));
  }

  const TaskRecord record = Get(id, {false, false, true});

  ASSERT_THAT(record.attempts, SizeIs(20));
  EXPECT_EQ(record.attempts.front().number, 4);
  EXPECT_EQ(record.attempts.back().number, 23);
  EXPECT_EQ(record.last_error->code, "e23");
}

TEST_P(TaskStoreTest, LeavesRenewedLeasesAlone) {
  const LeaseRef lease = Claim(Submit());

  Expire(lease);

  EXPECT_EQ(Live(lease.task_id).state, TaskState::kDispatched);
}

TEST_P(TaskStoreTest, TakesAnExpiredLeaseBackAndTheLateSuccessToo) {
  const LeaseRef lease = Claim(Submit(), 1);
  harness_->Pass(absl::Milliseconds(2));
  Expire(lease);
  EXPECT_EQ(Live(lease.task_id).phase, Phase::kWaiting);
  EXPECT_EQ(Live(lease.task_id).lease_end, LeaseEnd::kExpired);

  EXPECT_EQ(Report(lease, Payload{}), ReportDisposition::kRecorded);
  EXPECT_EQ(Ended(lease.task_id).state, TaskState::kSucceeded);
}

TEST_P(TaskStoreTest, CancelsAWaitingTaskAtOnce) {
  const TaskId id = Submit();

  EXPECT_EQ(Cancel(id), ControlOutcome::kDone);

  EXPECT_EQ(Ended(id).state, TaskState::kCancelled);
  EXPECT_FALSE(TryClaim(id, 0));
}

TEST_P(TaskStoreTest, ReadsTheCancelRequestWithTheReport) {
  const LeaseRef lease = Claim(Submit());
  Cancel(lease.task_id);
  EXPECT_GT(Live(lease.task_id).cancel_expire_us, Now());

  Report(lease, Error("e"));

  EXPECT_EQ(Ended(lease.task_id).state, TaskState::kCancelled);
}

TEST_P(TaskStoreTest, KeepsTheReasonOfACancelUntilTheTaskEnds) {
  const LeaseRef lease = Claim(Submit());
  EXPECT_EQ(Cancel(lease.task_id, "no longer \xC3\xA4 'wanted'"),
            ControlOutcome::kDone);
  EXPECT_EQ(Cancel(lease.task_id, "again"), ControlOutcome::kAlreadyDone);

  Report(lease, Error("e"));

  EXPECT_EQ(Ended(lease.task_id).error->message, "no longer \xC3\xA4 'wanted'");
}

TEST_P(TaskStoreTest, SaysWhyAWaitingTaskWasCancelled) {
  const TaskId id = Submit();
  Cancel(id, "duplicate order");

  EXPECT_EQ(Ended(id).error->message, "duplicate order");
}

TEST_P(TaskStoreTest, BringsAnEndedTaskBack) {
  TaskSpec spec = Spec("{\"a\":1}");
  spec.expire_us = Now() + 3'600'000'000;
  const TaskId id = Submit(spec);
  const LeaseRef lease = Claim(id);
  Report(lease, TaskError{ErrorClass::kNonRetryable, "BAD", "no", 0});
  ASSERT_EQ(Ended(id).state, TaskState::kFailed);
  const LaneId lane = Lane(spec.queue, spec.type);

  const auto retry = [&](size_t, const TaskView& view) {
    Change change;
    EXPECT_NE(view.ended, nullptr);
    change.update = DecideRetry(id, lane, 5, *view.ended, view.now_us);
    return change;
  };
  ASSERT_TRUE(store_.ChangeTasks({&id, 1}, retry).ok());

  const LiveTask back = Live(id);
  EXPECT_EQ(back.state, TaskState::kPending);
  EXPECT_EQ(back.attempt, 0);
  EXPECT_EQ(back.lease_number, lease.lease_number + 1);
  EXPECT_EQ(Report(lease, Payload{}), ReportDisposition::kStale);
  ReadOptions all;
  all.payload = all.attempts = true;
  const TaskRecord record = Get(id, all);
  EXPECT_EQ(record.spec.payload.bytes, "{\"a\":1}");
  EXPECT_EQ(record.attempts.size(), 1u) << "the history stays";
  EXPECT_TRUE(TryClaim(id, back.lease_number));
}

TEST_P(TaskStoreTest, FindsCancelsThatAreOverdue) {
  const LeaseRef overdue = Claim(Submit());
  const LeaseRef in_time = Claim(Submit());
  Cancel(in_time.task_id);
  const absl::Status status = store_.ChangeTasks(
      {&overdue.task_id, 1}, [](size_t, const TaskView& view) {
        Change change;
        change.update = *view.live;
        change.update->cancel_expire_us = view.now_us;
        return change;
      });
  ASSERT_TRUE(status.ok()) << status;
  harness_->Pass(absl::Milliseconds(2));

  EXPECT_THAT(store_.FindOverdueCancels(10).value(),
              ElementsAre(overdue.task_id));
}

TEST_P(TaskStoreTest, ShowsTheExpireTimeUntilTheTaskHasEnded) {
  TaskSpec spec = Spec();
  spec.expire_us = Now() + 1'000;
  TaskSpec later = Spec();
  later.expire_us = Now() + 3'600'000'000;
  const std::vector<TaskId> ids = Submit({spec, later});
  harness_->Pass(absl::Milliseconds(2));
  EXPECT_THAT(store_.FindExpiredTasks(10).value(), ElementsAre(ids[0]));

  const absl::Status status =
      store_.ChangeTasks(ids, [&](size_t i, const TaskView& view) {
        EXPECT_EQ(view.expire_us, i == 0 ? spec.expire_us : later.expire_us);
        return DecideExpireTime(view);
      });

  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Ended(ids[0]).reason, FailureReason::kExpired);
  EXPECT_EQ(Live(ids[1]).state, TaskState::kPending);
  EXPECT_THAT(store_.FindExpiredTasks(10).value(), IsEmpty());
}

TEST_P(TaskStoreTest, ChangesManyTasksAtOnce) {
  std::vector<TaskId> ids = Submit(std::vector<TaskSpec>(900, Spec()));
  std::vector<scheduler::Claim> claims;
  for (const TaskId id : ids) claims.push_back({id, 0, Holder(), kLeaseUs});
  ASSERT_TRUE(store_.ClaimLeases(claims).ok());
  std::sort(ids.begin(), ids.end());
  const HolderId holder = Holder();

  const absl::Status status =
      store_.ChangeTasks(ids, [&](size_t i, const TaskView& view) {
        EXPECT_EQ(view.live->id, ids[i]);
        scheduler::Report report;
        report.lease = {ids[i], 1};
        report.holder = holder;
        if (i % 3 == 0) report.outcome = Payload{PayloadKind::kJson, "1"};
        if (i % 3 == 1) report.outcome = Error("e");
        if (i % 3 == 2) report.outcome = Release{ReleaseReason::kDraining, 0};
        return DecideReport(view, report, 0).change;
      });

  ASSERT_TRUE(status.ok()) << status;
  const auto records = store_.GetTasks(ids, {}).value();
  ASSERT_THAT(records, SizeIs(900));
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(records[i].id, ids[i]);
    EXPECT_EQ(records[i].ended.has_value(), i % 3 == 0);
    EXPECT_EQ(records[i].last_error.has_value(), i % 3 == 1);
  }
}

TEST_P(TaskStoreTest, CountsLiveTasks) {
  Submit({Spec(), Spec()});
  Claim(Submit());

  const auto counts = store_.CountLiveTasks().value();

  const LaneId lane = Lane("q");
  EXPECT_THAT(
      counts,
      testing::UnorderedElementsAre(
          std::pair(std::pair(lane, TaskState::kPending), int64_t{2}),
          std::pair(std::pair(lane, TaskState::kDispatched), int64_t{1})));
}

std::vector<TaskId> IdsOf(const ListPage& page) {
  std::vector<TaskId> ids;
  for (const TaskRecord& task : page.tasks) ids.push_back(task.id);
  return ids;
}

TEST_P(TaskStoreTest, ListsNewestFirstPageByPage) {
  std::vector<TaskId> ids = Submit(std::vector<TaskSpec>(5, Spec()));
  Report(Claim(ids[2]), Payload{});
  std::reverse(ids.begin(), ids.end());

  std::vector<TaskId> seen;
  TaskId below = INT64_MAX;
  while (below != 0) {
    const ListPage page = store_.ListTasks({}, below, 2, 1 << 20).value();
    EXPECT_LE(page.tasks.size(), 2);
    for (const TaskId id : IdsOf(page)) seen.push_back(id);
    below = page.next_below;
  }

  EXPECT_EQ(seen, ids);
}

TEST_P(TaskStoreTest, ListsWhatTheFilterSays) {
  TaskSpec special = Spec();
  special.queue = "q2";
  special.type = "u";
  special.partition_key = "p:1";
  special.batch_id = 5;
  const int64_t before = Now();
  const TaskId plain = Submit();
  const TaskId done = Submit();
  Report(Claim(done), Payload{});
  harness_->Pass(absl::Milliseconds(2));
  const int64_t between = Now();
  harness_->Pass(absl::Milliseconds(2));
  const TaskId other = Submit(special);
  const auto list = [&](const std::function<void(ListFilter&)>& set) {
    ListFilter filter;
    set(filter);
    return IdsOf(store_.ListTasks(filter, INT64_MAX, 10, 1 << 20).value());
  };

  EXPECT_THAT(list([](auto&) {}), ElementsAre(other, done, plain));
  EXPECT_THAT(list([](auto& f) { f.queue = "q2"; }), ElementsAre(other));
  EXPECT_THAT(list([](auto& f) { f.queue = "none"; }), IsEmpty());
  EXPECT_THAT(list([](auto& f) { f.type = "t"; }), ElementsAre(done, plain));
  EXPECT_THAT(list([](auto& f) { f.states = {TaskState::kSucceeded}; }),
              ElementsAre(done));
  EXPECT_THAT(list([](auto& f) { f.states = {TaskState::kPending}; }),
              ElementsAre(other, plain));
  EXPECT_THAT(list([](auto& f) {
                f.queue = "q";
                f.states = {TaskState::kPending, TaskState::kSucceeded};
              }),
              ElementsAre(done, plain));
  EXPECT_THAT(list([](auto& f) { f.partition_key = "p:1"; }),
              ElementsAre(other));
  EXPECT_THAT(list([](auto& f) { f.batch_id = 5; }), ElementsAre(other));
  EXPECT_THAT(list([&](auto& f) { f.create_from_us = between; }),
              ElementsAre(other));
  EXPECT_THAT(list([&](auto& f) {
                f.create_from_us = before;
                f.create_until_us = between;
              }),
              ElementsAre(done, plain));
}

TEST_P(TaskStoreTest, CutsAPageThatGrowsTooLarge) {
  TaskSpec spec = Spec();
  for (int i = 0; i < 16; ++i) {
    spec.labels.emplace_back("label-" + std::to_string(10 + i),
                             std::string(128, 'v'));
  }
  std::vector<TaskId> ids = Submit(std::vector<TaskSpec>(20, spec));
  std::reverse(ids.begin(), ids.end());

  std::vector<TaskId> seen;
  int pages = 0;
  TaskId below = INT64_MAX;
  while (below != 0) {
    const ListPage page = store_.ListTasks({}, below, 100, 10'000).value();
    for (const TaskId id : IdsOf(page)) seen.push_back(id);
    below = page.next_below;
    ++pages;
  }

  EXPECT_EQ(seen, ids);
  EXPECT_GT(pages, 3);
}

}  // namespace
}  // namespace leasehold::scheduler
