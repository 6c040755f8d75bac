// Plans of the hot path's statements with a million waiting and a million
// finished tasks: no sort, no scan, and rows read in proportion to the result.
// The statements are the store's own, from statements.h.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "scheduler/store/mysql/mysql_store.h"
#include "scheduler/store/mysql/statements.h"
#include "tests/scheduler/store/sql_harness.h"

namespace leasehold::scheduler {
namespace {

constexpr int64_t kWaiting = 1'000'000;
constexpr int64_t kLeased = 2'000;
constexpr int64_t kFirstFinished = 2'000'001;
constexpr int64_t kNow = 1'796'000'000'000'000;  // Before this server's clock.

class Tables {
 public:
  Tables() : database_(Server().CreateDatabase()) {
    const auto config = ParseMySqlConfig(Server().Address(database_)).value();
    const absl::Status migrated = Migrate(config, {});
    EXPECT_TRUE(migrated.ok()) << migrated;
    sql_ =
        std::make_unique<e2e::SqlConnection>(Server().socket_path(), database_);
    Load();
  }

  e2e::SqlConnection& sql() { return *sql_; }

 private:
  void Load() {
    Run("SET SESSION unique_checks = 0");
    if (TestedServer() == e2e::DatabaseServer::Kind::kMySql) {
      Run("SET SESSION explain_format = 'TRADITIONAL'");
    }
    Run("SET SESSION time_zone = '+00:00'");
    Run("CREATE TABLE n (n INT NOT NULL PRIMARY KEY)");
    Run("INSERT INTO n VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)");
    Run("CREATE TABLE thousand (n INT NOT NULL PRIMARY KEY)");
    Run("INSERT INTO thousand SELECT a.n + 10 * b.n + 100 * c.n FROM n a, n b, "
        "n c");
    Run("INSERT INTO lanes VALUES (1,'q','a'),(2,'q','b'),(3,'q','c'),"
        "(4,'q','d')");
    Run("INSERT INTO executors VALUES (1,'e','1',1)");
    const std::string number = "1000 * a.n + b.n + 1";
    // In id order, a lane and a priority after the other.
    Run(absl::StrCat(
        "INSERT INTO task_live SELECT x, 1 + x % 4, 0, 1, x % 10, 0, ", kNow,
        " + x, 0, 0, 0, 0, 0, 2, 0, 0, 0, ", kNow, ", 0, 0 FROM (SELECT ",
        number, " AS x FROM thousand a, thousand b) numbers ORDER BY x"));
    Run(
        absl::StrCat("UPDATE task_live SET phase = 1, state = 2, holder = 1, "
                     "lease_number = 1, lease_end = 0, lease_expire_us = ",
                     kNow, " WHERE id <= ", kLeased));
    for (const int64_t first : {int64_t{1}, kFirstFinished}) {
      Run(absl::StrCat(
          "INSERT INTO task_body SELECT x + ", first - 1, ", ", kNow,
          ", 1 + x % 4, x % 10, 1, 0, 0, 0, 0, '', '', '', '', '', '{}' FROM "
          "(SELECT ",
          number, " AS x FROM thousand a, thousand b) numbers ORDER BY x"));
    }
    Run(absl::StrCat(
        "INSERT INTO task_result SELECT x + ", kFirstFinished - 1, ", ", kNow,
        " + x, 1 + x % 4, 6 + x % 3, 0, 1, 1, 0, 1, 0, 1, NULL, '', '', 0, '' "
        "FROM (SELECT ",
        number, " AS x FROM thousand a, thousand b) numbers ORDER BY x"));
    Run(
        absl::StrCat("INSERT INTO task_expiry SELECT id, run_us FROM "
                     "task_live WHERE id <= 100000"));
    Run("INSERT INTO task_key SELECT 'q', CONCAT('key-', id), id, '' FROM "
        "task_live WHERE id <= 100000");
    Run("ANALYZE TABLE task_live, task_body, task_result, task_expiry, "
        "task_key, lanes, executors");
  }

  void Run(const std::string& statement) { sql_->Run(statement); }

  std::string database_;
  std::unique_ptr<e2e::SqlConnection> sql_;
};

class ExplainTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { tables_ = new Tables(); }
  static void TearDownTestSuite() { delete tables_; }

  static std::vector<TaskId> Ids(int64_t first, size_t count = kMaxIds) {
    std::vector<TaskId> ids;
    for (size_t i = 0; i < count; ++i) {
      ids.push_back(first + static_cast<int64_t>(i) * 7);
    }
    return ids;
  }

  static int64_t RowsRead() {
    int64_t total = 0;
    for (const e2e::Row& row : tables_->sql().Run(
             "SHOW SESSION STATUS WHERE Variable_name IN ('Handler_read_key', "
             "'Handler_read_next', 'Handler_read_prev', 'Handler_read_first', "
             "'Handler_read_last')")) {
      int64_t value = 0;
      if (absl::SimpleAtoi(row[1], &value)) total += value;
    }
    return total;
  }

