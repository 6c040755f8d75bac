// A program that cannot start says why in one line and exits with status 2.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <sstream>

#include "absl/strings/str_cat.h"
#include "tests/support/cluster.h"
#include "tests/support/free_port.h"

namespace leasehold::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Outcome {
  std::optional<int> status;
  std::string log;
};

class Startup : public testing::Test {
 protected:
  // Runs the program until it ends by itself.
  Outcome RunProgram(const std::string& name, const Flags& flags,
                     const std::string& mysql) {
    std::vector<std::string> argv = {Binary(name)};
    argv.insert(argv.end(), flags.begin(), flags.end());
    ChildProcess process(
        {.argv = argv,
         .environment = {{"LEASEHOLD_MYSQL", mysql}},
         .log_path = folder_.File(absl::StrCat("log-", ++runs_)),
         .working_folder = ""});
    Outcome outcome;
    outcome.status = process.WaitForExit(absl::Seconds(30));
    outcome.log = process.Log();
    return outcome;
  }
  Outcome RunScheduler(const std::string& mysql, Flags flags = {}) {
    flags.push_back("--listen=" + LoopbackAddress(FreePort()));
    flags.push_back("--http_listen=" + LoopbackAddress(FreePort()));
    return RunProgram("leasehold-scheduler", flags, mysql);
  }
  Outcome RunExecutor(const std::string& config, const Flags& flags = {}) {
    Flags all = flags;
    all.push_back("--config=" + folder_.Write("executor.textproto", config));
    return RunProgram("leasehold-executor", all, "");
  }
  std::string NewDatabase() {
    return SharedDatabase().Address(SharedDatabase().CreateDatabase());
  }

  TempFolder folder_;
  int runs_ = 0;
};

// Whatever was logged on the way, the last line says it all, and only that
// line.
void ExpectRefusal(const Outcome& outcome, const std::string& named) {
  EXPECT_EQ(outcome.status, 2) << outcome.log;
  std::vector<std::string> refusals;
  std::istringstream lines(outcome.log);
  std::string last;
  for (std::string line; std::getline(lines, line); last = line) {
    const bool logged =
        line.size() > 4 && line.compare(0, 2, "20") == 0 && line[4] == '-';
    if (!logged) refusals.push_back(line);
  }
  ASSERT_EQ(refusals.size(), 1u) << outcome.log;
  EXPECT_EQ(refusals[0], last) << outcome.log;
  EXPECT_THAT(last, HasSubstr(named));
}

TEST_F(Startup, NamesADatabaseThatIsNotThere) {
  const int port = FreePort();
  ExpectRefusal(RunScheduler(absl::StrCat("host=127.0.0.1 port=", port,
                                          " user=root db=x")),
                std::to_string(port));
}

TEST_F(Startup, NamesADatabaseThatDoesNotExist) {
  ExpectRefusal(RunScheduler(SharedDatabase().Address("no_such_database")),
                "no_such_database");
}

TEST_F(Startup, NamesAMissingRight) {
  const std::string database = SharedDatabase().CreateDatabase();
  SqlConnection sql(SharedDatabase().socket_path());
  sql.Run("CREATE USER IF NOT EXISTS reader@localhost");
  sql.Run("GRANT SELECT ON " + database + ".* TO reader@localhost");

  ExpectRefusal(
      RunScheduler(absl::StrCat("unix_socket=", SharedDatabase().socket_path(),
                                " user=reader db=", database)),
      "lacks a right");
}

TEST_F(Startup, NeedsNoDdlRightWithACurrentSchema) {
  const std::string database = SharedDatabase().CreateDatabase();
  SqlConnection sql(SharedDatabase().socket_path());
  sql.Run("CREATE USER IF NOT EXISTS writer@localhost");
  sql.Run("GRANT SELECT, INSERT, UPDATE, DELETE ON " + database +
          ".* TO writer@localhost");
  const Outcome migrated = RunProgram("leasehold-scheduler", {"--migrate_only"},
                                      SharedDatabase().Address(database));
  ASSERT_EQ(migrated.status, 0) << migrated.log;

  SchedulerProcess scheduler(
      absl::StrCat("unix_socket=", SharedDatabase().socket_path(),
                   " user=writer db=", database),
      {}, folder_.File("scheduler.log"));
  scheduler.Start();

  EXPECT_FALSE(scheduler.client().Submit(NewTask("q", "t")).empty());
}

TEST_F(Startup, NamesABusyPort) {
  const int busy = ListenOnLoopback(0);
  const std::string address = LoopbackAddress(BoundPort(busy));
  const std::string free = LoopbackAddress(FreePort());

  ExpectRefusal(RunProgram("leasehold-scheduler",
                           {"--listen=" + address, "--http_listen=" + free},
                           NewDatabase()),
                address);
  ExpectRefusal(RunProgram("leasehold-scheduler",
                           {"--listen=" + free, "--http_listen=" + address},
                           NewDatabase()),
                address);
  close(busy);
}

TEST_F(Startup, ReportsAllWrongFlagsAtOnce) {
  const Outcome outcome = RunScheduler(
      "port=nine", {"--lease_duration=2s", "--heartbeat_interval=5s",
                    "--accept_timeout=-1s"});

  EXPECT_EQ(outcome.status, 2) << outcome.log;
  EXPECT_THAT(
      outcome.log,
      AllOf(HasSubstr("--lease_duration"), HasSubstr("--heartbeat_interval"),
            HasSubstr("--accept_timeout"), HasSubstr("port")));
}

TEST_F(Startup, RefusesAStatementBinlog) {
  DatabaseServer server(DatabaseServer::Kind::kMariaDb,
                        DatabaseServer::Durability::kFast,
                        "--log-bin --binlog-format=STATEMENT");

  ExpectRefusal(RunScheduler(server.Address(server.CreateDatabase())),
                "binlog_format");
}

TEST_F(Startup, NamesAnUnknownHandler) {
  const Outcome outcome = RunExecutor(
      "scheduler: \"127.0.0.1:1\"\nqueue { name: \"q\" handler { type: \"t\" "
      "teleport {} } }\n");

  ExpectRefusal(outcome, "teleport");
}

TEST_F(Startup, NamesAHandlerTypeWithoutAHandler) {
  ExpectRefusal(RunExecutor("scheduler: \"127.0.0.1:1\"\nqueue { name: \"q\" "
                            "handler { type: \"lonely\" } }\n"),
                "lonely");
}

TEST_F(Startup, NamesAMissingConfigFile) {
  ExpectRefusal(
      RunProgram("leasehold-executor", {"--config=/no/such/file"}, ""),
      "/no/such/file");
}

TEST_F(Startup, TwoSchedulersMigrateAnEmptyDatabaseAtOnce) {
  Cluster cluster(SharedDatabase());
  SchedulerProcess& first = cluster.AddScheduler();
  SchedulerProcess& second = cluster.AddScheduler();

  first.Launch();
  second.Launch();
  first.WaitUntilServing();
  second.WaitUntilServing();

  const std::string id = first.client().Submit(NewTask("q", "t"));
  EXPECT_EQ(second.client().Get(id).id(), id);
}

}  // namespace
}  // namespace leasehold::e2e
