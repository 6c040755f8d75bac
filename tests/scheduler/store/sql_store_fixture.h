// A store on a real server, and the server beside it.
#ifndef TESTS_SCHEDULER_STORE_SQL_STORE_FIXTURE_H_
#define TESTS_SCHEDULER_STORE_SQL_STORE_FIXTURE_H_

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/scheduler/store/sql_harness.h"

namespace leasehold::scheduler {

class SqlStoreTest : public TaskStoreTest {
 protected:
  SqlHarness& sql_harness() { return static_cast<SqlHarness&>(*harness_); }
  e2e::SqlConnection& sql() { return sql_harness().sql(); }
  const MySqlConfig& config() { return sql_harness().config(); }

  // Ends every connection to the test's database but the test's own.
  void KillStoreConnections() {
    for (const e2e::Row& row : sql().Run(absl::StrCat(
             "SELECT id FROM information_schema.processlist WHERE db = '",
             config().db, "' AND id <> CONNECTION_ID()"))) {
      sql().Run("KILL " + row[0]);
    }
  }

  absl::Status Touch(TaskStore& store, std::vector<TaskId> ids) {
    std::sort(ids.begin(), ids.end());
    return store.ChangeTasks(ids, [](size_t, const TaskView& view) {
      Change change;
      change.update = *view.live;
      ++change.update->rate_limited_count;
      return change;
    });
  }
};

}  // namespace leasehold::scheduler

#endif  // TESTS_SCHEDULER_STORE_SQL_STORE_FIXTURE_H_
