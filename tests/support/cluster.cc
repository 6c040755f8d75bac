#include "tests/support/cluster.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "tests/support/free_port.h"
#include "tests/support/http_get.h"

namespace leasehold::e2e {
namespace {

std::string TailOf(const std::string& log) {
  constexpr size_t kTailBytes = 6000;
  return log.size() <= kTailBytes ? log : log.substr(log.size() - kTailBytes);
}

}  // namespace

Flags ShortLeases() {
  return {"--lease_duration=3s", "--heartbeat_interval=1s",
          "--accept_timeout=2s"};
}

std::string Binary(const std::string& name) {
  return absl::StrCat(LEASEHOLD_BINARY_DIR "/bin/", name);
}

SchedulerProcess::SchedulerProcess(std::string mysql, Flags flags,
                                   std::string log_path)
    : mysql_(std::move(mysql)),
      flags_(std::move(flags)),
      log_path_(std::move(log_path)),
      port_(FreePort()),
      http_port_(FreePort()),
      address_(LoopbackAddress(port_)),
      client_(std::make_unique<TaskClient>(address_)) {}

void SchedulerProcess::Launch() {
  std::vector<std::string> argv = {
      Binary("leasehold-scheduler"), "--listen=" + address_,
      "--http_listen=" + LoopbackAddress(http_port_)};
  argv.insert(argv.end(), flags_.begin(), flags_.end());
  process_ = std::make_unique<ChildProcess>(
      ChildOptions{.argv = argv,
                   .environment = {{"LEASEHOLD_MYSQL", mysql_}},
                   .log_path = log_path_,
                   .working_folder = ""});
}

bool SchedulerProcess::Serving() {
  // A connection of its own: the client's would remember failures and wait
  // before it tries again.
  const TaskClient probe(address_);
  const auto health = grpc::health::v1::Health::NewStub(probe.channel());
  grpc::health::v1::HealthCheckResponse response;
  const grpc::Status status =
      health->Check(ContextWithTimeout(absl::Seconds(1)).get(), {}, &response);
  return status.ok() &&
         response.status() == grpc::health::v1::HealthCheckResponse::SERVING;
}

void SchedulerProcess::WaitUntilServing() {
  const bool settled =
      Eventually([this] { return !process_->Running() || Serving(); });
  if (!settled || !process_->Running()) {
    throw std::runtime_error("the scheduler does not serve: " + TailOf(Log()));
  }
}

void SchedulerProcess::Start() {
  Launch();
  WaitUntilServing();
}

int SchedulerProcess::HttpStatus(const std::string& path) const {
  return HttpGet(http_port_, path).status;
}

std::string SchedulerProcess::HttpBody(const std::string& path) const {
  return HttpGet(http_port_, path).body;
}

double SchedulerProcess::Metric(const std::string& name) const {
  std::istringstream lines(HttpGet(http_port_, "/metrics").body);
  double sum = -1;
  for (std::string line; std::getline(lines, line);) {
    const size_t end = line.find_first_of("{ ");
    if (end != name.size() || line.compare(0, end, name) != 0) continue;
    sum = (sum < 0 ? 0 : sum) +
          std::atof(line.substr(line.rfind(' ') + 1).c_str());
  }
  return sum;
}

std::string SchedulerProcess::Log() const { return ReadFile(log_path_); }

ExecutorProcess::ExecutorProcess(std::string config_path, Flags flags,
                                 std::string log_path)
    : config_path_(std::move(config_path)),
      flags_(std::move(flags)),
      log_path_(std::move(log_path)) {}

void ExecutorProcess::Start() {
  std::vector<std::string> argv = {Binary("leasehold-executor"),
                                   "--config=" + config_path_};
  argv.insert(argv.end(), flags_.begin(), flags_.end());
  process_ = std::make_unique<ChildProcess>(ChildOptions{.argv = argv,
                                                         .environment = {},
                                                         .log_path = log_path_,
                                                         .working_folder = ""});
}

std::string ExecutorProcess::Log() const { return ReadFile(log_path_); }

Cluster::Cluster(DatabaseServer& server)
    : server_(server), database_(server.CreateDatabase()) {}

Cluster::~Cluster() {
  executors_.clear();
  if (testing::Test::HasFailure()) {
    for (const auto& scheduler : schedulers_) {
      std::cerr << "--- scheduler " << scheduler->address() << "\n"
                << TailOf(scheduler->Log());
    }
  }
  schedulers_.clear();
}

SchedulerProcess& Cluster::AddScheduler(const Flags& flags) {
  const std::string log = folder_.File(
      "scheduler-" + std::to_string(schedulers_.size() + 1) + ".log");
  schedulers_.push_back(std::make_unique<SchedulerProcess>(
      server_.Address(database_), flags, log));
  return *schedulers_.back();
}

SchedulerProcess& Cluster::StartScheduler(const Flags& flags) {
  SchedulerProcess& scheduler = AddScheduler(flags);
  scheduler.Start();
  return scheduler;
}

ExecutorProcess& Cluster::StartExecutor(const std::string& config,
                                        const Flags& flags,
                                        const std::string& scheduler_address) {
  const std::string name = "executor-" + std::to_string(executors_.size() + 1);
  const std::string address = scheduler_address.empty()
                                  ? schedulers_.front()->address()
                                  : scheduler_address;
  const std::string path =
      folder_.Write(name + ".textproto",
                    absl::StrCat("scheduler: \"", address,
                                 "\"\nexecutor_id: \"", name, "\"\n", config));
  executors_.push_back(std::make_unique<ExecutorProcess>(
      path, flags, folder_.File(name + ".log")));
  executors_.back()->Start();
  return *executors_.back();
}

std::string BuiltInHandlers(const std::string& queue, int slots) {
  return absl::StrCat("slots: ", slots, "\nqueue {\n  name: \"", queue, R"("
  handler { type: "echo" echo {} }
  handler { type: "sleep" sleep {} }
  handler { type: "fail" fail {} }
}
)");
}

std::string ShellHandler(const std::string& queue, const std::string& type,
                         const std::string& script, int slots) {
  return absl::StrCat("slots: ", slots, "\nqueue {\n  name: \"", queue,
                      "\"\n  handler { type: \"", type,
                      "\" exec { argv: \"sh\" argv: \"-c\" argv: \"",
                      absl::CEscape(script), "\" } }\n}\n");
}

}  // namespace leasehold::e2e
