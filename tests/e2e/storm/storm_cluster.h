// The cluster that the storm hits: every connection between its processes leads
// through a proxy of its own.
#ifndef TESTS_E2E_STORM_STORM_CLUSTER_H_
#define TESTS_E2E_STORM_STORM_CLUSTER_H_

#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/storm/options.h"
#include "tests/support/child_process.h"
#include "tests/support/cluster.h"
#include "tests/support/database.h"
#include "tests/support/tcp_proxy.h"
#include "tests/support/temp_folder.h"

namespace leasehold::e2e {

inline constexpr char kStormQueue[] = "storm";

// Processes die with the thread that started them, so everything here is for
// one thread.
class StormCluster {
 public:
  // Starts everything and waits until it serves.
  explicit StormCluster(const StormOptions& options);
  StormCluster(const StormCluster&) = delete;
  StormCluster& operator=(const StormCluster&) = delete;

  DatabaseServer& database() { return *server_; }
  SqlConnection Sql() const {
    return SqlConnection(server_->socket_path(), name_);
  }
  const std::string& database_name() const { return name_; }
  SchedulerProcess& scheduler(size_t i) { return *schedulers_[i]; }
  ChildProcess& executor(size_t i) { return *executors_[i]; }
  TcpProxy& database_proxy(size_t scheduler) {
    return *database_proxies_[scheduler];
  }
  TcpProxy& proxy(size_t executor, size_t scheduler) {
    return *proxies_[executor][scheduler];
  }
  size_t schedulers() const { return schedulers_.size(); }
  size_t executors() const { return executors_.size(); }
  // What clients connect to, without a proxy.
  std::vector<std::string> addresses() const;

  // Kills what is left of it, and does not wait until the new one serves.
  void RestartScheduler(size_t i);
  void RestartExecutor(size_t i);
  // Every proxy as at the start.
  void HealNetwork();

  std::string run_log() const { return folder_.File("runs"); }
  const TempFolder& folder() const { return folder_; }

 private:
  void StartExecutor(size_t i);

  const StormOptions options_;
  TempFolder folder_;
  std::unique_ptr<DatabaseServer> server_;
  std::string name_;
  std::vector<std::unique_ptr<TcpProxy>> database_proxies_;
  std::vector<std::unique_ptr<SchedulerProcess>> schedulers_;
  std::vector<std::vector<std::unique_ptr<TcpProxy>>> proxies_;
  std::vector<std::unique_ptr<ChildProcess>> executors_;
};

}  // namespace leasehold::e2e

#endif  // TESTS_E2E_STORM_STORM_CLUSTER_H_
