// Brings the schema up to date from the numbered files of schema/.
#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status/status_macros.h"
#include "scheduler/store/mysql/connection.h"
#include "scheduler/store/mysql/database_error.h"
#include "scheduler/store/mysql/mysql_store.h"
#include "scheduler/store/mysql/schema_check.h"
#include "scheduler/store/mysql/schema_files.h"
#include "scheduler/store/mysql/statements.h"

namespace leasehold::scheduler {
namespace {

constexpr int kLockSeconds = 120;

// Comment lines go: soci would read a colon in them as a parameter.
std::vector<std::string> SplitStatements(const std::string& text) {
  std::vector<std::string> statements(1);
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StartsWith(line, "--")) continue;
    absl::StrAppend(&statements.back(), line, "\n");
    if (!absl::EndsWith(line, ";")) continue;
    std::string& statement = statements.back();
    statement.resize(statement.rfind(';'));
    statements.emplace_back();
  }
  statements.pop_back();
  return statements;
}

absl::Status Explain(Connection& connection, const std::string& doing,
                     const absl::Status& status) {
  const unsigned number = connection.last_error();
  if (IsMissingRight(number)) {
    return absl::PermissionDeniedError(
        absl::StrCat("schema: the user lacks a right for ", doing,
                     "; migrate with a user that has ALL on the database "
                     "(MySQL ",
                     number, ")"));
  }
  return absl::Status(status.code(),
                      absl::StrCat("schema: ", doing, ": ", status.message()));
}

// The version that the database is at; 0 for an empty one.
absl::StatusOr<int> CurrentVersion(Connection& connection) {
  auto rows = connection.Select("schema_version",
                                "SELECT COALESCE(MAX(version), 0) FROM "
                                "schema_migrations",
                                "i");
  if (rows.ok()) return static_cast<int>(rows->Int(0, 0));
  if (connection.last_error() == kErrNoSuchTable) return 0;
  return Explain(connection, "reading schema_migrations", rows.status());
}

absl::Status CheckNotNewer(int version) {
  const int known = SchemaFiles().back().number;
  if (version <= known) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("schema: the database is at version ", version,
                   ", this program knows up to ", known,
                   "; run a newer leasehold-scheduler"));
}

absl::Status Apply(Connection& connection, const SchemaFile& file) {
  for (const std::string& statement : SplitStatements(file.text)) {
    const auto done = connection.Execute("migrate", statement);
    if (!done.ok()) {
      const absl::string_view first_line =
          std::pair<absl::string_view, absl::string_view>(
              absl::StrSplit(absl::StripAsciiWhitespace(statement),
                             absl::MaxSplits('\n', 1)))
              .first;
      return Explain(connection, absl::StrCat(file.name, ", ", first_line),
                     done.status());
    }
  }
  const auto recorded = connection.Execute(
      "record_migration",
      absl::StrCat("INSERT INTO schema_migrations (version, apply_us) VALUES (",
                   file.number, ", ", kNowUs, ")"));
  if (recorded.ok()) return absl::OkStatus();
  return Explain(connection, "recording a version", recorded.status());
}

// Under the lock.
absl::Status ApplyMissing(
    Connection& connection,
    const std::function<void(absl::string_view)>& progress) {
  const auto created = connection.Execute(
      "create_schema_migrations",
      "CREATE TABLE IF NOT EXISTS schema_migrations ("
      "version INT NOT NULL PRIMARY KEY, apply_us BIGINT NOT NULL"
      ") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin");
  if (!created.ok()) {
    return Explain(connection, "creating schema_migrations", created.status());
  }
  LEASEHOLD_ASSIGN_OR_RETURN(const int version, CurrentVersion(connection));
  LEASEHOLD_RETURN_IF_ERROR(CheckNotNewer(version));
  for (const SchemaFile& file : SchemaFiles()) {
    if (file.number <= version) continue;
    progress(absl::StrCat("schema: applying ", file.name));
    LEASEHOLD_RETURN_IF_ERROR(Apply(connection, file));
    progress(absl::StrCat("schema: now at version ", file.number));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Migrate(const MySqlConfig& config,
                     const std::function<void(absl::string_view)>& progress) {
  const auto report = [&](absl::string_view line) {
    if (progress) progress(line);
  };
  LEASEHOLD_ASSIGN_OR_RETURN(
      const std::unique_ptr<Connection> connection,
      Connection::Open(config, ConnectionKind::kMigrate));
  LEASEHOLD_ASSIGN_OR_RETURN(const int version, CurrentVersion(*connection));
  LEASEHOLD_RETURN_IF_ERROR(CheckNotNewer(version));
  if (version == SchemaFiles().back().number) {
    LEASEHOLD_RETURN_IF_ERROR(CheckSchema(*connection));
    report(absl::StrCat("schema: version ", version, " is current"));
    return absl::OkStatus();
  }
  // One replica migrates, the others wait here and then find nothing to do. The
  // lock is the server's, so its name holds the database.
  const std::string lock = "CONCAT('leasehold.', LEFT(DATABASE(), 50))";
  LEASEHOLD_ASSIGN_OR_RETURN(
      const Rows locked,
      connection->Select("schema_lock",
                         absl::StrCat("SELECT COALESCE(GET_LOCK(", lock, ", ",
                                      kLockSeconds, "), 0)"),
                         "i"));
  if (locked.Int(0, 0) != 1) {
    return absl::UnavailableError(
        absl::StrCat("schema: another program has been migrating for ",
                     kLockSeconds, " s, try again later"));
  }
  absl::Status status = ApplyMissing(*connection, report);
  // Tables of these names that were there before stay as they are.
  if (status.ok()) status = CheckSchema(*connection);
  // Closing the connection would release it as well.
  static_cast<void>(connection->Select(
      "schema_unlock",
      absl::StrCat("SELECT COALESCE(RELEASE_LOCK(", lock, "), 0)"), "i"));
  return status;
}

}  // namespace leasehold::scheduler
