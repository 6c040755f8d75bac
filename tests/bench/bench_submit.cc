// Single SubmitTask calls, many in flight, against a durable database.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/flags/command_line.h"
#include "tests/bench/async_load.h"
#include "tests/bench/figures.h"
#include "tests/support/cluster.h"

ABSL_FLAG(int, calls, 40'000, "SubmitTask calls of one run");
ABSL_FLAG(int, in_flight, 64, "Calls at a time");
ABSL_FLAG(int, runs, 3, "Runs; the median counts");

namespace leasehold::bench {
namespace {

using leasehold::v1::SubmitTaskRequest;
using leasehold::v1::Task;

double RunOnce(e2e::DatabaseServer& server, size_t calls, size_t in_flight) {
  e2e::Cluster cluster(server);
  e2e::SchedulerProcess& scheduler = cluster.StartScheduler();
  CpuMeter cpu;
  cpu.Add("scheduler", scheduler.process().pid());
  cpu.Add("database", server.pid());
  cpu.Add("client", getpid());
  struct Call {
    std::unique_ptr<grpc::ClientContext> context = e2e::ContextWithTimeout();
    SubmitTaskRequest request;
    Task stored;
  };
  std::atomic<size_t> failed = 0;
  auto* const stub = scheduler.client().stub().async();

  cpu.Start();
  const absl::Time began = absl::Now();
  RunInFlight(
      calls, in_flight, [&](size_t index, const std::function<void()>& done) {
        const auto call = std::make_shared<Call>();
        *call->request.mutable_task() =
            e2e::NewTask("q", "echo", absl::StrCat("input ", index));
        stub->SubmitTask(call->context.get(), &call->request, &call->stored,
                         [call, done, &failed](const grpc::Status& status) {
                           if (!status.ok()) ++failed;
                           done();
                         });
      });
  const double seconds = absl::ToDoubleSeconds(absl::Now() - began);

  const long long stored =
      cluster.Sql().Number("SELECT COUNT(*) FROM task_live");
  std::printf("%zu calls in %.2f s: %.0f/s; %lld stored, %zu failed\n", calls,
              seconds, static_cast<double>(calls) / seconds, stored,
              failed.load());
  cpu.Print(calls);
  return static_cast<double>(calls) / seconds;
}

}  // namespace
}  // namespace leasehold::bench

int main(int argc, char** argv) {
  const leasehold::ProgramFlags program = {
      .name = "bench_submit",
      .head = "SubmitTask calls a second.\n",
      .groups = {{"Flags", {"calls", "in_flight", "runs"}}},
      .has_environment = false};
  if (const auto status = leasehold::ReadFlagsOrExit(program, argc, argv)) {
    return *status;
  }
  leasehold::e2e::DatabaseServer server(
      leasehold::e2e::DatabaseServer::Kind::kMariaDb,
      leasehold::e2e::DatabaseServer::Durability::kDurable);
  std::vector<double> rates;
  for (int run = 0; run < absl::GetFlag(FLAGS_runs); ++run) {
    rates.push_back(leasehold::bench::RunOnce(
        server, static_cast<size_t>(absl::GetFlag(FLAGS_calls)),
        static_cast<size_t>(absl::GetFlag(FLAGS_in_flight))));
  }
  std::printf("median: %.0f SubmitTask calls/s at %d in flight\n",
              leasehold::bench::Median(rates), absl::GetFlag(FLAGS_in_flight));
  return 0;
}
