// A TaskStore on MySQL 8 or MariaDB 10.6 and later, what start-up asks of the
// server, and the migrations of the schema.
//
//   ASSIGN_OR_RETURN(MySqlConfig config, ParseMySqlConfig(text));
//   ASSIGN_OR_RETURN(ServerReport server, CheckServer(config));
//   RETURN_IF_ERROR(Migrate(config, log));
//   std::unique_ptr<TaskStore> store = OpenMySqlStore(config);
#ifndef SCHEDULER_STORE_MYSQL_MYSQL_STORE_H_
#define SCHEDULER_STORE_MYSQL_MYSQL_STORE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scheduler/store/mysql/mysql_config.h"
#include "scheduler/store/task_store.h"

namespace leasehold::scheduler {

// Connects when first used, so it cannot fail. `on_retry` is told of every
// transaction that runs again, with its method and the cause: "deadlock",
// "lock_wait" or "duplicate_key"; called from any thread.
std::unique_ptr<TaskStore> OpenMySqlStore(
    const MySqlConfig& config,
    std::function<void(absl::string_view method, absl::string_view cause)>
        on_retry = {});

struct ServerReport {
  std::string version;  // "MariaDB 10.11.6" or "MySQL 9.1.0"
  std::vector<std::string> warnings;
};

// Looks at the server before anything is done with it. Errors are one line
// each, for an operator: the database cannot be reached, the login fails, the
// server is too old, or a setting of it is not fit. A setting that may lose
// acknowledged commits gives a warning.
absl::StatusOr<ServerReport> CheckServer(const MySqlConfig& config);

// Brings the schema to this program's version, one replica at a time;
// `progress` gets a line for each step. A current schema is only read, which
// needs no right but SELECT. FAILED_PRECONDITION when the schema is newer than
// the program; PERMISSION_DENIED naming the step when a right is missing.
absl::Status Migrate(const MySqlConfig& config,
                     const std::function<void(absl::string_view)>& progress);

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_STORE_MYSQL_MYSQL_STORE_H_
