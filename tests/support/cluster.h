// Real schedulers and executors over a database of their own.
//
//   Cluster cluster(SharedDatabase());
//   SchedulerProcess& scheduler = cluster.StartScheduler();
//   cluster.StartExecutor(EchoConfig("q"));
//   scheduler.client().Wait(scheduler.client().Submit(NewTask("q", "echo",
//   "hi")));
#ifndef TESTS_SUPPORT_CLUSTER_H_
#define TESTS_SUPPORT_CLUSTER_H_

#include <memory>
#include <string>
#include <vector>

#include "tests/support/child_process.h"
#include "tests/support/database.h"
#include "tests/support/task_client.h"
#include "tests/support/temp_folder.h"

namespace leasehold::e2e {

using Flags = std::vector<std::string>;

// Leases that end soon, for tests of what happens then.
Flags ShortLeases();

// The path of a binary of this build.
std::string Binary(const std::string& name);

// A scheduler on ports that stay the same over restarts.
class SchedulerProcess {
 public:
  SchedulerProcess(std::string mysql, Flags flags, std::string log_path);

  // Starts it and waits until it serves; throws with its log when it does not.
  void Start();
  // Without waiting.
  void Launch();
  void WaitUntilServing();
  bool Serving();

  ChildProcess& process() { return *process_; }
  TaskClient& client() { return *client_; }
  int port() const { return port_; }
  const std::string& address() const { return address_; }
  int HttpStatus(const std::string& path) const;
  std::string HttpBody(const std::string& path) const;
  // Sum over the label sets of a metric; -1 when there is none.
  double Metric(const std::string& name) const;
  std::string Log() const;

 private:
  const std::string mysql_;
  const Flags flags_;
  const std::string log_path_;
  const int port_;
  const int http_port_;
  const std::string address_;
  std::unique_ptr<ChildProcess> process_;
  std::unique_ptr<TaskClient> client_;
};

class ExecutorProcess {
 public:
  ExecutorProcess(std::string config_path, Flags flags, std::string log_path);

  void Start();
  ChildProcess& process() { return *process_; }
  std::string Log() const;

 private:
  const std::string config_path_;
  const Flags flags_;
  const std::string log_path_;
  std::unique_ptr<ChildProcess> process_;
};

class Cluster {
 public:
  explicit Cluster(DatabaseServer& server);
  // Adds what the processes logged to the output of a test that failed.
  ~Cluster();

  SchedulerProcess& StartScheduler(const Flags& flags = {});
  // Started by the caller.
  SchedulerProcess& AddScheduler(const Flags& flags = {});
  // `config` is the text of an ExecutorConfig without addresses and name; the
  // executor's name is "executor-N", N counting from 1. It talks to the first
  // scheduler unless `scheduler_address` names another.
  ExecutorProcess& StartExecutor(const std::string& config,
                                 const Flags& flags = {},
                                 const std::string& scheduler_address = "");

  const TempFolder& folder() const { return folder_; }
  DatabaseServer& server() { return server_; }
  const std::string& database() const { return database_; }
  SqlConnection Sql() const {
    return SqlConnection(server_.socket_path(), database_);
  }

 private:
  DatabaseServer& server_;
  TempFolder folder_;
  std::string database_;
  std::vector<std::unique_ptr<SchedulerProcess>> schedulers_;
  std::vector<std::unique_ptr<ExecutorProcess>> executors_;
};

// Executor configurations: `slots` slots, queue `queue`, and the handlers echo,
// sleep and fail under these names.
std::string BuiltInHandlers(const std::string& queue, int slots = 4);
// One exec handler of type `type` that runs `script` with sh.
std::string ShellHandler(const std::string& queue, const std::string& type,
                         const std::string& script, int slots = 4);

}  // namespace leasehold::e2e

#endif  // TESTS_SUPPORT_CLUSTER_H_
