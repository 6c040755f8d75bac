#include "scheduler/engine/control_batcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scheduler/engine/core_fixture.h"

namespace leasehold::scheduler {
namespace {

using ::testing::HasSubstr;
using Answer = absl::StatusOr<TaskRecord>;

class ControlBatcherTest : public CoreFixture {
 protected:
  ~ControlBatcherTest() override { store_.OpenGate(Role::kControl); }

  void Start(ControlAction action, TaskId id, std::string reason = "") {
    batcher_.Control({action, id, std::move(reason)}, [this](Answer answer) {
      answers_.Add(std::move(answer));
    });
  }
  // Does it and waits for the answer.
  Answer Do(ControlAction action, TaskId id, std::string reason = "") {
    const size_t before = answers_.size();
    Start(action, id, std::move(reason));
    EXPECT_TRUE(answers_.Await(before + 1));
    return answers_.All()[before];
  }
  static TaskState StateOf(const Answer& answer) {
    EXPECT_TRUE(answer.ok()) << answer.status();
    if (!answer.ok()) return TaskState::kUnspecified;
    return answer->live.has_value() ? answer->live->state
                                    : answer->ended->state;
  }
  void Fail(const LeaseRef& lease) {
    Report report;
    report.lease = lease;
    report.holder = 1;
    report.outcome = TaskError{ErrorClass::kNonRetryable, "BAD", "no", 0};
    ASSERT_TRUE(changer_
                    .ChangeTasks({lease.task_id}, true,
                                 [&](size_t, const TaskView& task) {
                                   return DecideReport(task, report, 0).change;
                                 })
                    .ok());
  }

