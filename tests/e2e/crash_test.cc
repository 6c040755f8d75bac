// Processes that die, freeze or go away in the middle of work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/support/cluster.h"
#include "tests/support/raw_executor.h"
#include "tests/support/tcp_proxy.h"

namespace leasehold::e2e {
namespace {

using leasehold::v1::Task;
using testing::SizeIs;

// How often each line stands in a side-effect log.
std::map<std::string, int> CountLines(const std::string& path) {
  std::map<std::string, int> counts;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) ++counts[line];
  return counts;
}

// A client that goes on submitting whatever happens to the scheduler, and
// remembers what was acknowledged.
class Load {
 public:
  Load(const std::string& address, int threads) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this, address, i] { Run(address, i); });
    }
  }
  ~Load() { Stop(); }

  void Stop() {
    stop_ = true;
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }
  size_t acknowledged() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ids_.size();
  }
  std::map<std::string, std::string> ids() {  // id -> payload
    const std::lock_guard<std::mutex> lock(mutex_);
    return ids_;
  }

 private:
  void Run(const std::string& address, int thread) {
    TaskClient client(address);
    for (int i = 0; !stop_; ++i) {
      const std::string payload = absl::StrCat(thread, "/", i);
      Task stored;
      if (!client.Submit(NewTask("q", "echo", payload), &stored).ok()) {
        absl::SleepFor(absl::Milliseconds(20));
        continue;
      }
      const std::lock_guard<std::mutex> lock(mutex_);
      ids_[stored.id()] = payload;
    }
  }

  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::map<std::string, std::string> ids_;
  std::vector<std::thread> threads_;
};

TEST(Crash, AKilledSchedulerLosesNoAcknowledgedSubmit) {
  Cluster cluster(SharedDatabase());
  SchedulerProcess& scheduler = cluster.StartScheduler(ShortLeases());
  cluster.StartExecutor(BuiltInHandlers("q"));
  cluster.StartExecutor(BuiltInHandlers("q"));
  Load load(scheduler.address(), 8);

  for (int kill = 0; kill < 3; ++kill) {
    const size_t before = load.acknowledged();
    ASSERT_TRUE(Eventually([&] { return load.acknowledged() > before + 300; }));
    scheduler.process().Kill();
    scheduler.Start();
  }
  const size_t before = load.acknowledged();
  ASSERT_TRUE(Eventually([&] { return load.acknowledged() > before + 100; }));
  load.Stop();

  for (const auto& [id, payload] : load.ids()) {
    const Task task = scheduler.client().Wait(id);
    ASSERT_EQ(task.state(), leasehold::v1::TASK_STATE_SUCCEEDED)
        << task.ShortDebugString();
    ASSERT_EQ(task.result().data(), payload);
  }
}

TEST(Crash, TasksOfAKilledExecutorRunAgainElsewhere) {
  Cluster cluster(SharedDatabase());
  TaskClient& client = cluster.StartScheduler(ShortLeases()).client();
  ExecutorProcess& doomed = cluster.StartExecutor(BuiltInHandlers("q"));
  std::vector<std::string> ids;
  for (int i = 0; i < 4; ++i)
    ids.push_back(client.Submit(NewJsonTask("q", "sleep", R"({"ms":2000})")));
  for (const std::string& id : ids)
    client.WaitForState(id, leasehold::v1::TASK_STATE_RUNNING);

  doomed.process().Kill();
  cluster.StartExecutor(BuiltInHandlers("q"));
  const absl::Time killed = absl::Now();

  for (const std::string& id : ids) {
    const Task task = client.Wait(id);
    EXPECT_EQ(task.state(), leasehold::v1::TASK_STATE_SUCCEEDED);
    EXPECT_EQ(task.attempt(), 2);
    EXPECT_EQ(task.executor_id(), "executor-2");
    const Task full = client.Get(id);
    ASSERT_THAT(full.attempts(), SizeIs(1));
    EXPECT_EQ(full.attempts(0).error().error_class(),
              leasehold::v1::ERROR_CLASS_LEASE_EXPIRED);
    EXPECT_EQ(full.attempts(0).executor_id(), "executor-1");
  }
  // The lease, the reaper's round, and the work itself; with room for a slow
  // machine.
  EXPECT_LT(absl::Now() - killed, absl::Seconds(20));
}

