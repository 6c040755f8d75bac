// Schedulers, executors and clients under random faults; at the end everything
// must have come right. See tests/README.md.
//
//   storm --length=3m --tasks=20000 --database=mysql --seed=4711
//
// Exit status: 0 nothing was broken, 1 something was, 2 bad flags.
#include <absl/flags/flag.h>
#include <absl/flags/parse.h>
#include <absl/flags/usage.h>

#include <cstdio>
#include <exception>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/e2e/storm/clients.h"
#include "tests/e2e/storm/database_view.h"
#include "tests/e2e/storm/faults.h"
#include "tests/e2e/storm/observations.h"
#include "tests/e2e/storm/options.h"
#include "tests/e2e/storm/storm_cluster.h"
#include "tests/support/history_checker.h"
#include "tests/support/poll.h"

ABSL_FLAG(uint64_t, seed, 0, "of every random choice; 0 draws one");
ABSL_FLAG(absl::Duration, length, absl::Seconds(45), "of the faults");
ABSL_FLAG(int, tasks, 3000, "to submit, evenly over the length");
ABSL_FLAG(std::string, database, "mariadb", "mariadb or mysql");
ABSL_FLAG(int, schedulers, 2, "");
ABSL_FLAG(int, executors, 6, "");
ABSL_FLAG(int, slots, 8, "of each executor");
ABSL_FLAG(absl::Duration, fault_interval, absl::Seconds(1),
          "mean time from one fault to the next");
ABSL_FLAG(absl::Duration, drain_bound, absl::Seconds(60),
          "for the backlog to drain once the faults are over");
ABSL_FLAG(bool, tolerate_unimplemented, false,
          "cancel, pause, resume and retry may be UNIMPLEMENTED");

namespace leasehold::e2e {
namespace {

StormOptions OptionsFromFlags() {
  StormOptions options;
  options.seed = absl::GetFlag(FLAGS_seed);
  if (options.seed == 0) options.seed = std::random_device{}();
  options.length = absl::GetFlag(FLAGS_length);
  options.tasks = absl::GetFlag(FLAGS_tasks);
  options.database = absl::GetFlag(FLAGS_database) == "mysql"
                         ? DatabaseServer::Kind::kMySql
                         : DatabaseServer::Kind::kMariaDb;
  options.schedulers = absl::GetFlag(FLAGS_schedulers);
  options.executors = absl::GetFlag(FLAGS_executors);
  options.slots = absl::GetFlag(FLAGS_slots);
  options.fault_interval = absl::GetFlag(FLAGS_fault_interval);
  options.drain_bound = absl::GetFlag(FLAGS_drain_bound);
  options.tolerate_unimplemented = absl::GetFlag(FLAGS_tolerate_unimplemented);
  return options;
}

// What clients paused and did not resume would wait for ever.
void ResumeAll(StormCluster& cluster) {
  TaskClient& client = cluster.scheduler(0).client();
  v1::ListTasksRequest paused;
  paused.set_queue(kStormQueue);
  paused.set_page_size(1000);
  paused.add_states(v1::TASK_STATE_PAUSED);
  for (const v1::Task& task : client.List(paused)) {
    v1::ResumeTaskRequest request;
    request.set_task_id(task.id());
    v1::Task resumed;
    client.stub().ResumeTask(ContextWithTimeout().get(), request, &resumed);
  }
}

bool Drain(StormCluster& cluster, Faults& faults, absl::Duration bound) {
  SqlConnection sql = cluster.Sql();
  absl::Time next_resume = absl::InfinitePast();
  return Eventually(
      [&] {
        faults.ReviveTheFallen();  // Some tasks crash their executor.
        if (absl::Now() > next_resume) {
          ResumeAll(cluster);
          next_resume = absl::Now() + absl::Seconds(2);
        }
        return sql.Number("SELECT COUNT(*) FROM task_live") == 0;
      },
      bound);
}

void PrintCounts(const std::string& title,
                 const std::map<std::string, long long>& counts) {
  std::printf("%s\n", title.c_str());
  for (const auto& [what, count] : counts)
    std::printf("  %-36s %8lld\n", what.c_str(), count);
}

template <typename Count>
std::map<std::string, long long> Widened(
    const std::map<std::string, Count>& counts) {
  return {counts.begin(), counts.end()};
}

class Storm {
 public:
  explicit Storm(const StormOptions& options)
      : options_(options),
        cluster_(options),
        faults_(options, cluster_, observations_) {}

