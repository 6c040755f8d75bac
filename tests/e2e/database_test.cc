// The databases that Leasehold runs on, and what they can do to it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "tests/support/cluster.h"

namespace leasehold::e2e {
namespace {

using leasehold::v1::Task;
using testing::HasSubstr;
using testing::Not;

constexpr char kPassword[] = "pass-word-4711";
constexpr char kPayload[] = "payload-marker-0815";

void RunSomeTasks(TaskClient& client, const std::string& prefix,
                  int count = 50) {
  std::vector<Task> tasks;
  for (int i = 0; i < count; ++i)
    tasks.push_back(NewTask("q", "echo", absl::StrCat(prefix, i)));
  const std::vector<std::string> ids = client.SubmitAll(tasks);
  for (int i = 0; i < count; ++i) {
    const Task task = client.Wait(ids[i]);
    ASSERT_EQ(task.state(), leasehold::v1::TASK_STATE_SUCCEEDED);
    ASSERT_EQ(task.result().data(), absl::StrCat(prefix, i));
  }
}

TEST(Database, RunsOnMySql9OverTcpWithItsDefaultAuthentication) {
  DatabaseServer server(DatabaseServer::Kind::kMySql);
  Cluster cluster(server);
  SqlConnection sql(server.socket_path());
  sql.Run(
      absl::StrCat("CREATE USER worker@'127.0.0.1' IDENTIFIED WITH "
                   "caching_sha2_password BY '",
                   kPassword, "'"));
  sql.Run("GRANT ALL ON " + cluster.database() + ".* TO worker@'127.0.0.1'");
  const std::string file =
      cluster.folder().Write("password", std::string(kPassword) + "\n");
  SchedulerProcess scheduler(
      absl::StrCat("host=127.0.0.1 port=", server.port(), " user=worker db=",
                   cluster.database(), " password_file=", file),
      {}, cluster.folder().File("mysql.log"));
  scheduler.Start();
  cluster.StartExecutor(BuiltInHandlers("q"), {}, scheduler.address());

  RunSomeTasks(scheduler.client(), kPayload);

  EXPECT_THAT(scheduler.Log(), Not(HasSubstr(kPassword)));
  EXPECT_THAT(scheduler.Log(), Not(HasSubstr(kPayload)));
}

TEST(Database, SubmitsFailFastWhileItIsAwayAndGoOnAfterwards) {
  DatabaseServer server(DatabaseServer::Kind::kMariaDb);
  Cluster cluster(server);
  SchedulerProcess& scheduler = cluster.StartScheduler(ShortLeases());
  ExecutorProcess& executor = cluster.StartExecutor(BuiltInHandlers("q"));
  RunSomeTasks(scheduler.client(), kPayload);
  const std::string running =
      scheduler.client().Submit(NewJsonTask("q", "sleep", R"({"ms":2000})"));
  scheduler.client().WaitForState(running, leasehold::v1::TASK_STATE_RUNNING);

  server.Stop();
  Task stored;
  const absl::Time asked = absl::Now();
  const grpc::Status status =
      scheduler.client().Submit(NewTask("q", "echo", kPayload), &stored);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE)
      << status.error_message();
  EXPECT_LT(absl::Now() - asked, absl::Seconds(5));
  EXPECT_TRUE(
      Eventually([&] { return scheduler.HttpStatus("/readyz") == 503; }));
  server.Start();

