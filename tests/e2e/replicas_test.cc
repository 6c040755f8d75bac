// Several schedulers over one database.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <set>

#include "absl/strings/str_cat.h"
#include "tests/support/cluster.h"

namespace leasehold::e2e {
namespace {

using leasehold::v1::Task;

TEST(Replicas, ATaskSubmittedToOneWithoutExecutorsStartsThroughTheOther) {
  Cluster cluster(SharedDatabase());
  cluster.StartScheduler();
  cluster.StartExecutor(BuiltInHandlers("q"));
  // Joins late; no executor knows it.
  SchedulerProcess& late = cluster.StartScheduler();

  const absl::Time began = absl::Now();
  const Task task =
      late.client().Wait(late.client().Submit(NewTask("q", "echo", "hello")));

  EXPECT_EQ(task.state(), leasehold::v1::TASK_STATE_SUCCEEDED);
  EXPECT_EQ(task.result().data(), "hello");
  EXPECT_LT(absl::Now() - began, absl::Seconds(5));
}

TEST(Replicas, WatchOnOneSeesTheEndThatTheOtherWrote) {
  Cluster cluster(SharedDatabase());
  SchedulerProcess& first = cluster.StartScheduler();
  SchedulerProcess& second = cluster.StartScheduler();
  const std::string id =
      first.client().Submit(NewJsonTask("q", "sleep", R"({"ms":500})"));
  leasehold::v1::WatchTaskRequest request;
  request.set_task_id(id);
  const auto context = ContextWithTimeout();
  const auto stream = second.client().stub().WatchTask(context.get(), request);
  Task task;
  ASSERT_TRUE(stream->Read(&task));

  cluster.StartExecutor(BuiltInHandlers("q"));
  while (stream->Read(&task)) {
  }
  const absl::Time told = absl::Now();

  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(task.state(), leasehold::v1::TASK_STATE_SUCCEEDED);
  EXPECT_LT(told - absl::FromUnixSeconds(task.finish_time().seconds()),
            absl::Seconds(3));
}

TEST(Replicas, TwoReplicasNeverRunOneTaskTwice) {
  Cluster cluster(SharedDatabase());
  SchedulerProcess& first = cluster.StartScheduler();
  SchedulerProcess& second = cluster.StartScheduler();
  for (const std::string& address : {first.address(), second.address()}) {
    cluster.StartExecutor(BuiltInHandlers("q", 8), {}, address);
    cluster.StartExecutor(BuiltInHandlers("q", 8), {}, address);
  }
  std::vector<std::string> ids;
  for (TaskClient* client : {&first.client(), &second.client()}) {
    for (const std::string& id : client->SubmitAll(
             std::vector<Task>(1000, NewTask("q", "echo", "x")))) {
      ids.push_back(id);
    }
  }

  ASSERT_TRUE(first.client().WaitForCount(
      "q", leasehold::v1::TASK_STATE_SUCCEEDED, ids.size()));

  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), 2000u);
  EXPECT_EQ(cluster.Sql().Number("SELECT COUNT(*) FROM task_result"), 2000);
  EXPECT_EQ(cluster.Sql().Number(
                "SELECT COUNT(*) FROM task_result WHERE lease_number <> 1"),
            0);
}

TEST(Replicas, AnExecutorMovesOnWhenItsReplicaDrains) {
  Cluster cluster(SharedDatabase());
  SchedulerProcess& first = cluster.StartScheduler(ShortLeases());
  SchedulerProcess& second = cluster.StartScheduler(ShortLeases());
  cluster.StartExecutor("scheduler: \"" + second.address() + "\"\n" +
                        BuiltInHandlers("q"));
  const std::string id =
      first.client().Submit(NewJsonTask("q", "sleep", R"({"ms":5000})"));
  first.client().WaitForState(id, leasehold::v1::TASK_STATE_RUNNING);

  first.process().Signal(SIGTERM);
  EXPECT_EQ(first.process().WaitForExit(absl::Seconds(10)), 0);

  const Task task = second.client().Wait(id);
  EXPECT_EQ(task.state(), leasehold::v1::TASK_STATE_SUCCEEDED);
  EXPECT_EQ(task.attempt(), 1);
  const std::string next = second.client().Submit(NewTask("q", "echo"));
  EXPECT_EQ(second.client().Wait(next).state(),
            leasehold::v1::TASK_STATE_SUCCEEDED);
}

}  // namespace
}  // namespace leasehold::e2e