TEST(Crash, ATaskOfTenLeasesRunsOnceWhileItsExecutorHeartbeats) {
  Cluster cluster(SharedDatabase());
  TaskClient& client =
      cluster.StartScheduler({"--lease_duration=3s", "--heartbeat_interval=1s"})
          .client();
  const std::string log = cluster.folder().File("effects");
  cluster.StartExecutor(ShellHandler(
      "q", "long",
      absl::StrCat("echo start >>", log, "; sleep 30; echo end >>", log)));

  const Task task =
      client.Wait(client.Submit(NewTask("q", "long")), absl::Seconds(90));

  EXPECT_EQ(task.state(), leasehold::v1::TASK_STATE_SUCCEEDED);
  EXPECT_EQ(task.attempt(), 1);
  EXPECT_EQ(CountLines(log),
            (std::map<std::string, int>{{"start", 1}, {"end", 1}}));
}

TEST(Crash, ResultsOfWorkDoneWhileTheSchedulerWasAwayArrive) {
  Cluster cluster(SharedDatabase());
  SchedulerProcess& scheduler = cluster.StartScheduler(ShortLeases());
  const std::string log = cluster.folder().File("effects");
  cluster.StartExecutor(ShellHandler(
      "q", "work",
      absl::StrCat("id=$(cat); sleep 2; echo $id >>", log, "; echo $id"), 5));
  std::vector<std::string> ids;
  for (int i = 0; i < 5; ++i) {
    ids.push_back(
        scheduler.client().Submit(NewTask("q", "work", std::to_string(i))));
  }
  for (const std::string& id : ids) {
    scheduler.client().WaitForState(id, leasehold::v1::TASK_STATE_RUNNING);
  }

  // Away for longer than the lease.
  scheduler.process().Kill();
  ASSERT_TRUE(Eventually([&] { return CountLines(log).size() == 5; }));
  absl::SleepFor(absl::Seconds(4));
  scheduler.Start();

  for (const std::string& id : ids) {
    EXPECT_EQ(scheduler.client().Wait(id).state(),
              leasehold::v1::TASK_STATE_SUCCEEDED);
  }
  for (const auto& [line, count] : CountLines(log)) EXPECT_EQ(count, 1) << line;
}

TEST(Crash, AFrozenExecutorsTaskRunsElsewhereAndItsLateResultChangesNothing) {
  Cluster cluster(SharedDatabase());
  TaskClient& client = cluster.StartScheduler(ShortLeases()).client();
  ExecutorProcess& frozen = cluster.StartExecutor(BuiltInHandlers("q"));
  const std::string id =
      client.Submit(NewJsonTask("q", "sleep", R"({"ms":1500})"));
  client.WaitForState(id, leasehold::v1::TASK_STATE_RUNNING);

  frozen.process().Signal(SIGSTOP);
  cluster.StartExecutor(BuiltInHandlers("q"));
  const Task task = client.Wait(id);
  frozen.process().Signal(SIGCONT);

  EXPECT_EQ(task.executor_id(), "executor-2");
  EXPECT_EQ(task.attempt(), 2);
  // The thawed one still works, and the outcome stands.
  const std::string next = client.Submit(NewTask("q", "echo"));
  EXPECT_EQ(client.Wait(next).state(), leasehold::v1::TASK_STATE_SUCCEEDED);
  EXPECT_EQ(client.Get(id).executor_id(), "executor-2");
}

TEST(Crash, AHalfDeadConnectionCostsNoResult) {
  Cluster cluster(SharedDatabase());
  SchedulerProcess& scheduler = cluster.StartScheduler(ShortLeases());
  TcpProxy proxy(scheduler.port());
  const std::string log = cluster.folder().File("effects");
  cluster.StartExecutor(
      ShellHandler("q", "work", absl::StrCat("sleep 2; echo ran >>", log)), {},
      proxy.address());
  const std::string id = scheduler.client().Submit(NewTask("q", "work"));
  scheduler.client().WaitForState(id, leasehold::v1::TASK_STATE_RUNNING);

  // What the executor says is lost without any sign; then the connection
  // breaks.
  proxy.SetMode(TcpProxy::Direction::kToServer, TcpProxy::Mode::kDrop);
  ASSERT_TRUE(Eventually([&] { return CountLines(log)["ran"] == 1; }));
  proxy.SetMode(TcpProxy::Direction::kToServer, TcpProxy::Mode::kForward);
  proxy.Cut();

  const Task task = scheduler.client().Wait(id);
  EXPECT_EQ(task.state(), leasehold::v1::TASK_STATE_SUCCEEDED);
  EXPECT_EQ(CountLines(log)["ran"], 1);
}

