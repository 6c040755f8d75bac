// Whether the tables are what the schema files make, and whether this user may
// do with them what the scheduler does. What start-up does not find here would
// show as tasks that never finish.
#ifndef SCHEDULER_STORE_MYSQL_SCHEMA_CHECK_H_
#define SCHEDULER_STORE_MYSQL_SCHEMA_CHECK_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "scheduler/store/mysql/connection.h"

namespace leasehold::scheduler {

struct SchemaTable {
  std::string name;
  std::vector<std::string> columns;
};

// The tables that a schema file creates, by its CREATE TABLE statements: one
// column a line, as the files are written.
std::vector<SchemaTable> TablesOf(absl::string_view schema);

// Changes nothing. FAILED_PRECONDITION naming a table that is missing or
// different; PERMISSION_DENIED naming every right that is missing.
absl::Status CheckSchema(Connection& connection);

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_STORE_MYSQL_SCHEMA_CHECK_H_