  // Whether nothing was broken.
  bool Run() {
    std::printf("logs in %s\n", cluster_.folder().path().c_str());
    LeaseWatch leases(cluster_.database().socket_path(),
                      cluster_.database_name(), observations_);
    StormClients clients(options_, cluster_.addresses(), observations_);
    faults_.RunUntil(absl::Now() + options_.length);
    faults_.Stop();
    clients.StopSubmitting(options_.drain_bound);
    clients.StopControlling();
    const absl::Time calm = absl::Now();
    const bool drained = Drain(cluster_, faults_, options_.drain_bound);
    const absl::Duration drain = absl::Now() - calm;
    clients.StopLooking();
    leases.Stop();
    return Judge(drained, drain);
  }

 private:
  bool Judge(bool drained, absl::Duration drain) {
    History history = observations_.TakeHistory();
    history.runs = ReadRunLog(cluster_.run_log());
    std::vector<std::string> mistakes = faults_.crashes();
    SqlConnection sql = cluster_.Sql();
    history.final_tasks = ReadFinalTasks(sql, &mistakes);
    history.end_us = NowMicros();
    for (const std::string& error : observations_.forbidden_errors())
      mistakes.push_back(absl::StrCat("a client was told ", error));
    const Verdict verdict = CheckHistory(history);

    PrintSummary(history, verdict, sql, drain);
    for (const std::string& mistake : mistakes)
      std::printf("BROKEN  %s\n", mistake.c_str());
    constexpr size_t kMaxPrinted = 50;
    for (size_t i = 0; i < verdict.violations.size() && i < kMaxPrinted; ++i) {
      const Violation& violation = verdict.violations[i];
      std::printf("BROKEN  %s: task %s: %s\n", BrokenName(violation.broken),
                  violation.task.c_str(), violation.what.c_str());
    }
    if (verdict.violations.size() > kMaxPrinted)
      std::printf("BROKEN  and %zu more\n",
                  verdict.violations.size() - kMaxPrinted);
    if (!drained) std::printf("BROKEN  the backlog did not drain in time\n");
    return drained && mistakes.empty() && verdict.violations.empty();
  }

  void PrintSummary(const History& history, const Verdict& verdict,
                    SqlConnection& sql, absl::Duration drain) {
    std::map<std::string, long long> tasks;
    for (const auto& [id, task] : history.final_tasks) {
      std::string state = v1::TaskState_Name(task.state).substr(11);
      if (task.reason != v1::FAILURE_REASON_UNSPECIFIED)
        absl::StrAppend(&state, " ",
                        v1::FailureReason_Name(task.reason).substr(15));
      ++tasks[state];
    }
    tasks["submitted"] = observations_.submitted();
    tasks["acknowledged"] = static_cast<long long>(history.acknowledged.size());
    PrintCounts("tasks", tasks);
    PrintCounts("attempts that did not succeed, by class", CountAttempts(sql));
    PrintCounts("runs", {{"all", static_cast<long long>(history.runs.size())},
                         {"past their lease",
                          static_cast<long long>(verdict.runs_past_lease)},
                         {"cut off by a kill",
                          static_cast<long long>(verdict.runs_without_end)}});
    PrintCounts("faults", Widened(observations_.faults()));
    PrintCounts("client errors", Widened(observations_.errors()));
    std::map<std::string, long long> broken = {
        {"live past a deadline",
         static_cast<long long>(verdict.past_deadline)}};
    for (const Broken kind :
         {Broken::kOverlappingLeases, Broken::kLostTask,
          Broken::kTerminalChanged, Broken::kNotEnded, Broken::kWrongOutcome,
          Broken::kDishonestAnswer}) {
      broken[BrokenName(kind)] = static_cast<long long>(verdict.Count(kind));
    }
    PrintCounts("broken", broken);
    std::printf("reads of a state %zu, sightings of a lease %zu\n",
                history.states.size(), history.leases.size());
    std::printf("drained in %.1f s\n", absl::ToDoubleSeconds(drain));
  }

  const StormOptions options_;
  Observations observations_;
  StormCluster cluster_;
  Faults faults_;
};

int Main() {
  const std::string database = absl::GetFlag(FLAGS_database);
  if (database != "mariadb" && database != "mysql") {
    std::fprintf(stderr, "--database=%s, want mariadb or mysql\n",
                 database.c_str());
    return 2;
  }
  const StormOptions options = OptionsFromFlags();
  std::printf("--seed=%llu\n", static_cast<unsigned long long>(options.seed));
  std::fflush(stdout);
  try {
    const bool good = Storm(options).Run();
    std::printf("%s, --seed=%llu\n", good ? "nothing broken" : "BROKEN",
                static_cast<unsigned long long>(options.seed));
    return good ? 0 : 1;
  } catch (const std::exception& error) {
    std::printf("BROKEN  %s, --seed=%llu\n", error.what(),
                static_cast<unsigned long long>(options.seed));
    return 1;
  }
}

}  // namespace
}  // namespace leasehold::e2e

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "breaks a cluster in every way for a while, and checks what is left");
  absl::ParseCommandLine(argc, argv);
  return leasehold::e2e::Main();
}
