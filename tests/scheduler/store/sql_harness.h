// Runs the conformance suite on a real server: one for the binary, with a
// database for each test.
#ifndef TESTS_SCHEDULER_STORE_SQL_HARNESS_H_
#define TESTS_SCHEDULER_STORE_SQL_HARNESS_H_

#include <memory>
#include <string>

#include "scheduler/store/mysql/mysql_config.h"
#include "tests/scheduler/store/task_store_conformance.h"
#include "tests/support/database.h"

namespace leasehold::scheduler {

// Defined by the binary: which server its tests run on.
e2e::DatabaseServer::Kind TestedServer();

// Started by the first call.
e2e::DatabaseServer& Server();

class SqlHarness : public StoreHarness {
 public:
  // With an up-to-date schema.
  SqlHarness();
  ~SqlHarness() override;

  TaskStore& store() override { return *store_; }
  TaskStore& other() override { return *other_; }
  void Pass(absl::Duration duration) override;

  const MySqlConfig& config() const { return config_; }
  // A connection of the test's own to the database.
  e2e::SqlConnection& sql() { return *sql_; }

 private:
  std::string database_;
  MySqlConfig config_;
  std::unique_ptr<TaskStore> store_;
  std::unique_ptr<TaskStore> other_;
  std::unique_ptr<e2e::SqlConnection> sql_;
};

std::unique_ptr<StoreHarness> MakeSqlHarness();

}  // namespace leasehold::scheduler

#endif  // TESTS_SCHEDULER_STORE_SQL_HARNESS_H_
