// Clients and executors in another language, and clients that know nothing but
// what reflection tells them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/support/cluster.h"

namespace leasehold::e2e {
namespace {

using leasehold::v1::Task;
using testing::HasSubstr;

std::string InSource(const std::string& path) {
  return absl::StrCat(LEASEHOLD_SOURCE_DIR "/", path);
}

TEST(Node, ReflectionAloneIsEnoughToUseEverything) {
  Cluster cluster(SharedDatabase());
  SchedulerProcess& scheduler = cluster.StartScheduler();
  cluster.StartExecutor(BuiltInHandlers("q"));

  const std::string output = RunCommand(
      {"node", InSource("tests/e2e/node/reflection.mjs"), scheduler.address()});

  for (const char* service :
       {"leasehold.v1.TaskService", "leasehold.v1.ExecutorService",
        "leasehold.v1.AdminService", "leasehold.v1.BatchService",
        "grpc.health.v1.Health"}) {
    EXPECT_THAT(output, HasSubstr(absl::StrCat("\"", service, "\"")));
  }
  EXPECT_THAT(output, HasSubstr(R"("state":"TASK_STATE_SUCCEEDED")"));
  EXPECT_THAT(output, HasSubstr(R"("result":"{\"n\": 9007199254740993}")"));
  EXPECT_THAT(output, HasSubstr(R"("watched":["TASK_STATE_SUCCEEDED"])"));
  EXPECT_THAT(output, HasSubstr(R"("listed":1)"));
  EXPECT_THAT(output, HasSubstr(R"("code":"INVALID_ARGUMENT")"));
  EXPECT_THAT(output, HasSubstr(R"("all":"SERVING")"));
  EXPECT_THAT(output, HasSubstr(R"("leasehold.v1.TaskService":"SERVING")"));
  EXPECT_THAT(output, HasSubstr(R"("nobody":"NOT_FOUND")"));
}

TEST(Node, TheExampleExecutorRunsTasks) {
  Cluster cluster(SharedDatabase());
  SchedulerProcess& scheduler = cluster.StartScheduler(ShortLeases());
  ChildProcess executor(
      {.argv = {"node", InSource("deploy/examples/node-executor/executor.mjs"),
                scheduler.address()},
       .environment = {},
       .log_path = cluster.folder().File("node.log"),
       .working_folder = ""});
  TaskClient& client = scheduler.client();

  std::vector<std::string> ids;
  for (int i = 0; i < 20; ++i) {
    ids.push_back(
        client.Submit(NewTask("node", "shout", absl::StrCat("hello ", i))));
  }
  // Three leases long, so that its heartbeats have to count.
  const std::string slow =
      client.Submit(NewJsonTask("node", "sleep", R"({"ms": 9000})"));

  for (int i = 0; i < 20; ++i) {
    const Task task = client.Wait(ids[i]);
    EXPECT_EQ(task.state(), leasehold::v1::TASK_STATE_SUCCEEDED)
        << task.ShortDebugString();
    EXPECT_EQ(task.result().json(), absl::StrCat("\"HELLO ", i, "\""));
  }
  const Task slept = client.Wait(slow);
  EXPECT_EQ(slept.state(), leasehold::v1::TASK_STATE_SUCCEEDED);
  EXPECT_EQ(slept.attempt(), 1);
  EXPECT_TRUE(executor.Running()) << executor.Log();
}

TEST(Node, TheExampleExecutorComesBackAfterTheScheduler) {
  Cluster cluster(SharedDatabase());
  SchedulerProcess& scheduler = cluster.StartScheduler(ShortLeases());
  ChildProcess executor(
      {.argv = {"node", InSource("deploy/examples/node-executor/executor.mjs"),
                scheduler.address()},
       .environment = {},
       .log_path = cluster.folder().File("node.log"),
       .working_folder = ""});
  scheduler.client().Wait(
      scheduler.client().Submit(NewTask("node", "shout", "before")));

  scheduler.process().Kill();
  scheduler.Start();

  const Task task = scheduler.client().Wait(
      scheduler.client().Submit(NewTask("node", "shout", "after")));
  EXPECT_EQ(task.result().json(), "\"AFTER\"");
}

}  // namespace
}  // namespace leasehold::e2e
