// The whole way, as fast as it goes: submit in groups, lease, echo, store the
// result; beside the same statements in raw SQL on the same server.
#include <unistd.h>

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
#include "tests/bench/raw_sql.h"
#include "tests/support/cluster.h"

ABSL_FLAG(int, tasks, 100'000, "Tasks of one run");
ABSL_FLAG(int, group, 100, "Tasks of one SubmitTasks call");
ABSL_FLAG(int, in_flight, 8, "Calls at a time");
ABSL_FLAG(int, slots, 64, "Slots of each of the two executors");
ABSL_FLAG(int, runs, 3, "Runs; the medians count");

namespace leasehold::bench {
namespace {

using leasehold::v1::Task;

// Every task ended once, SUCCEEDED, on its first lease, with its own payload.
bool ResultsAreRight(const e2e::Cluster& cluster,
                     const std::vector<std::string>& ids) {
  e2e::SqlConnection sql = cluster.Sql();
  const auto count = static_cast<long long>(ids.size());
  const long long results = sql.Number("SELECT COUNT(*) FROM task_result");
  const long long right = sql.Number(
      "SELECT COUNT(DISTINCT r.id) FROM task_result r JOIN task_body b ON b.id "
      "= r.id "
      "WHERE r.state = 6 AND r.attempt = 1 AND r.lease_number = 1 AND r.result "
      "= b.payload");
  const long long payloads =
      sql.Number("SELECT COUNT(DISTINCT payload) FROM task_body");
  const long long live = sql.Number("SELECT COUNT(*) FROM task_live");
  if (results == count && right == count && payloads == count && live == 0)
    return true;
  std::printf(
      "WRONG: %lld results, %lld right, %lld payloads, %lld live; want %lld, 0 "
      "live\n",
      results, right, payloads, live, count);
  return false;
}

void WaitUntilAllEnded(e2e::Cluster& cluster, e2e::TaskClient& client,
                       const std::vector<std::string>& ids) {
  client.Wait(ids.back(), absl::Minutes(5));
  e2e::SqlConnection sql = cluster.Sql();
  e2e::Eventually(
      [&] { return sql.Number("SELECT COUNT(*) FROM task_live") == 0; },
      absl::Minutes(5));
}

bool RunOnce(e2e::DatabaseServer& server, size_t tasks, double* rate) {
  e2e::Cluster cluster(server);
  e2e::SchedulerProcess& scheduler = cluster.StartScheduler();
  const std::string config =
      absl::StrCat("max_leases: ", 8 * absl::GetFlag(FLAGS_slots), "\n",
                   e2e::BuiltInHandlers("q", absl::GetFlag(FLAGS_slots)));
  CpuMeter cpu;
  cpu.Add("scheduler", scheduler.process().pid());
  for (const char* name : {"executor 1", "executor 2"}) {
    cpu.Add(name, cluster.StartExecutor(config).process().pid());
  }
  cpu.Add("database", server.pid());
  cpu.Add("client", getpid());
  std::vector<Task> inputs;
  inputs.reserve(tasks);
  for (size_t i = 0; i < tasks; ++i) {
    inputs.push_back(e2e::NewTask("q", "echo", absl::StrCat("input ", i)));
  }
  // Both executors are there, and the lanes known, before the clock starts.
  for (int i = 0; i < 20; ++i) {
    scheduler.client().Wait(
        scheduler.client().Submit(e2e::NewTask("q", "echo", "warm-up")));
  }
  for (const char* table : {"task_result", "task_body"}) {
    cluster.Sql().Run(absl::StrCat("DELETE FROM ", table));
  }

  cpu.Start();
  const absl::Time began = absl::Now();
  const std::vector<std::string> ids =
      SubmitInGroups(scheduler.client().stub(), inputs,
                     static_cast<size_t>(absl::GetFlag(FLAGS_group)),
                     static_cast<size_t>(absl::GetFlag(FLAGS_in_flight)));
  const double submit_seconds = absl::ToDoubleSeconds(absl::Now() - began);
  WaitUntilAllEnded(cluster, scheduler.client(), ids);
  const double seconds = absl::ToDoubleSeconds(absl::Now() - began);

  *rate = static_cast<double>(tasks) / seconds;
  std::printf(
      "%zu tasks in %.2f s: %.0f tasks/s (submits took %.2f s); scheduler RSS "
      "%.0f MiB\n",
      tasks, seconds, *rate, submit_seconds,
      e2e::ResidentMiB(scheduler.process().pid()));
  cpu.Print(tasks);
  std::fflush(stdout);
  return ResultsAreRight(cluster, ids);
}

int RunAll() {
  e2e::DatabaseServer server(e2e::DatabaseServer::Kind::kMariaDb,
                             e2e::DatabaseServer::Durability::kDurable);
  const auto tasks = static_cast<size_t>(absl::GetFlag(FLAGS_tasks));
  std::vector<double> rates;
  std::vector<double> raw_rates;
  bool right = true;
  for (int run = 0; run < absl::GetFlag(FLAGS_runs); ++run) {
    raw_rates.push_back(RunRawSql(server, tasks));
    std::printf("raw SQL: %.0f tasks/s\n", raw_rates.back());
    double rate = 0;
    right = RunOnce(server, tasks, &rate) && right;
    rates.push_back(rate);
  }
  std::printf(
      "medians: %.0f tasks/s, the same statements in raw SQL %.0f tasks/s; "
      "results %s\n",
      Median(rates), Median(raw_rates),
      right ? "right, each exactly once" : "WRONG");
  return right ? 0 : 1;
}

}  // namespace
}  // namespace leasehold::bench

int main(int argc, char** argv) {
  const leasehold::ProgramFlags program = {
      .name = "bench_throughput",
      .head =
          "Tasks a second from submit to stored result, next to the same "
          "statements in\nraw SQL.\n",
      .groups = {{"Flags", {"tasks", "group", "in_flight", "slots", "runs"}}},
      .has_environment = false};
  if (const auto status = leasehold::ReadFlagsOrExit(program, argc, argv)) {
    return *status;
  }
  return leasehold::bench::RunAll();
}
