// Clients and executors in another language, and clients that know nothing but
// what reflection tells them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "absl/strings/str_cat.h"
#include "tests/support/cluster.h"

namespace leasehold::e2e {
namespace {

using leasehold::v1::Task;
using testing::HasSubstr;

std::string InSource(const std::string& path) {
  return std::string(LEASEHOLD_SOURCE_DIR) + "/" + path;
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

}  // namespace
}  // namespace leasehold::e2e
