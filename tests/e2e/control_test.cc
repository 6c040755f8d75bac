// What people do to tasks and queues while executors work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "leasehold/v1/admin_service.grpc.pb.h"
#include "tests/support/cluster.h"
#include "tests/support/poll.h"

namespace leasehold::e2e {
namespace {

using leasehold::v1::Task;
using testing::HasSubstr;

grpc::Status Cancel(TaskClient& client, const std::string& id, Task* task,
                    const std::string& reason = "") {
  leasehold::v1::CancelTaskRequest request;
  request.set_task_id(id);
  request.set_reason(reason);
  return client.stub().CancelTask(ContextWithTimeout().get(), request, task);
}

grpc::Status Pause(TaskClient& client, const std::string& id, Task* task) {
  leasehold::v1::PauseTaskRequest request;
  request.set_task_id(id);
  return client.stub().PauseTask(ContextWithTimeout().get(), request, task);
}

grpc::Status Resume(TaskClient& client, const std::string& id, Task* task) {
  leasehold::v1::ResumeTaskRequest request;
  request.set_task_id(id);
  return client.stub().ResumeTask(ContextWithTimeout().get(), request, task);
}

grpc::Status Retry(TaskClient& client, const std::string& id, Task* task) {
  leasehold::v1::RetryTaskRequest request;
  request.set_task_id(id);
  return client.stub().RetryTask(ContextWithTimeout().get(), request, task);
}

grpc::Status SetPaused(TaskClient& client, const std::string& queue,
                       bool paused, leasehold::v1::Queue* answer) {
  const auto admin = leasehold::v1::AdminService::NewStub(client.channel());
  if (paused) {
    leasehold::v1::PauseQueueRequest request;
    request.set_name(queue);
    return admin->PauseQueue(ContextWithTimeout().get(), request, answer);
  }
  leasehold::v1::ResumeQueueRequest request;
  request.set_name(queue);
  return admin->ResumeQueue(ContextWithTimeout().get(), request, answer);
}

TEST(Control, AWaitingTaskIsCancelledWhenTheCallReturns) {
  Cluster cluster(SharedDatabase());
  TaskClient& client = cluster.StartScheduler().client();
  const std::string id = client.Submit(NewTask("q", "echo"));
  Task task;

  const grpc::Status status = Cancel(client, id, &task, "duplicate order");

  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(task.state(), leasehold::v1::TASK_STATE_CANCELLED);
  EXPECT_EQ(client.Get(id).error().message(), "duplicate order");
  EXPECT_TRUE(Cancel(client, id, &task).ok()) << "twice is the same as once";
  cluster.StartExecutor(BuiltInHandlers("q"));
  EXPECT_EQ(client.Wait(client.Submit(NewTask("q", "echo"))).state(),
            leasehold::v1::TASK_STATE_SUCCEEDED);
  EXPECT_EQ(client.Get(id).attempt(), 0) << "and it never runs";
}

TEST(Control, ACancelReachesTheRunningHandlersProcesses) {
  Cluster cluster(SharedDatabase());
  TaskClient& client = cluster.StartScheduler(ShortLeases()).client();
  const std::string log = cluster.folder().File("effects");
  cluster.StartExecutor(ShellHandler(
      "q", "work", absl::StrCat("echo start >>", log, "; sleep 60")));
  const std::string id = client.Submit(NewTask("q", "work"));
  client.WaitForState(id, leasehold::v1::TASK_STATE_RUNNING);
  Task task;

  const absl::Time asked = absl::Now();
  ASSERT_TRUE(Cancel(client, id, &task, "enough").ok());
  EXPECT_TRUE(task.cancel_requested());
  const Task ended = client.Wait(id);

  EXPECT_EQ(ended.state(), leasehold::v1::TASK_STATE_CANCELLED);
  EXPECT_EQ(ended.error().message(), "enough");
  EXPECT_LT(absl::Now() - asked, absl::Seconds(10));
}

TEST(Control, ACancelThroughAnotherReplicaComesWithTheNextHeartbeat) {
  Cluster cluster(SharedDatabase());
  SchedulerProcess& first = cluster.StartScheduler(ShortLeases());
  SchedulerProcess& second = cluster.StartScheduler(ShortLeases());
  cluster.StartExecutor(BuiltInHandlers("q"), {}, first.address());
  const std::string id =
      first.client().Submit(NewJsonTask("q", "sleep", R"({"ms":60000})"));
  first.client().WaitForState(id, leasehold::v1::TASK_STATE_RUNNING);
  Task task;

  const absl::Time asked = absl::Now();
  ASSERT_TRUE(Cancel(second.client(), id, &task).ok());

  EXPECT_EQ(second.client().Wait(id).state(),
            leasehold::v1::TASK_STATE_CANCELLED);
  EXPECT_LT(absl::Now() - asked, absl::Seconds(10));
}

TEST(Control, APausedTaskWaitsUntilItIsResumed) {
  Cluster cluster(SharedDatabase());
  TaskClient& client = cluster.StartScheduler().client();
  const std::string id = client.Submit(NewTask("q", "echo"));
  Task task;
  ASSERT_TRUE(Pause(client, id, &task).ok());
  EXPECT_EQ(task.state(), leasehold::v1::TASK_STATE_PAUSED);

  cluster.StartExecutor(BuiltInHandlers("q"));
  client.Wait(client.Submit(NewTask("q", "echo")));
  EXPECT_EQ(client.Get(id).state(), leasehold::v1::TASK_STATE_PAUSED);
  ASSERT_TRUE(Resume(client, id, &task).ok());

  EXPECT_EQ(client.Wait(id).state(), leasehold::v1::TASK_STATE_SUCCEEDED);
  const grpc::Status late = Pause(client, id, &task);
  EXPECT_EQ(late.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(late.error_message(), HasSubstr("is SUCCEEDED"));
}

TEST(Control, ARetriedTaskRunsAgainWithAFreshBudget) {
  Cluster cluster(SharedDatabase());
  TaskClient& client = cluster.StartScheduler().client();
  const std::string flag = cluster.folder().File("flag");
  cluster.StartExecutor(ShellHandler(
      "q", "work",
      absl::StrCat("test -e ", flag, " || exit 65; echo '{\"ok\":1}'")));
  const std::string id = client.Submit(NewTask("q", "work"));
  ASSERT_EQ(client.Wait(id).state(), leasehold::v1::TASK_STATE_FAILED);
  cluster.folder().Write("flag", "");
  Task task;

  ASSERT_TRUE(Retry(client, id, &task).ok());

  const Task again = client.Wait(id);
  EXPECT_EQ(again.state(), leasehold::v1::TASK_STATE_SUCCEEDED);
  EXPECT_EQ(again.attempt(), 1);
  EXPECT_EQ(client.Get(id).attempts_size(), 1) << "the history stays";
  EXPECT_EQ(Retry(client, id, &task).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
}

TEST(Control, APausedQueueIsLeasedByNoReplica) {
  Cluster cluster(SharedDatabase());
  SchedulerProcess& first = cluster.StartScheduler();
  SchedulerProcess& second = cluster.StartScheduler();
  for (const std::string& address : {first.address(), second.address()}) {
    cluster.StartExecutor(BuiltInHandlers("q", 8), {}, address);
  }
  first.client().Wait(first.client().Submit(NewTask("q", "echo")));
  leasehold::v1::Queue queue;

  const grpc::Status paused = SetPaused(first.client(), "q", true, &queue);
  ASSERT_TRUE(paused.ok()) << paused.error_message();
  EXPECT_TRUE(queue.paused());
  std::vector<std::string> ids;
  for (TaskClient* client : {&first.client(), &second.client()}) {
    for (int i = 0; i < 20; ++i) {
      ids.push_back(client->Submit(NewTask("q", "echo")));
    }
  }
  absl::SleepFor(absl::Seconds(2));
  EXPECT_EQ(cluster.Sql().Number(
                "SELECT COUNT(*) FROM task_live WHERE lease_number = 0"),
            40);

  ASSERT_TRUE(SetPaused(second.client(), "q", false, &queue).ok());
  for (const std::string& id : ids) {
    EXPECT_EQ(first.client().Wait(id).state(),
              leasehold::v1::TASK_STATE_SUCCEEDED);
  }
  EXPECT_EQ(SetPaused(first.client(), "none", true, &queue).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST(Control, APausedQueueStaysPausedOverARestart) {
  Cluster cluster(SharedDatabase());
  SchedulerProcess& scheduler = cluster.StartScheduler();
  cluster.StartExecutor(BuiltInHandlers("q"));
  scheduler.client().Wait(scheduler.client().Submit(NewTask("q", "echo")));
  leasehold::v1::Queue queue;
  ASSERT_TRUE(SetPaused(scheduler.client(), "q", true, &queue).ok());

  scheduler.process().Kill();
  scheduler.Start();
  const std::string id = scheduler.client().Submit(NewTask("q", "echo"));
  absl::SleepFor(absl::Seconds(3));

  EXPECT_EQ(scheduler.client().Get(id).state(),
            leasehold::v1::TASK_STATE_PENDING);
  ASSERT_TRUE(SetPaused(scheduler.client(), "q", false, &queue).ok());
  EXPECT_EQ(scheduler.client().Wait(id).state(),
            leasehold::v1::TASK_STATE_SUCCEEDED);
}

}  // namespace
}  // namespace leasehold::e2e
