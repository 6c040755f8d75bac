#include "scheduler/store/mysql/connection.h"

#include <soci/mysql/soci-mysql.h>
#include <soci/soci.h>

#include <exception>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "scheduler/store/mysql/database_error.h"

namespace leasehold::scheduler {
namespace {

constexpr size_t kFetchRows = 256;

// soci's own quoting of connect strings.
std::string Quote(absl::string_view value) {
  std::string quoted = "'";
  for (const char c : value) {
    if (c == '\'' || c == '\\') quoted.push_back('\\');
    quoted.push_back(c);
  }
  quoted.push_back('\'');
  return quoted;
}

// Never reconnect=1: the client library would lose a transaction in silence.
std::string ConnectString(const MySqlConfig& config, ConnectionKind kind) {
  std::string text =
      absl::StrCat("db=", Quote(config.db), " user=", Quote(config.user),
                   " charset=utf8mb4 local_infile=0");
  if (!config.unix_socket.empty()) {
    absl::StrAppend(&text, " unix_socket=", Quote(config.unix_socket));
  } else {
    absl::StrAppend(&text, " host=", Quote(config.host), " port=", config.port);
  }
  if (!config.password.empty()) {
    absl::StrAppend(&text, " password=", Quote(config.password));
  }
  if (!config.ssl_ca.empty()) {
    absl::StrAppend(&text, " sslca=", Quote(config.ssl_ca));
  }
  if (!config.ssl_cert.empty()) {
    absl::StrAppend(&text, " sslcert=", Quote(config.ssl_cert),
                    " sslkey=", Quote(config.ssl_key));
  }
  // Statements that change the schema may take long.
  const absl::Duration io =
      kind == ConnectionKind::kMigrate ? absl::Minutes(30) : config.io_timeout;
  absl::StrAppend(
      &text, " connect_timeout=", absl::ToInt64Seconds(config.connect_timeout),
      " read_timeout=", absl::ToInt64Seconds(io),
      " write_timeout=", absl::ToInt64Seconds(io));
  return text;
}

// NO_BACKSLASH_ESCAPES and ANSI_QUOTES must stay out: SqlText quotes for
// sessions without them.
std::string SessionSettings(ConnectionKind kind) {
  std::string sql =
      "SET SESSION time_zone = '+00:00', "
      "sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,"
      "ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION', "
      "innodb_lock_wait_timeout = 1, autocommit = 1, lock_wait_timeout = ";
  absl::StrAppend(&sql, kind == ConnectionKind::kMigrate ? 30 : 5);
  absl::StrAppend(
      &sql, ", wait_timeout = ", kind == ConnectionKind::kWrite ? 10 : 3600);
  return sql;
}

}  // namespace

Connection::Connection(std::unique_ptr<soci::session> session)
    : session_(std::move(session)),
      last_use_(std::chrono::steady_clock::now()) {}

Connection::~Connection() = default;

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(
    const MySqlConfig& config, ConnectionKind kind) {
  std::unique_ptr<Connection> connection;
  try {
    connection.reset(new Connection(std::make_unique<soci::session>(
        soci::mysql, ConnectString(config, kind))));
  } catch (const soci::mysql_soci_error& e) {
    return StatusFromConnectError(AddressForMessage(config), e.err_num_,
                                  e.get_error_message());
  } catch (const std::exception& e) {
    return absl::InternalError(
        absl::StrCat(AddressForMessage(config), ": cannot connect"));
  }
  LEASEHOLD_RETURN_IF_ERROR(
      connection->Execute("session_settings", SessionSettings(kind)).status());
  LEASEHOLD_RETURN_IF_ERROR(
      connection
          ->Execute("session_isolation",
                    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
          .status());
  return connection;
}

absl::Status Connection::CurrentError(const char* name) {
  last_use_ = std::chrono::steady_clock::now();
  try {
    throw;
  } catch (const soci::mysql_soci_error& e) {
    last_error_ = e.err_num_;
    if (BreaksSession(e.err_num_)) broken_ = true;
    return StatusFromDatabaseError(name, e.err_num_);
  } catch (const std::exception&) {
    // what() holds values; the session's state is not known.
    broken_ = true;
    return absl::InternalError(
        absl::StrCat(name, ": the client library failed"));
  }
}

absl::StatusOr<int64_t> Connection::Execute(const char* name,
                                            const std::string& sql) {
  last_error_ = 0;
  try {
    soci::statement statement(*session_);
    statement.alloc();
    statement.prepare(sql);
    statement.define_and_bind();
    statement.execute(true);
    last_use_ = std::chrono::steady_clock::now();
    return statement.get_affected_rows();
  } catch (...) {
    return CurrentError(name);
  }
}

absl::StatusOr<Rows> Connection::Select(const char* name,
                                        const std::string& sql,
                                        absl::string_view types) {
  last_error_ = 0;
  Rows rows;
  rows.columns_.resize(types.size());
  // soci fills vectors of a fixed length, one fetch after the other.
  std::vector<Rows::Column> fetched(types.size());
  try {
    soci::statement statement(*session_);
    statement.alloc();
    statement.prepare(sql);
    for (size_t c = 0; c < types.size(); ++c) {
      if (types[c] == 'i') {
        fetched[c].ints.resize(kFetchRows);
        statement.exchange(soci::into(fetched[c].ints));
      } else {
        fetched[c].texts.resize(kFetchRows);
        statement.exchange(soci::into(fetched[c].texts));
      }
    }
    statement.define_and_bind();
    bool more = statement.execute(true);
    while (more) {
      size_t count = 0;
      for (size_t c = 0; c < types.size(); ++c) {
        Rows::Column& from = fetched[c];
        Rows::Column& to = rows.columns_[c];
        count = types[c] == 'i' ? from.ints.size() : from.texts.size();
        to.ints.insert(to.ints.end(), from.ints.begin(), from.ints.end());
        std::move(from.texts.begin(), from.texts.end(),
                  std::back_inserter(to.texts));
        (types[c] == 'i' ? from.ints.resize(kFetchRows)
                         : from.texts.resize(kFetchRows));
      }
      rows.size_ += count;
      more = count == kFetchRows && statement.fetch();
    }
    last_use_ = std::chrono::steady_clock::now();
    return rows;
  } catch (...) {
    return CurrentError(name);
  }
}

int64_t Connection::LastInsertId() {
  long long id = 0;
  try {
    session_->get_last_insert_id("", id);
  } catch (const std::exception&) {
    broken_ = true;
  }
  return id;
}

}  // namespace leasehold::scheduler
