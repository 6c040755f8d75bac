// From the start of a submit to its committed result, at low load.
#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/flags/command_line.h"
#include "tests/bench/figures.h"
#include "tests/support/cluster.h"

ABSL_FLAG(int, rate, 50, "Tasks a second");
ABSL_FLAG(int, seconds, 20, "Length of one run");
ABSL_FLAG(int, runs, 3, "Runs; the medians count");

namespace leasehold::bench {
namespace {

using leasehold::v1::SubmitTaskRequest;
using leasehold::v1::Task;
using leasehold::v1::TaskService;
using leasehold::v1::WaitTaskRequest;

// One task: submitted, then waited for. Owns itself until it is done.
struct Probe {
  absl::Time began;
  std::unique_ptr<grpc::ClientContext> submit_context =
      e2e::ContextWithTimeout();
  std::unique_ptr<grpc::ClientContext> wait_context = e2e::ContextWithTimeout();
  SubmitTaskRequest submit;
  WaitTaskRequest wait;
  Task stored;
  Task ended;
};

class LatencyRun {
 public:
  explicit LatencyRun(TaskService::Stub& stub) : stub_(stub) {}

  void Start(int index) {
    const auto probe = std::make_shared<Probe>();
    *probe->submit.mutable_task() =
        e2e::NewTask("q", "echo", absl::StrCat("input ", index));
    probe->began = absl::Now();
    ++running_;
    stub_.async()->SubmitTask(probe->submit_context.get(), &probe->submit,
                              &probe->stored,
                              [this, probe](const grpc::Status& status) {
                                if (status.ok()) {
                                  Wait(probe);
                                } else {
                                  Finish(*probe, false);
                                }
                              });
  }

  std::vector<double> Milliseconds() {
    e2e::Eventually([this] { return running_ == 0; });
    const std::lock_guard<std::mutex> lock(mutex_);
    return milliseconds_;
  }
  size_t failed() const { return failed_; }

 private:
  void Wait(const std::shared_ptr<Probe>& probe) {
    probe->wait.set_task_id(probe->stored.id());
    stub_.async()->WaitTask(
        probe->wait_context.get(), &probe->wait, &probe->ended,
        [this, probe](const grpc::Status& status) {
          Finish(*probe,
                 status.ok() && probe->ended.state() ==
                                    leasehold::v1::TASK_STATE_SUCCEEDED);
        });
  }

  void Finish(const Probe& probe, bool succeeded) {
    const double elapsed =
        absl::ToDoubleMilliseconds(absl::Now() - probe.began);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (succeeded) {
        milliseconds_.push_back(elapsed);
      } else {
        ++failed_;
      }
    }
    --running_;
  }

  TaskService::Stub& stub_;
  std::mutex mutex_;
  std::vector<double> milliseconds_;
  std::atomic<size_t> failed_ = 0;
  std::atomic<int> running_ = 0;
};

std::vector<double> RunOnce(TaskService::Stub& stub, int rate, int seconds) {
  LatencyRun run(stub);
  const absl::Time began = absl::Now();
  for (int i = 0; i < rate * seconds; ++i) {
    absl::SleepFor(began + i * absl::Seconds(1) / rate - absl::Now());
    run.Start(i);
  }
  std::vector<double> milliseconds = run.Milliseconds();
  std::printf(
      "%zu tasks at %d/s: p50 %.2f ms, p90 %.2f ms, p99 %.2f ms, max %.2f ms, "
      "%zu failed\n",
      milliseconds.size(), rate, Percentile(milliseconds, 0.5),
      Percentile(milliseconds, 0.9), Percentile(milliseconds, 0.99),
      Percentile(milliseconds, 1), run.failed());
  return milliseconds;
}

}  // namespace
}  // namespace leasehold::bench

int main(int argc, char** argv) {
  const leasehold::ProgramFlags program = {
      .name = "bench_latency",
      .head = "How long an idle system takes for one task, submit to answer.\n",
      .groups = {{"Flags", {"rate", "seconds", "runs"}}},
      .has_environment = false};
  if (const auto status = leasehold::ReadFlagsOrExit(program, argc, argv)) {
    return *status;
  }
  leasehold::e2e::DatabaseServer server(
      leasehold::e2e::DatabaseServer::Kind::kMariaDb,
      leasehold::e2e::DatabaseServer::Durability::kDurable);
  leasehold::e2e::Cluster cluster(server);
  leasehold::e2e::SchedulerProcess& scheduler = cluster.StartScheduler();
  cluster.StartExecutor(leasehold::e2e::BuiltInHandlers("q"));
  cluster.StartExecutor(leasehold::e2e::BuiltInHandlers("q"));
  auto& stub = scheduler.client().stub();
  // Connections, lanes and caches are not what this is about.
  leasehold::bench::RunOnce(stub, absl::GetFlag(FLAGS_rate), 2);
  std::vector<double> p50;
  std::vector<double> p99;
  for (int run = 0; run < absl::GetFlag(FLAGS_runs); ++run) {
    const std::vector<double> milliseconds = leasehold::bench::RunOnce(
        stub, absl::GetFlag(FLAGS_rate), absl::GetFlag(FLAGS_seconds));
    p50.push_back(leasehold::bench::Percentile(milliseconds, 0.5));
    p99.push_back(leasehold::bench::Percentile(milliseconds, 0.99));
  }
  std::printf(
      "medians: p50 %.2f ms, p99 %.2f ms from submit to committed result\n",
      leasehold::bench::Median(p50), leasehold::bench::Median(p99));
  return 0;
}
