// A private database server for tests, started by deploy/database and stopped
// with its owner, also when the test is killed.
#ifndef TESTS_SUPPORT_DATABASE_H_
#define TESTS_SUPPORT_DATABASE_H_

#include <mysql.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"

namespace leasehold::e2e {

using Row = std::vector<std::string>;

// One connection to a server. Throws with the server's words when a statement
// fails. Not thread-safe.
class SqlConnection {
 public:
  explicit SqlConnection(const std::string& socket_path,
                         const std::string& database = "");
  ~SqlConnection();
  SqlConnection(const SqlConnection&) = delete;
  SqlConnection& operator=(const SqlConnection&) = delete;

  // Returns the rows of the result, if there is one; NULL reads as "".
  std::vector<Row> Run(const std::string& statement);
  // The first column of the first row as a number; -1 without a row.
  long long Number(const std::string& statement);

 private:
  MYSQL* mysql_;
};

class DatabaseServer {
 public:
  enum class Kind { kMariaDb, kMySql };
  enum class Durability {
    kFast,     // No fsync at commit: for tests.
    kDurable,  // For figures.
  };

  // `options` are added to the server's command line.
  explicit DatabaseServer(Kind kind, Durability durability = Durability::kFast,
                          std::string options = "");
  ~DatabaseServer();
  DatabaseServer(const DatabaseServer&) = delete;
  DatabaseServer& operator=(const DatabaseServer&) = delete;

  const std::string& socket_path() const { return socket_path_; }
  int port() const { return port_; }
  int pid() const;

  // Makes an empty database and returns its name.
  std::string CreateDatabase();
  // What to put into LEASEHOLD_MYSQL to reach it as root over the socket.
  std::string Address(const std::string& database) const;

  // Between the two the server is away.
  void Stop();
  void Start();
  // As Stop, but by kill -9.
  void Kill();

 private:
  const Kind kind_;
  const Durability durability_;
  const std::string options_;
  TempFolder folder_;
  std::string socket_path_;
  int port_;
  int databases_ = 0;
  int guard_pipe_ = -1;
};

// The MariaDB that all tests of a binary share; started by the first call.
DatabaseServer& SharedDatabase();

}  // namespace leasehold::e2e

#endif  // TESTS_SUPPORT_DATABASE_H_
