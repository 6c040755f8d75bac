#include "scheduler/store/mysql/schema_check.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/status/status_macros.h"
#include "scheduler/store/mysql/database_error.h"
#include "scheduler/store/mysql/schema_files.h"

namespace leasehold::scheduler {
namespace {

constexpr absl::string_view kCreate = "CREATE TABLE IF NOT EXISTS ";
constexpr unsigned kErrUnknownColumn = 1054;

struct Probe {
  const char* right;
  std::string sql;
};

// Statements that need a right each and touch no row.
std::vector<Probe> ProbesOf(const SchemaTable& table) {
  const std::string& name = table.name;
  const std::string& column = table.columns.front();
  return {
      {"INSERT", absl::StrCat("INSERT INTO ", name, " SELECT * FROM ", name,
                              " WHERE 1 = 0")},
      {"UPDATE", absl::StrCat("UPDATE ", name, " SET ", column, " = ", column,
                              " WHERE 1 = 0")},
      {"DELETE", absl::StrCat("DELETE FROM ", name, " WHERE 1 = 0")},
  };
}

// Adds the rights that the user lacks on the table, as "DELETE on task_live".
absl::Status CheckTable(Connection& connection, const SchemaTable& table,
                        std::vector<std::string>* lacking) {
  absl::Status read =
      connection
          .Select("check_table",
                  absl::StrCat("SELECT ", absl::StrJoin(table.columns, ", "),
                               " FROM ", table.name, " LIMIT 0"),
                  std::string(table.columns.size(), 't'))
          .status();
  if (!read.ok()) {
    const unsigned number = connection.last_error();
    if (IsMissingRight(number)) {
      lacking->push_back(absl::StrCat("SELECT on ", table.name));
      return absl::OkStatus();
    }
    if (number != kErrNoSuchTable && number != kErrUnknownColumn) return read;
    return absl::FailedPreconditionError(absl::StrCat(
        "schema: table ", table.name,
        number == kErrNoSuchTable ? " is missing" : " lacks a column",
        " though the schema's version is current; restore the database, or "
        "use an empty one (MySQL ",
        number, ")"));
  }
  for (const Probe& probe : ProbesOf(table)) {
    const auto done = connection.Execute("check_right", probe.sql);
    // A server that takes no writes now may take them later.
    if (done.ok() || !IsMissingRight(connection.last_error())) continue;
    lacking->push_back(absl::StrCat(probe.right, " on ", table.name));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<SchemaTable> TablesOf(absl::string_view schema) {
  std::vector<SchemaTable> tables;
  bool inside = false;
  for (absl::string_view line : absl::StrSplit(schema, '\n')) {
    if (absl::ConsumePrefix(&line, kCreate)) {
      tables.push_back({std::string(line.substr(0, line.find(' '))), {}});
      inside = true;
    } else if (!absl::StartsWith(line, "  ")) {
      inside = false;
    } else if (inside &&
               absl::ascii_islower(static_cast<unsigned char>(line[2]))) {
      line.remove_prefix(2);
      tables.back().columns.emplace_back(line.substr(0, line.find(' ')));
    }
  }
  return tables;
}

absl::Status CheckSchema(Connection& connection) {
  std::vector<std::string> lacking;
  for (const SchemaFile& file : SchemaFiles()) {
    for (const SchemaTable& table : TablesOf(file.text)) {
      LEASEHOLD_RETURN_IF_ERROR(CheckTable(connection, table, &lacking));
    }
  }
  if (lacking.empty()) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "schema: the user lacks ", absl::StrJoin(lacking, ", "),
      "; grant SELECT, INSERT, UPDATE and DELETE on the database"));
}

}  // namespace leasehold::scheduler
