// What start-up asks of the server before anything is stored on it.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/status/status_macros.h"
#include "scheduler/store/mysql/connection.h"
#include "scheduler/store/mysql/mysql_store.h"

namespace leasehold::scheduler {
namespace {

constexpr int64_t kMinPacketBytes = 16 << 20;

// The variable's value; empty when this kind of server does not know it.
absl::StatusOr<std::string> Variable(Connection& connection, const char* name) {
  LEASEHOLD_ASSIGN_OR_RETURN(
      const Rows rows,
      connection.Select(
          "server_variable",
          absl::StrCat("SHOW GLOBAL VARIABLES WHERE Variable_name = '", name,
                       "'"),
          "tt"));
  return rows.empty() ? std::string() : rows.Text(0, 1);
}

absl::Status CheckVersion(absl::string_view raw, ServerReport* report) {
  const bool maria = absl::StrContains(raw, "MariaDB");
  // Some MariaDB servers put this before their version, for old replicas.
  absl::ConsumePrefix(&raw, "5.5.5-");
  const std::vector<std::string> parts =
      absl::StrSplit(std::string(raw.substr(0, raw.find('-'))), '.');
  int major = 0;
  int minor = 0;
  if (parts.size() < 2 || !absl::SimpleAtoi(parts[0], &major) ||
      !absl::SimpleAtoi(parts[1], &minor)) {
    return absl::FailedPreconditionError(
        absl::StrCat("server version \"", raw,
                     "\", want MySQL 8.0 or MariaDB 10.6 and later"));
  }
  report->version =
      absl::StrCat(maria ? "MariaDB " : "MySQL ", raw.substr(0, raw.find('-')));
  const bool old = maria ? major < 10 || (major == 10 && minor < 6) : major < 8;
  if (!old) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("server is ", report->version, ", want ",
                   maria ? "MariaDB 10.6" : "MySQL 8.0", " or later"));
}

absl::Status CheckSettings(Connection& connection, ServerReport* report) {
  LEASEHOLD_ASSIGN_OR_RETURN(
      const std::string flush,
      Variable(connection, "innodb_flush_log_at_trx_commit"));
  if (flush != "1") {
    report->warnings.push_back(absl::StrCat(
        "innodb_flush_log_at_trx_commit=", flush,
        ": a crash of the database may lose acknowledged tasks, want 1"));
  }
  LEASEHOLD_ASSIGN_OR_RETURN(const std::string log_bin,
                             Variable(connection, "log_bin"));
  if (absl::EqualsIgnoreCase(log_bin, "ON") || log_bin == "1") {
    LEASEHOLD_ASSIGN_OR_RETURN(const std::string format,
                               Variable(connection, "binlog_format"));
    if (absl::EqualsIgnoreCase(format, "STATEMENT")) {
      return absl::FailedPreconditionError(
          "binlog_format=STATEMENT: replicas would diverge, want ROW or MIXED");
    }
    LEASEHOLD_ASSIGN_OR_RETURN(const std::string sync,
                               Variable(connection, "sync_binlog"));
    if (sync != "1") {
      report->warnings.push_back(absl::StrCat(
          "sync_binlog=", sync,
          ": a crash of the machine may lose acknowledged tasks, want 1"));
    }
  }
  LEASEHOLD_ASSIGN_OR_RETURN(const std::string packet,
                             Variable(connection, "max_allowed_packet"));
  int64_t packet_bytes = 0;
  if (absl::SimpleAtoi(packet, &packet_bytes) &&
      packet_bytes < kMinPacketBytes) {
    return absl::FailedPreconditionError(
        absl::StrCat("max_allowed_packet=", packet, ", want at least ",
                     kMinPacketBytes, " for submits of 3 MiB"));
  }
  LEASEHOLD_ASSIGN_OR_RETURN(const std::string read_only,
                             Variable(connection, "read_only"));
  if (absl::EqualsIgnoreCase(read_only, "ON") || read_only == "1") {
    report->warnings.push_back(
        "read_only=ON: this server is a replica or is being failed over");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ServerReport> CheckServer(const MySqlConfig& config) {
  LEASEHOLD_ASSIGN_OR_RETURN(const std::unique_ptr<Connection> connection,
                             Connection::Open(config, ConnectionKind::kRead));
  ServerReport report;
  LEASEHOLD_ASSIGN_OR_RETURN(
      const Rows version,
      connection->Select("server_version", "SELECT VERSION()", "t"));
  LEASEHOLD_RETURN_IF_ERROR(CheckVersion(version.Text(0, 0), &report));
  LEASEHOLD_RETURN_IF_ERROR(CheckSettings(*connection, &report));
  return report;
}

}  // namespace leasehold::scheduler
