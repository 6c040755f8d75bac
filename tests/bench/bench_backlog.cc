// What a million waiting tasks cost the scheduler in memory, and whether it
// still starts an urgent one at once.
#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/flags/command_line.h"
#include "tests/bench/async_load.h"
#include "tests/bench/figures.h"
#include "tests/support/cluster.h"

ABSL_FLAG(int, tasks, 1'000'000, "Tasks that wait");
ABSL_FLAG(int, payload_bytes, 200, "Size of each payload");

namespace leasehold::bench {
namespace {

using leasehold::v1::Task;

void PrintMemory(e2e::SchedulerProcess& scheduler, const char* when) {
  const pid_t pid = scheduler.process().pid();
  std::printf("%-34s scheduler RSS %6.1f MiB, peak %6.1f MiB\n", when,
              e2e::ResidentMiB(pid), PeakResidentMiB(pid));
  std::fflush(stdout);
}

void Run(size_t tasks, size_t payload_bytes) {
  e2e::DatabaseServer server(e2e::DatabaseServer::Kind::kMariaDb);
  e2e::Cluster cluster(server);
  e2e::SchedulerProcess& scheduler = cluster.StartScheduler();
  e2e::TaskClient& client = scheduler.client();
  // One slot, held by the first task; the lane is served, so the index fills
  // up.
  cluster.StartExecutor("max_leases: 1\n" + e2e::BuiltInHandlers("busy", 1));
  cluster.StartExecutor(e2e::BuiltInHandlers("free", 1));
  client.WaitForState(
      client.Submit(e2e::NewJsonTask("busy", "sleep", R"({"ms":3600000})")),
      leasehold::v1::TASK_STATE_RUNNING);
  PrintMemory(scheduler, "empty:");

  const std::vector<Task> chunk(
      100'000, e2e::NewTask("busy", "sleep", std::string(payload_bytes, 'x')));
  const absl::Time began = absl::Now();
  for (size_t stored = 0; stored < tasks; stored += chunk.size()) {
    SubmitInGroups(client.stub(), chunk, 1000, 8);
    PrintMemory(scheduler,
                absl::StrCat(stored + chunk.size(), " waiting:").c_str());
  }
  std::printf("stored in %.0f s\n", absl::ToDoubleSeconds(absl::Now() - began));

  // A replica that starts into the backlog.
  e2e::SchedulerProcess& fresh = cluster.StartScheduler();
  std::vector<double> milliseconds;
  for (int i = 0; i < 50; ++i) {
    const absl::Time submitted = absl::Now();
    client.Wait(client.Submit(e2e::NewTask("free", "echo", "urgent")));
    milliseconds.push_back(absl::ToDoubleMilliseconds(absl::Now() - submitted));
  }
  PrintMemory(scheduler, "after 50 tasks of another queue:");
  PrintMemory(fresh, "a replica started meanwhile:");
  std::printf("those took p50 %.2f ms, max %.2f ms\n", Median(milliseconds),
              Percentile(milliseconds, 1));
}

}  // namespace
}  // namespace leasehold::bench

int main(int argc, char** argv) {
  const leasehold::ProgramFlags program = {
      .name = "bench_backlog",
      .head = "The scheduler's memory with many tasks waiting.\n",
      .groups = {{"Flags", {"tasks", "payload_bytes"}}},
      .has_environment = false};
  if (const auto status = leasehold::ReadFlagsOrExit(program, argc, argv)) {
    return *status;
  }
  leasehold::bench::Run(
      static_cast<size_t>(absl::GetFlag(FLAGS_tasks)),
      static_cast<size_t>(absl::GetFlag(FLAGS_payload_bytes)));
  return 0;
}
