#include "tests/scheduler/store/sql_harness.h"

#include <chrono>
#include <stdexcept>
#include <thread>

#include "scheduler/store/mysql/mysql_store.h"

namespace leasehold::scheduler {

e2e::DatabaseServer& Server() {
  static e2e::DatabaseServer server(TestedServer());
  return server;
}

SqlHarness::SqlHarness()
    : database_(Server().CreateDatabase()),
      config_(ParseMySqlConfig(Server().Address(database_)).value()) {
  const absl::Status migrated = Migrate(config_, {});
  if (!migrated.ok()) throw std::runtime_error(migrated.ToString());
  store_ = OpenMySqlStore(config_);
  other_ = OpenMySqlStore(config_);
  sql_ =
      std::make_unique<e2e::SqlConnection>(Server().socket_path(), database_);
}

SqlHarness::~SqlHarness() {
  store_.reset();
  other_.reset();
  try {
    sql_->Run("DROP DATABASE " + database_);
  } catch (const std::exception&) {
    // The test has stopped the server or cut the connection.
  }
}

void SqlHarness::Pass(absl::Duration duration) {
  const int64_t until_us =
      store_->NowUs().value() + absl::ToInt64Microseconds(duration);
  while (store_->NowUs().value() <= until_us) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::unique_ptr<StoreHarness> MakeSqlHarness() {
  return std::make_unique<SqlHarness>();
}

}  // namespace leasehold::scheduler
