// One database session. Built on soci; every exception of soci stops here.
//
//   auto connection = Connection::Open(config, ConnectionKind::kWrite);
//   auto rows = (*connection)->Select("lanes", "SELECT id, queue FROM lanes",
//                                     "it");
//   rows->Int(0, 0); rows->Text(0, 1);
//
// Each session runs in UTC with a pinned sql_mode, READ COMMITTED, a lock wait
// of one second and, for writes, a wait_timeout after which the server ends the
// transaction of a replica that has frozen.
#ifndef SCHEDULER_STORE_MYSQL_CONNECTION_H_
#define SCHEDULER_STORE_MYSQL_CONNECTION_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scheduler/store/mysql/mysql_config.h"

namespace soci {
class session;
}  // namespace soci

namespace leasehold::scheduler {

enum class ConnectionKind { kRead, kWrite, kMigrate };

// A result set, column by column.
class Rows {
 public:
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int64_t Int(size_t row, size_t column) const {
    return columns_[column].ints[row];
  }
  const std::string& Text(size_t row, size_t column) const {
    return columns_[column].texts[row];
  }
  // Moves the value out, for payloads and results.
  std::string TakeText(size_t row, size_t column) {
    return std::move(columns_[column].texts[row]);
  }

 private:
  friend class Connection;
  struct Column {
    std::vector<long long> ints;
    std::vector<std::string> texts;
  };
  std::vector<Column> columns_;
  size_t size_ = 0;
};

// Not thread-safe. Names of statements go into messages.
class Connection {
 public:
  // Errors as StatusFromConnectError.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(
      const MySqlConfig& config, ConnectionKind kind);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Returns the rows that matched, whether or not they changed.
  absl::StatusOr<int64_t> Execute(const char* name, const std::string& sql);

  // `types` has one letter for each column: 'i' integer, 't' text or bytes.
  // NULL is an error: statements use COALESCE.
  absl::StatusOr<Rows> Select(const char* name, const std::string& sql,
                              absl::string_view types);

  // What LAST_INSERT_ID(expression) was given in the last Execute; 0 if no row
  // matched.
  int64_t LastInsertId();

  // Must be thrown away: not usable, or in an unknown state.
  bool broken() const { return broken_; }
  void MarkBroken() { broken_ = true; }
  // The database's number for the last error; 0 without one.
  unsigned last_error() const { return last_error_; }
  // When the last statement ended.
  std::chrono::steady_clock::time_point last_use() const { return last_use_; }

 private:
  explicit Connection(std::unique_ptr<soci::session> session);
  // Maps the exception that is being handled.
  absl::Status CurrentError(const char* name);

  std::unique_ptr<soci::session> session_;
  bool broken_ = false;
  unsigned last_error_ = 0;
  std::chrono::steady_clock::time_point last_use_;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_STORE_MYSQL_CONNECTION_H_