TEST(Crash, ASchedulerWithAHundredStreamsStopsWithinTenSeconds) {
  Cluster cluster(SharedDatabase());
  SchedulerProcess& scheduler = cluster.StartScheduler();
  std::vector<std::unique_ptr<RawExecutor>> executors;
  for (int i = 0; i < 100; ++i) {
    // Every tenth never reads.
    executors.push_back(std::make_unique<RawExecutor>(
        scheduler.address(), i % 10 == 0 ? RawExecutor::Reading::kNever
                                         : RawExecutor::Reading::kAlways));
    ASSERT_TRUE(executors.back()->SayHello(
        NewHello(absl::StrCat("raw-", i), "q", "t")));
    if (i % 10 != 0) executors.back()->NextWelcome();
  }
  leasehold::v1::WatchTaskRequest request;
  request.set_task_id(scheduler.client().Submit(NewTask("other", "t")));
  const auto context = ContextWithTimeout();
  const auto watch =
      scheduler.client().stub().WatchTask(context.get(), request);
  Task task;
  ASSERT_TRUE(watch->Read(&task));

  scheduler.process().Signal(SIGTERM);

  EXPECT_EQ(scheduler.process().WaitForExit(absl::Seconds(10)), 0);
  EXPECT_EQ(executors[1]->WaitForEnd().error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST(Crash, ATerminatedExecutorFinishesWhatRunsAndGivesBackTheRest) {
  Cluster cluster(SharedDatabase());
  TaskClient& client = cluster.StartScheduler().client();
  ExecutorProcess& leaving = cluster.StartExecutor(
      "max_leases: 8\n" + BuiltInHandlers("q", 2), {"--drain_timeout=20s"});
  std::vector<std::string> ids;
  for (int i = 0; i < 6; ++i)
    ids.push_back(client.Submit(NewJsonTask("q", "sleep", R"({"ms":2500})")));
  for (int i = 0; i < 2; ++i)
    client.WaitForState(ids[i], leasehold::v1::TASK_STATE_RUNNING);

  leaving.process().Signal(SIGTERM);
  EXPECT_EQ(leaving.process().WaitForExit(absl::Seconds(15)), 0);
  cluster.StartExecutor(BuiltInHandlers("q", 4));

  std::map<std::string, int> by_executor;
  for (const std::string& id : ids) {
    const Task task = client.Wait(id);
    EXPECT_EQ(task.state(), leasehold::v1::TASK_STATE_SUCCEEDED);
    EXPECT_EQ(task.attempt(), 1);
    ++by_executor[task.executor_id()];
  }
  EXPECT_EQ(by_executor["executor-1"], 2);
  EXPECT_EQ(by_executor["executor-2"], 4);
}

TEST(Crash, AnExecutorThatWasReplacedDoesNotComeBack) {
  Cluster cluster(SharedDatabase());
  SchedulerProcess& scheduler = cluster.StartScheduler();
  ExecutorProcess& older =
      cluster.StartExecutor(BuiltInHandlers("q"), {"--executor_id=same"});
  ASSERT_EQ(scheduler.client()
                .Wait(scheduler.client().Submit(NewTask("q", "echo")))
                .executor_id(),
            "same");

  ExecutorProcess& newer =
      cluster.StartExecutor(BuiltInHandlers("q"), {"--executor_id=same"});

  EXPECT_TRUE(older.process().WaitForExit(absl::Seconds(40)).has_value())
      << older.Log();
  EXPECT_TRUE(newer.process().Running());
  EXPECT_EQ(scheduler.client()
                .Wait(scheduler.client().Submit(NewTask("q", "echo")))
                .state(),
            leasehold::v1::TASK_STATE_SUCCEEDED);
}

}  // namespace
}  // namespace leasehold::e2e
