#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/engine/polling_watch_hub.h"
#include "tests/scheduler/engine/core_fixture.h"

namespace leasehold::scheduler {
namespace {

using Update = absl::StatusOr<TaskRecord>;

class WatchHubTest : public CoreFixture {
 protected:
  WatchHubTest() { changer_.AddListener(&hub_); }
  ~WatchHubTest() override { hub_.Stop(); }

  TaskWatchHub::WatchId Watch(TaskId id) {
    return hub_.Watch(id, [this](Update update) { updates_.Add(update); })
        .value();
  }
  // Its report comes in through this replica's changer.
  void Finish(const LeaseRef& lease) {
    Report report;
    report.lease = lease;
    report.holder = 1;
    report.outcome = Payload{PayloadKind::kJson, "42"};
    ASSERT_TRUE(
        changer_
            .ChangeTasks({lease.task_id}, true,
                         [&](size_t, const TaskView& task) {
                           return DecideReport(task, report, 0.5).change;
                         })
            .ok());
  }

  Inbox<Update> updates_;
  PollingWatchHub hub_{store_, bounds_, Clock::Real()};
};

TEST_F(WatchHubTest, TheFirstUpdateComesAtOnce) {
  const TaskId id = StoreOne();
  Watch(id);

  ASSERT_TRUE(updates_.Await(1));
  EXPECT_EQ(updates_.All()[0]->live->state, TaskState::kPending);
}

TEST_F(WatchHubTest, AnUnknownTaskIsNotFound) {
  Watch(404);

  ASSERT_TRUE(updates_.Await(1));
  EXPECT_EQ(updates_.All()[0].status().code(), absl::StatusCode::kNotFound);
}

TEST_F(WatchHubTest, TheTerminalUpdateComesAlwaysAndLast) {
  const TaskId id = StoreOne();
  Watch(id);
  ASSERT_TRUE(updates_.Await(1));

  Finish(Lease(id, 1));

  ASSERT_TRUE(updates_.Await(2));
  ASSERT_TRUE(updates_.All().back()->ended.has_value());
  EXPECT_EQ(updates_.All().back()->ended->result.bytes, "42");
  hub_.Stop();  // Has nobody to tell.
  EXPECT_TRUE(updates_.All().back().ok());
}

TEST_F(WatchHubTest, TheEndIsToldBeforeTheMergeTimeIsOver) {
  const TaskId id = StoreOne();
  // On a clock that stands still that time never passes.
  PollingWatchHub hub(store_, bounds_, clock_);
  changer_.AddListener(&hub);
  Inbox<Update> updates;
  ASSERT_TRUE(hub.Watch(id, [&](Update update) { updates.Add(update); }).ok());
  ASSERT_TRUE(updates.Await(1));

  Finish(Lease(id, 1));

  ASSERT_TRUE(updates.Await(2));
  EXPECT_TRUE(updates.All().back()->ended.has_value());
  hub.Stop();
}

TEST_F(WatchHubTest, ChangesOfOtherReplicasAreFoundByPolling) {
  const TaskId id = StoreOne();
  Watch(id);
  ASSERT_TRUE(updates_.Await(1));

  Lease(id, 1);  // Straight in the database.

  ASSERT_TRUE(updates_.Await(2));
  EXPECT_EQ(updates_.All()[1]->live->state, TaskState::kDispatched);
}

TEST_F(WatchHubTest, ProgressIsToldWhenItWasTouched) {
  const TaskId id = StoreOne();
  const LeaseRef lease = Lease(id, 1);
  Watch(id);
  ASSERT_TRUE(updates_.Await(1));
  LeaseUpdate update;
  update.lease = lease;
  update.holder = 1;
  update.progress = Progress{1, 2, "half"};
  ASSERT_TRUE(store_.SaveLeaseUpdates({update}).ok());

  hub_.OnTouched({id});

  ASSERT_TRUE(updates_.Await(2));
  EXPECT_EQ(updates_.All()[1]->progress->done, 1);
}

TEST_F(WatchHubTest, WhatDidNotChangeIsNotTold) {
  const TaskId id = StoreOne();
  Watch(id);
  ASSERT_TRUE(updates_.Await(1));
  const int reads = store_.CallsOf(StoreMethod::kGetTasks);

  hub_.OnTouched({id});
  ASSERT_TRUE(WaitFor(
      [&] { return store_.CallsOf(StoreMethod::kGetTasks) > reads + 1; }));

  EXPECT_EQ(updates_.size(), 1u);
}

TEST_F(WatchHubTest, EveryWatcherOfATaskIsTold) {
  const TaskId id = StoreOne();
  Watch(id);
  Watch(id);
  ASSERT_TRUE(updates_.Await(2));

  Finish(Lease(id, 1));

  EXPECT_TRUE(updates_.Await(4));
}

TEST_F(WatchHubTest, NothingIsToldAfterUnwatch) {
  const TaskId id = StoreOne();
  const auto watch = Watch(id);
  ASSERT_TRUE(updates_.Await(1));

  hub_.Unwatch(watch);
  Finish(Lease(id, 1));
  hub_.Stop();

  EXPECT_EQ(updates_.size(), 1u);
}

TEST_F(WatchHubTest, UnwatchWaitsForAnUpdateUnderWay) {
  std::atomic<bool> inside = false, leave = false, left = false;
  const auto watch = hub_.Watch(StoreOne(),
                                [&](Update) {
                                  inside = true;
                                  WaitFor([&] { return leave.load(); });
                                  left = true;
                                })
                         .value();
  ASSERT_TRUE(WaitFor([&] { return inside.load(); }));
  std::thread releaser([&] { leave = true; });

  hub_.Unwatch(watch);

  EXPECT_TRUE(left);
  releaser.join();
}

TEST_F(WatchHubTest, AnUpdateMayUnwatchItself) {
  std::atomic<TaskWatchHub::WatchId> watch = 0;
  std::atomic<int> told = 0;
  const TaskId id = StoreOne();
  watch = hub_.Watch(id,
                     [&](Update) {
                       WaitFor([&] { return watch != 0; });
                       hub_.Unwatch(watch);
                       ++told;
                     })
              .value();
  ASSERT_TRUE(WaitFor([&] { return told == 1; }));

  Finish(Lease(id, 1));
  hub_.Stop();

  EXPECT_EQ(told, 1);
}

TEST_F(WatchHubTest, StopEndsAllWatches) {
  Watch(StoreOne());
  Watch(StoreOne());
  ASSERT_TRUE(updates_.Await(2));

  hub_.Stop();

  ASSERT_EQ(updates_.size(), 4u);
  EXPECT_EQ(updates_.All()[2].status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(hub_.Watch(1, [](Update) {}).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(WatchHubTest, WatchesAreBounded) {
  bounds_.watches = 1;
  PollingWatchHub small(store_, bounds_, Clock::Real());
  const TaskId id = StoreOne();
  const auto first = small.Watch(id, [](Update) {});
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(small.Watch(id, [](Update) {}).status().code(),
            absl::StatusCode::kResourceExhausted);

  small.Unwatch(*first);

  EXPECT_TRUE(small.Watch(id, [](Update) {}).ok());
}

TEST_F(WatchHubTest, AReadThatFailedIsRepeated) {
  const TaskId id = StoreOne();
  store_.FailNext(StoreMethod::kGetTasks, 1, absl::UnavailableError("away"));
  Watch(id);

  ASSERT_TRUE(updates_.Await(1));
  EXPECT_TRUE(updates_.All()[0].ok());
}

}  // namespace
}  // namespace leasehold::scheduler
