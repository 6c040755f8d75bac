// Where the database is and how to log in:
//
//   host=db.internal port=3306 user=leasehold db=leasehold
//   password_file=/run/secrets/db ssl_ca=/etc/ssl/db-ca.pem
//
// Values with blanks stand in single quotes, where \ takes the next character
// as it is.
#ifndef SCHEDULER_STORE_MYSQL_MYSQL_CONFIG_H_
#define SCHEDULER_STORE_MYSQL_MYSQL_CONFIG_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace leasehold::scheduler {

struct MySqlConfig {
  std::string host;  // Default 127.0.0.1 unless unix_socket is set.
  int port = 3306;
  std::string unix_socket;
  std::string user;
  std::string db;
  // From password= or the first line of password_file=. password= belongs into
  // the LEASEHOLD_MYSQL environment variable only: other users of the machine
  // can read command lines.
  std::string password;
  std::string ssl_ca;
  std::string ssl_cert;
  std::string ssl_key;

  // Not part of the text. A database that does not answer within io_timeout
  // costs a thread no longer than that.
  absl::Duration connect_timeout = absl::Seconds(5);
  absl::Duration io_timeout = absl::Seconds(10);
  int read_connections = 4;
};

// Reads password_file too. INVALID_ARGUMENT with every mistake, one a line.
absl::StatusOr<MySqlConfig> ParseMySqlConfig(absl::string_view text);

// "127.0.0.1:3306/leasehold" or "/run/mysqld/mysqld.sock/leasehold", for
// messages. No secret in it.
std::string AddressForMessage(const MySqlConfig& config);

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_STORE_MYSQL_MYSQL_CONFIG_H_