  EXPECT_TRUE(Eventually(
      [&] {
        return scheduler.client().Submit(NewTask("q", "echo"), &stored).ok();
      },
      absl::Seconds(10)));
  // What ran meanwhile was kept and is not run again.
  const Task task = scheduler.client().Wait(running);
  EXPECT_EQ(task.state(), leasehold::v1::TASK_STATE_SUCCEEDED);
  EXPECT_EQ(task.attempt(), 1);
  RunSomeTasks(scheduler.client(), "after ");
  EXPECT_TRUE(scheduler.process().Running());
  EXPECT_THAT(scheduler.Log(), Not(HasSubstr(kPayload)));
  EXPECT_THAT(executor.Log(), Not(HasSubstr(kPayload)));
}

TEST(Database, SurvivesKilledConnections) {
  Cluster cluster(SharedDatabase());
  TaskClient& client = cluster.StartScheduler().client();
  cluster.StartExecutor(BuiltInHandlers("q"));
  SqlConnection sql(cluster.server().socket_path());

  for (int round = 0; round < 5; ++round) {
    for (const Row& row :
         sql.Run("SELECT id FROM information_schema.processlist WHERE db = '" +
                 cluster.database() + "'")) {
      try {
        sql.Run("KILL " + row[0]);
      } catch (const std::runtime_error&) {
        // It ended by itself.
      }
    }
    Task stored;
    ASSERT_TRUE(Eventually(
        [&] { return client.Submit(NewTask("q", "echo"), &stored).ok(); }));
    EXPECT_EQ(client.Wait(stored.id()).state(),
              leasehold::v1::TASK_STATE_SUCCEEDED);
  }
}

TEST(Database, RunsATaskWhoseCommitCameLate) {
  Cluster cluster(SharedDatabase());
  TaskClient& client = cluster.StartScheduler().client();
  cluster.StartExecutor(BuiltInHandlers("q"));
  Task task = NewTask("q", "echo", "late");
  task.mutable_schedule_time()->set_seconds(absl::ToUnixSeconds(absl::Now()) +
                                            3600);
  const std::string late = client.Submit(task);

  // Another replica makes it due, and is slow to commit; younger tasks
  // overtake.
  SqlConnection replica = cluster.Sql();
  replica.Run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
  replica.Run("BEGIN");
  replica.Run(
      "UPDATE task_live SET run_us = CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS "
      "SIGNED) WHERE id = " +
      late);
  RunSomeTasks(client, "young ");
  absl::SleepFor(absl::Seconds(4));
  RunSomeTasks(client, "younger ");
  replica.Run("COMMIT");

  EXPECT_EQ(client.Wait(late, absl::Seconds(10)).state(),
            leasehold::v1::TASK_STATE_SUCCEEDED);
}

TEST(Database, TreatsSnapshotIsolationConflictsAsRetries) {
  Cluster cluster(SharedDatabase());
  SqlConnection sql(cluster.server().socket_path());
  sql.Run("SET GLOBAL innodb_snapshot_isolation = ON");
  SchedulerProcess& one = cluster.StartScheduler();
  SchedulerProcess& two = cluster.StartScheduler();
  cluster.StartExecutor(BuiltInHandlers("q"), {}, one.address());
  cluster.StartExecutor(BuiltInHandlers("q"), {}, two.address());

  RunSomeTasks(one.client(), "x", 1000);

  sql.Run("SET GLOBAL innodb_snapshot_isolation = OFF");
}

TEST(Database, AChangedTimeZoneMovesNothing) {
  Cluster cluster(SharedDatabase());
  TaskClient& client = cluster.StartScheduler(ShortLeases()).client();
  cluster.StartExecutor(BuiltInHandlers("q"));
  SqlConnection sql(cluster.server().socket_path());
  const std::string running =
      client.Submit(NewJsonTask("q", "sleep", R"({"ms":6000})"));
  client.WaitForState(running, leasehold::v1::TASK_STATE_RUNNING);

  sql.Run("SET GLOBAL time_zone = '+09:00'");
  // New connections see the new zone.
  for (const Row& row :
       sql.Run("SELECT id FROM information_schema.processlist WHERE db = '" +
               cluster.database() + "'")) {
    sql.Run("KILL " + row[0]);
  }
  Task stored;
  ASSERT_TRUE(Eventually(
      [&] { return client.Submit(NewTask("q", "echo"), &stored).ok(); }));
  const Task task = client.Wait(running);
  sql.Run("SET GLOBAL time_zone = 'SYSTEM'");

  EXPECT_EQ(task.attempt(), 1);
  EXPECT_EQ(client.Wait(stored.id()).state(),
            leasehold::v1::TASK_STATE_SUCCEEDED);
  EXPECT_LT(std::abs(stored.create_time().seconds() -
                     absl::ToUnixSeconds(absl::Now())),
            60);
}

TEST(Database, LogsHoldNoPayload) {
  Cluster cluster(SharedDatabase());
  SchedulerProcess& scheduler = cluster.StartScheduler({"--log_level=debug"});
  TaskClient& client = scheduler.client();
  ExecutorProcess& executor =
      cluster.StartExecutor(BuiltInHandlers("q"), {"--log_level=debug"});
  ExecutorProcess& shell = cluster.StartExecutor(
      ShellHandler("sh", "bad", "cat >&2; exit 1"), {"--log_level=debug"});
  RunSomeTasks(client, kPayload);
  Task failing = NewTask("sh", "bad", kPayload);
  failing.mutable_retry_policy()->set_max_attempts(1);
  failing.set_idempotency_key(kPassword);
  const Task failed = client.Wait(client.Submit(failing));
  ASSERT_EQ(failed.state(), leasehold::v1::TASK_STATE_FAILED);
  // A statement that fails, with the payload in it.
  cluster.Sql().Run("RENAME TABLE task_body TO task_body_away");
  Task stored;
  EXPECT_FALSE(client.Submit(NewTask("q", "echo", kPayload), &stored).ok());
  cluster.Sql().Run("RENAME TABLE task_body_away TO task_body");

  for (const std::string& log :
       {scheduler.Log(), executor.Log(), shell.Log()}) {
    EXPECT_FALSE(log.empty());
    EXPECT_THAT(log, Not(HasSubstr(kPayload)));
    EXPECT_THAT(log, Not(HasSubstr(kPassword)));
  }
  EXPECT_THAT(scheduler.HttpBody("/metrics"), Not(HasSubstr(kPayload)));
}

}  // namespace
}  // namespace leasehold::e2e
