// What start-up meets: rights, server settings, migrations.
#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "scheduler/store/mysql/mysql_store.h"
#include "tests/scheduler/store/sql_store_fixture.h"

namespace leasehold::scheduler {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class SqlSetupTest : public SqlStoreTest {
 protected:
  // A user who may read and write rows, and nothing else.
  MySqlConfig WithUser(const std::string& database) {
    const std::string user = "'worker'@'localhost'";
    sql().Run("DROP USER IF EXISTS " + user);
    sql().Run("CREATE USER " + user + " IDENTIFIED BY 'it''s \\\\ :secret'");
    sql().Run("GRANT SELECT, INSERT, UPDATE, DELETE ON " + database + ".* TO " +
              user);
    MySqlConfig config = this->config();
    config.db = database;
    config.user = "worker";
    config.password = "it's \\ :secret";
    return config;
  }
};

INSTANTIATE_TEST_SUITE_P(Sql, SqlSetupTest, testing::Values(MakeSqlHarness));

TEST_P(SqlSetupTest, NeedsNoRightButRowsWithACurrentSchema) {
  const MySqlConfig config = WithUser(this->config().db);

  EXPECT_TRUE(CheckServer(config).ok());
  EXPECT_TRUE(Migrate(config, {}).ok());
  const auto store = OpenMySqlStore(config);
  EXPECT_TRUE(store->NowUs().ok());
  const auto submitted = store->SubmitTasks({{{New(Spec())}}});
  EXPECT_TRUE(submitted.ok()) << submitted.status();
  const TaskId id = submitted.value()[0].value()[0].id;
  EXPECT_TRUE(Touch(*store, {id}).ok());
}

TEST_P(SqlSetupTest, SaysWhichStepOfAMigrationLacksARight) {
  const std::string database = Server().CreateDatabase();

  const absl::Status status = Migrate(WithUser(database), {});

  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("creating schema_migrations"));
}

TEST_P(SqlSetupTest, NamesTheRightsThatAUserLacks) {
  const MySqlConfig user = WithUser(config().db);
  sql().Run(absl::StrCat("REVOKE DELETE ON ", user.db,
                         ".* FROM 'worker'@'localhost'"));

  const absl::Status status = Migrate(user, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()), HasSubstr("DELETE on task_live"));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("INSERT on")));
}

TEST_P(SqlSetupTest, RefusesTablesThatAreNotItsOwn) {
  MySqlConfig config = this->config();
  config.db = Server().CreateDatabase();
  sql().Run(absl::StrCat("CREATE TABLE ", config.db, ".task_live (id INT)"));

  const absl::Status foreign = Migrate(config, {});

  EXPECT_EQ(foreign.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(foreign.message()),
              HasSubstr("table task_live lacks a column"));

  config.db = Server().CreateDatabase();
  ASSERT_TRUE(Migrate(config, {}).ok());
  sql().Run(absl::StrCat("DROP TABLE ", config.db, ".task_key"));
  const absl::Status missing = Migrate(config, {});
  EXPECT_EQ(missing.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(missing.message()),
              HasSubstr("table task_key is missing"));
}

TEST_P(SqlSetupTest, MigratesOnceFromManyReplicas) {
  MySqlConfig config = this->config();
  config.db = Server().CreateDatabase();
  std::atomic<int> applied = 0;
  std::vector<std::thread> replicas;
  for (int i = 0; i < 4; ++i) {
    replicas.emplace_back([&] {
      EXPECT_TRUE(Migrate(config, [&](absl::string_view line) {
                    if (line == "schema: applying 0001_tasks") ++applied;
                  }).ok());
    });
  }
  for (std::thread& replica : replicas) replica.join();

  EXPECT_EQ(applied, 1);
  EXPECT_TRUE(OpenMySqlStore(config)->NowUs().ok());
}

TEST_P(SqlSetupTest, RefusesASchemaFromTheFuture) {
  sql().Run("INSERT INTO schema_migrations VALUES (999, 1)");

  const absl::Status status = Migrate(config(), {});

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("version 999"));
}

TEST_P(SqlSetupTest, WarnsOfLostCommitsAndRefusesSmallPackets) {
  const auto report = CheckServer(config());
  const long long packet = sql().Number("SELECT @@global.max_allowed_packet");
  sql().Run("SET GLOBAL max_allowed_packet = 1048576");
  const absl::Status small = CheckServer(config()).status();
  sql().Run(absl::StrCat("SET GLOBAL max_allowed_packet = ", packet));

  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->version,
              HasSubstr(TestedServer() == e2e::DatabaseServer::Kind::kMariaDb
                            ? "MariaDB 1"
                            : "MySQL 9"));
  // Test servers run without fsync.
  EXPECT_THAT(report->warnings,
              Contains(HasSubstr("innodb_flush_log_at_trx_commit=0")));
  EXPECT_THAT(std::string(small.message()), HasSubstr("max_allowed_packet"));
}

TEST_P(SqlSetupTest, SaysWhyItCannotConnect) {
  MySqlConfig wrong_password = config();
  WithUser(config().db);
  wrong_password.user = "worker";
  wrong_password.password = "wrong";
  MySqlConfig no_database = config();
  no_database.db = "no_such_database";
  MySqlConfig nobody_there = config();
  nobody_there.unix_socket = "/nonexistent/s.sock";
  MySqlConfig no_right = WithUser(config().db);
  no_right.db = "mysql";

  const auto text = [](const MySqlConfig& config) {
    return std::string(CheckServer(config).status().message());
  };
  EXPECT_THAT(text(wrong_password), HasSubstr("wrong user or password"));
  EXPECT_THAT(text(no_database), HasSubstr("no such database"));
  EXPECT_THAT(text(nobody_there), HasSubstr("cannot connect"));
  EXPECT_THAT(text(no_right), HasSubstr("may not use this database"));
  for (const MySqlConfig& config :
       {wrong_password, no_database, nobody_there, no_right}) {
    EXPECT_EQ(text(config).find('\n'), std::string::npos);
    EXPECT_EQ(text(config).find("secret"), std::string::npos);
  }
}

TEST_P(SqlSetupTest, RefusesStatementReplication) {
  e2e::DatabaseServer server(
      TestedServer(), e2e::DatabaseServer::Durability::kFast,
      "--log-bin=binlog --binlog-format=STATEMENT --server-id=1");
  const auto config =
      ParseMySqlConfig(server.Address(server.CreateDatabase())).value();

  const absl::Status status = CheckServer(config).status();

  EXPECT_THAT(std::string(status.message()),
              HasSubstr("binlog_format=STATEMENT"));
}

}  // namespace
}  // namespace leasehold::scheduler