  Inbox<Answer> answers_;
  ControlBatcher batcher_{store_, changer_, lanes_, clock_};
};

TEST_F(ControlBatcherTest, CancelsAWaitingTaskAtOnce) {
  const TaskId id = StoreOne();

  const Answer answer = Do(ControlAction::kCancel, id, "why");

  EXPECT_EQ(StateOf(answer), TaskState::kCancelled);
  EXPECT_EQ(store_.EndedRow(id)->error->message, "why");
  EXPECT_EQ(StateOf(Do(ControlAction::kCancel, id)), TaskState::kCancelled)
      << "twice is the same as once";
}

TEST_F(ControlBatcherTest, ALeasedTaskIsAskedToStop) {
  const TaskId id = StoreOne();
  Lease(id, 1);

  const Answer answer = Do(ControlAction::kCancel, id);

  EXPECT_EQ(StateOf(answer), TaskState::kDispatched);
  EXPECT_EQ(answer->live->cancel_expire_us, NowUs() + kMinCancelGraceUs);
}

TEST_F(ControlBatcherTest, PausesAndResumesWhatWaits) {
  const TaskId id = StoreOne();

  EXPECT_EQ(StateOf(Do(ControlAction::kPause, id)), TaskState::kPaused);
  EXPECT_EQ(StateOf(Do(ControlAction::kPause, id)), TaskState::kPaused);
  EXPECT_EQ(StateOf(Do(ControlAction::kResume, id)), TaskState::kPending);
  EXPECT_EQ(StateOf(Do(ControlAction::kResume, id)), TaskState::kPending);
}

TEST_F(ControlBatcherTest, RetriesWhatFailed) {
  const TaskId id = StoreOne();
  Fail(Lease(id, 1));
  ASSERT_EQ(store_.EndedRow(id)->state, TaskState::kFailed);

  EXPECT_EQ(StateOf(Do(ControlAction::kRetry, id)), TaskState::kPending);

  const LiveTask row = *store_.LiveRow(id);
  EXPECT_EQ(row.lane_id, lane_);
  EXPECT_EQ(row.lease_number, 2);
  EXPECT_FALSE(store_.EndedRow(id).has_value());
}

TEST_F(ControlBatcherTest, WhatCannotBeDoneSaysInWhichStateTheTaskIs) {
  const TaskId waiting = StoreOne();
  const TaskId leased = StoreOne();
  Lease(leased, 1);
  const TaskId failed = StoreOne();
  Fail(Lease(failed, 1));

  const auto refuse = [&](ControlAction action, TaskId id,
                          const char* because) {
    const Answer answer = Do(action, id);
    EXPECT_EQ(answer.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(answer.status().message()), HasSubstr(because));
  };
  refuse(ControlAction::kPause, leased, "is DISPATCHED, want");
  refuse(ControlAction::kPause, failed, "is FAILED, want");
  refuse(ControlAction::kResume, failed, "is FAILED, want PAUSED");
  refuse(ControlAction::kRetry, waiting,
         "is PENDING, want FAILED or CANCELLED");
  refuse(ControlAction::kCancel, failed, "is FAILED, want");
}

TEST_F(ControlBatcherTest, UnknownTasksAreNotFound) {
  for (const ControlAction action :
       {ControlAction::kCancel, ControlAction::kPause, ControlAction::kResume,
        ControlAction::kRetry}) {
    EXPECT_TRUE(absl::IsNotFound(Do(action, 4711).status()));
  }
}

TEST_F(ControlBatcherTest, TasksOfABatchAreCancelledAndRetriedWithIt) {
  TaskSpec spec = MakeSpec();
  spec.batch_id = 7;
  const TaskId id = StoreOne(spec);

  for (const ControlAction action :
       {ControlAction::kCancel, ControlAction::kRetry}) {
    const Answer answer = Do(action, id);
    EXPECT_TRUE(absl::IsFailedPrecondition(answer.status()));
    EXPECT_THAT(std::string(answer.status().message()), HasSubstr("batch 7"));
  }
  EXPECT_EQ(StateOf(Do(ControlAction::kPause, id)), TaskState::kPaused);
}

TEST_F(ControlBatcherTest, WhatGathersIsOneTransaction) {
  const auto ids = Store(std::vector<TaskSpec>(50, MakeSpec()));
  store_.CloseGate(Role::kControl);
  Start(ControlAction::kPause, ids[0]);
  store_.AwaitBlocked(Role::kControl, 1);
  for (size_t i = 49; i > 0; --i) Start(ControlAction::kPause, ids[i]);
  Start(ControlAction::kResume, ids[49]);
  store_.OpenGate(Role::kControl);

  ASSERT_TRUE(answers_.Await(51));
  EXPECT_EQ(store_.CallsOf(StoreMethod::kChangeTasks), 3)
      << "the first, the rest, and what named a task again";
  EXPECT_EQ(store_.LiveRow(ids[49])->phase, Phase::kWaiting);
  EXPECT_EQ(store_.LiveRow(ids[48])->phase, Phase::kPaused);
}

TEST_F(ControlBatcherTest, OneThatBreaksTheBatchFailsAlone) {
  const auto ids = Store(std::vector<TaskSpec>(3, MakeSpec()));
  store_.CloseGate(Role::kControl);
  Start(ControlAction::kPause, ids[0]);
  store_.AwaitBlocked(Role::kControl, 1);
  Start(ControlAction::kPause, ids[1]);
  Start(ControlAction::kPause, ids[2]);
  // The first alone, the batch, and of that the first alone.
  store_.FailNext(StoreMethod::kChangeTasks, 3, absl::InternalError("1366"));
  store_.OpenGate(Role::kControl);

  ASSERT_TRUE(answers_.Await(3));
  int failed = 0;
  for (const Answer& answer : answers_.All()) failed += answer.ok() ? 0 : 1;
  EXPECT_EQ(failed, 2);
}

TEST_F(ControlBatcherTest, WhatIsDoneIsNotDoneAgainForItsAnswer) {
  const auto ids = Store(std::vector<TaskSpec>(2, MakeSpec()));
  for (const TaskId id : ids) Fail(Lease(id, 1));
  const TaskId first = StoreOne();
  store_.CloseGate(Role::kControl);
  // Its answer comes on the batcher's thread, before the batch behind it.
  batcher_.Control({ControlAction::kPause, first, ""},
                   [this](Answer) { store_.CloseGate(Role::kControl); });
  store_.AwaitBlocked(Role::kControl, 1);
  for (const TaskId id : ids) Start(ControlAction::kRetry, id);
  const int before = store_.CallsOf(StoreMethod::kChangeTasks);
  store_.OpenGate(Role::kControl);
  ASSERT_TRUE(WaitFor(
      [&] { return store_.CallsOf(StoreMethod::kChangeTasks) == before + 1; }));

  store_.FailNext(StoreMethod::kGetTasks, 1, absl::InternalError("1366"));
  store_.OpenGate(Role::kControl);

  ASSERT_TRUE(answers_.Await(2));
  for (const Answer& answer : answers_.All()) {
    EXPECT_EQ(answer.status().code(), absl::StatusCode::kInternal);
  }
  for (const TaskId id : ids) {
    EXPECT_EQ(store_.LiveRow(id)->phase, Phase::kWaiting);
  }
  EXPECT_EQ(store_.CallsOf(StoreMethod::kChangeTasks), before + 1);
}

TEST_F(ControlBatcherTest, TheDatabaseAwayIsSaidAtOnce) {
  const TaskId id = StoreOne();
  store_.SetReachable(false);

  EXPECT_TRUE(absl::IsUnavailable(Do(ControlAction::kCancel, id).status()));

  store_.SetReachable(true);
  EXPECT_EQ(StateOf(Do(ControlAction::kCancel, id)), TaskState::kCancelled);
}

TEST_F(ControlBatcherTest, AfterStopItRefuses) {
  const TaskId id = StoreOne();
  batcher_.Stop();

  EXPECT_TRUE(absl::IsUnavailable(Do(ControlAction::kCancel, id).status()));
}

}  // namespace
}  // namespace leasehold::scheduler
