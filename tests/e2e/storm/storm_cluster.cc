#include "tests/e2e/storm/storm_cluster.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace leasehold::e2e {
namespace {

constexpr char kPassword[] = "storm";

}  // namespace

StormCluster::StormCluster(const StormOptions& options) : options_(options) {
  // What was committed survives a killed server, though not a killed machine.
  server_ = std::make_unique<DatabaseServer>(
      options.database, DatabaseServer::Durability::kFast,
      "--innodb-flush-log-at-trx-commit=2");
  name_ = server_->CreateDatabase();
  SqlConnection sql(server_->socket_path());
  sql.Run(absl::StrCat("CREATE USER storm@'127.0.0.1' IDENTIFIED BY '",
                       kPassword, "'"));
  sql.Run("GRANT ALL ON " + name_ + ".* TO storm@'127.0.0.1'");
  const std::string password = folder_.Write("password", kPassword);

  for (int i = 0; i < options.schedulers; ++i) {
    database_proxies_.push_back(std::make_unique<TcpProxy>(server_->port()));
    schedulers_.push_back(std::make_unique<SchedulerProcess>(
        absl::StrCat("host=127.0.0.1 port=", database_proxies_.back()->port(),
                     " user=storm db=", name_, " password_file=", password),
        ShortLeases(),
        folder_.File(absl::StrCat("scheduler-", i + 1, ".log"))));
    schedulers_.back()->Start();
  }
  proxies_.resize(static_cast<size_t>(options.executors));
  executors_.resize(proxies_.size());
  for (size_t i = 0; i < proxies_.size(); ++i) {
    for (const auto& scheduler : schedulers_)
      proxies_[i].push_back(std::make_unique<TcpProxy>(scheduler->port()));
    StartExecutor(i);
  }
}

std::vector<std::string> StormCluster::addresses() const {
  std::vector<std::string> addresses;
  for (const auto& scheduler : schedulers_)
    addresses.push_back(scheduler->address());
  return addresses;
}

void StormCluster::StartExecutor(size_t i) {
  const std::string id = absl::StrCat("executor-", i + 1);
  std::vector<std::string> schedulers;
  for (const auto& proxy : proxies_[i]) schedulers.push_back(proxy->address());
  executors_[i] = std::make_unique<ChildProcess>(
      ChildOptions{.argv = {Binary("storm_executor"),
                            "--scheduler=" + absl::StrJoin(schedulers, ","),
                            "--executor_id=" + id, "--run_log=" + run_log(),
                            absl::StrCat("--queue=", kStormQueue),
                            absl::StrCat("--slots=", options_.slots)},
                   .environment = {},
                   .log_path = folder_.File(id + ".log"),
                   .working_folder = ""});
}

void StormCluster::RestartScheduler(size_t i) {
  schedulers_[i]->process().Kill();
  schedulers_[i]->Launch();
}

void StormCluster::RestartExecutor(size_t i) {
  executors_[i]->Kill();
  StartExecutor(i);
}

void StormCluster::HealNetwork() {
  for (const auto& proxy : database_proxies_) proxy->Heal();
  for (const auto& of_executor : proxies_) {
    for (const auto& proxy : of_executor) proxy->Heal();
  }
}

}  // namespace leasehold::e2e
