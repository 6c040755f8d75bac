#include "tests/support/database.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "tests/support/child_process.h"
#include "tests/support/free_port.h"
#include "tests/support/poll.h"

namespace leasehold::e2e {
namespace {

std::string Script() { return LEASEHOLD_SOURCE_DIR "/deploy/database"; }

// A process outside of ours that waits for our end of the pipe to close, which
// it does however we end, and then stops the server.
int StartGuard(const std::string& folder) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    dup2(fds[0], STDIN_FILENO);
    execlp(
        "sh", "sh", "-c",
        R"sh(exec 3<&0; (cat <&3; "$1" stop "$2"; rm -rf "$2") >/dev/null 2>&1 &)sh",
        "sh", Script().c_str(), folder.c_str(), nullptr);
    _exit(127);
  }
  close(fds[0]);
  waitpid(child, nullptr, 0);  // The shell; what it started goes on.
  return fds[1];
}

}  // namespace

SqlConnection::SqlConnection(const std::string& socket_path,
                             const std::string& database)
    : mysql_(mysql_init(nullptr)) {
  if (mysql_real_connect(mysql_, nullptr, "root", "",
                         database.empty() ? nullptr : database.c_str(), 0,
                         socket_path.c_str(), 0) != nullptr) {
    return;
  }
  const std::string error = mysql_error(mysql_);
  mysql_close(mysql_);
  throw std::runtime_error("cannot connect to " + socket_path + ": " + error);
}

SqlConnection::~SqlConnection() { mysql_close(mysql_); }

std::vector<Row> SqlConnection::Run(const std::string& statement) {
  if (mysql_real_query(mysql_, statement.data(), statement.size()) != 0) {
    throw std::runtime_error(statement.substr(0, 200) + ": " +
                             mysql_error(mysql_));
  }
  std::vector<Row> rows;
  MYSQL_RES* result = mysql_store_result(mysql_);
  if (result == nullptr) return rows;
  const unsigned int columns = mysql_num_fields(result);
  while (MYSQL_ROW fields = mysql_fetch_row(result)) {
    const unsigned long* sizes = mysql_fetch_lengths(result);
    Row& row = rows.emplace_back();
    for (unsigned int i = 0; i < columns; ++i) {
      row.emplace_back(fields[i] == nullptr ? "" : fields[i],
                       fields[i] == nullptr ? 0 : sizes[i]);
    }
  }
  mysql_free_result(result);
  return rows;
}

long long SqlConnection::Number(const std::string& statement) {
  const std::vector<Row> rows = Run(statement);
  return rows.empty() ? -1 : std::atoll(rows[0][0].c_str());
}

DatabaseServer::DatabaseServer(Kind kind, Durability durability,
                               std::string options)
    : kind_(kind),
      durability_(durability),
      options_(std::move(options)),
      socket_path_(folder_.File("s.sock")),
      port_(FreePort()) {
  guard_pipe_ = StartGuard(folder_.path());
  Start();
}

DatabaseServer::~DatabaseServer() {
  try {
    Stop();
  } catch (const std::exception&) {
    // It was stopped before.
  }
  close(guard_pipe_);
}

int DatabaseServer::pid() const {
  return std::atoi(ReadFile(folder_.File("pid")).c_str());
}

void DatabaseServer::Start() {
  RunCommand({Script(), "start", kind_ == Kind::kMariaDb ? "mariadb" : "mysql",
              folder_.path(), std::to_string(port_)},
             {{"FLUSH", durability_ == Durability::kDurable ? "1" : "0"},
              {"ARGS", options_}});
}

void DatabaseServer::Stop() { RunCommand({Script(), "stop", folder_.path()}); }

void DatabaseServer::Kill() {
  const int server = pid();
  if (server <= 0) return;
  kill(server, SIGKILL);
  // Somebody else's child; a zombie has let go of its files, too.
  Eventually([server] {
    const std::string stat =
        ReadFile("/proc/" + std::to_string(server) + "/stat");
    const size_t end_of_name = stat.rfind(')');
    return end_of_name == std::string::npos ||
           stat.compare(end_of_name, 3, ") Z") == 0;
  });
}

std::string DatabaseServer::CreateDatabase() {
  const std::string name = "leasehold_" + std::to_string(++databases_);
  SqlConnection(socket_path_).Run("CREATE DATABASE " + name);
  return name;
}

std::string DatabaseServer::Address(const std::string& database) const {
  return "unix_socket=" + socket_path_ + " user=root db=" + database;
}

DatabaseServer& SharedDatabase() {
  static DatabaseServer server(DatabaseServer::Kind::kMariaDb);
  return server;
}

}  // namespace leasehold::e2e