  // Fails the test unless the plan is sound and at most `max_rows` are read.
  static void Check(const std::string& statement, int64_t max_rows) {
    SCOPED_TRACE(statement.substr(0, 300));
    for (const e2e::Row& row : tables_->sql().Run("EXPLAIN " + statement)) {
      // MySQL has two columns more than MariaDB, `partitions` one of them.
      ASSERT_GE(row.size(), 10);
      const size_t shift = row.size() == 12 ? 1 : 0;
      const std::string& table = row[2];
      const std::string& type = row[3 + shift];
      const std::string& extra = row.back();
      // Results of parts, and the few rows of small tables, may be walked.
      const bool small = table.empty() || table[0] == '<' || table == "l" ||
                         table == "n" || table == "e";
      EXPECT_FALSE(absl::StrContains(extra, "filesort")) << table << extra;
      EXPECT_FALSE(absl::StrContains(extra, "temporary")) << table << extra;
      if (!small) {
        EXPECT_NE(type, "ALL") << table;
        EXPECT_NE(type, "index") << table;
      }
    }
    tables_->sql().Run("BEGIN");
    const int64_t before = RowsRead();
    tables_->sql().Run(statement);
    const int64_t read = RowsRead() - before;
    tables_->sql().Run("ROLLBACK");
    EXPECT_LE(read, max_rows);
  }

  static std::vector<Claim> Claims(int64_t first, size_t count) {
    std::vector<Claim> claims;
    for (const TaskId id : Ids(first, count)) {
      claims.push_back({id, id % 3, static_cast<HolderId>(1 + id % 5), 1000});
    }
    return claims;
  }

  static std::vector<Renewal> Renewals(size_t count) {
    std::vector<Renewal> renewals;
    for (size_t i = 0; i < count; ++i) {
      Renewal renewal;
      renewal.lease = {static_cast<TaskId>(1 + i), 1};
      renewal.holder = 1;
      renewal.lease_us = 1000;
      renewal.start_us = static_cast<int64_t>(kNow + i);
      renewal.attempt_timeout_us = 1000;
      renewals.push_back(renewal);
    }
    return renewals;
  }

  static Tables* tables_;
};

Tables* ExplainTest::tables_ = nullptr;

TEST_F(ExplainTest, Submit) {
  std::vector<std::string> keys;
  for (int i = 0; i < 300; ++i) keys.push_back(absl::StrCat("key-", i * 17));
  Check(LockKeysSql("q", keys), 1'000);
  Check(LockKeysSql("q", absl::MakeConstSpan(keys).first(1)), 10);
  Check(ExistingTasksSql(Ids(5'000)), 4'000);
  Check(ExistingTasksSql(Ids(5'000, 1)), 20);
  Check(StoredBodiesSql(Ids(5'000)), 1'000);
}

TEST_F(ExplainTest, FindingWhatWaits) {
  Check(ListReadyHeadsSql(), 1'000);
  Check(ScanReadySql(2, 5, 0, 0, kNow + 2'000'000'000, 1'000), 1'100);
  Check(
      ScanReadySql(2, 5, kNow + 900'000, 900'001, kNow + 2'000'000'000, 1'000),
      1'100);
  Check(ScanReadySql(2, 7, 0, 0, kNow - 1, 1'000), 10);
}

TEST_F(ExplainTest, Claim) {
  Check(ClaimSql(Claims(500'000, 200)), 1'000);
  Check(ClaimSql(Claims(500'000, 1)), 10);
  Check(ClaimWinnersSql(Ids(500'000, 200)), 500);
  Check(LockFreeRowsSql(Ids(500'000)), 1'000);
  Check(LeaseBodiesSql(Ids(500'000)), 3'000);
}

TEST_F(ExplainTest, Renew) {
  Check(RenewSql(Renewals(400)), 1'000);
  Check(RenewSql(Renewals(1)), 10);
  Check(RenewCancelledSql(Renewals(400)), 1'000);
  Check(StartSql(Renewals(50)), 200);
  Check(LeaseStatesSql(Ids(1)), 1'000);
  Check(FlagCheckpointsSql(Ids(1)), 1'000);
}

TEST_F(ExplainTest, Change) {
  Check(LockLiveSql(Ids(1)), 1'000);
  Check(LockLiveSql(Ids(1, 1)), 10);
  Check(EndedStatesSql(Ids(kFirstFinished)), 4'000);
  Check(BodyOptionsSql(Ids(1)), 1'000);
  Check(ExpiryTimesSql(Ids(1)), 1'000);
  Check(DeleteSql("task_live", Ids(1)), 1'500);
  Check(DeleteSql("task_live", Ids(1, 1)), 20);
  Check(DeleteSql("task_expiry", Ids(1)), 1'500);
}

// Walks what is leased, which executors bound, or what is due.
TEST_F(ExplainTest, Reaper) {
  Check(FindExpiredLeasesSql(10'000), kLeased + 100);
  Check(FindOverdueCancelsSql(500), kLeased + 100);
  Check(ListLeasesSql(1), kLeased + 100);
  Check(FindExpiredTasksSql(500), 600);
}

TEST_F(ExplainTest, Reads) {
  Check(GetTasksSql(Ids(500'000), {true, true, false}), 8'000);
  Check(GetTasksSql(Ids(kFirstFinished), {true, true, false}), 8'000);
  Check(GetTasksSql(Ids(kFirstFinished, 1), {true, true, true}), 30);
  Check(ListByPartitionKeySql("", 2'500'000, 1'000), 1'200);
  Check(ListByStateSql({{1, 2}}, {{TaskState::kFailed}}, 2'500'000, 1'000),
        2'400);
  Check(ListLiveSql(500'000, 1'000), 1'200);
  Check(ListBodiesSql(500'000, 1'000), 1'200);
}

}  // namespace
}  // namespace leasehold::scheduler
