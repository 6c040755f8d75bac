// The scheduler without its faces, as a whole: submits go in, fake executors
// behind session sinks do the work, results are read. Threads and clocks are
// real; the database is the store in memory.
#include "scheduler/server/core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/scheduler/engine/core_fixture.h"
#include "tests/support/borrowed_task_store.h"

namespace leasehold::scheduler {
namespace {

// An executor on a thread of its own: accepts, works at once, reports, and
// beats every tenth of a second.
class FakeExecutor : public SessionSink,
                     public std::enable_shared_from_this<FakeExecutor> {
 public:
  FakeExecutor(std::string id, int max_leases, bool works = true)
      : id_(std::move(id)), max_leases_(max_leases), works_(works) {}

  void Connect(SessionHost& host) {
    session_ = *host.OpenSession(shared_from_this());
    HelloMessage hello;
    hello.executor_id = id_;
    hello.incarnation = id_ + "-1";
    hello.lanes = {{"q", "t"}};
    hello.slots = max_leases_;
    hello.max_leases = max_leases_;
    session_->OnMessage(std::move(hello));
    thread_ = std::thread([this] { Run(); });
  }
  // The process dies: the stream breaks, nobody says goodbye.
  void Die() {
    {
      std::lock_guard lock(mutex_);
      dead_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
    if (session_ != nullptr) session_->OnStreamEnded();
    session_.reset();
  }
  ~FakeExecutor() override {
    if (thread_.joinable()) Die();
  }

  void Send(SchedulerMessage message) override {
    {
      std::lock_guard lock(mutex_);
      incoming_.push_back(std::move(message));
    }
    changed_.notify_all();
  }
  void Close(absl::Status status) override { closed.Add(std::move(status)); }

  Inbox<LeaseRef> leased;
  Inbox<ReportAck> acks;
  Inbox<absl::Status> closed;

 private:
  void Run() {
    while (true) {
      std::vector<SchedulerMessage> messages;
      {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, std::chrono::milliseconds(100),
                          [&] { return dead_ || !incoming_.empty(); });
        if (dead_) return;
        messages = std::exchange(incoming_, {});
      }
      for (const SchedulerMessage& message : messages) On(message);
      if (messages.empty()) Beat();
    }
  }
  void On(const SchedulerMessage& message) {
    if (const auto* leases = std::get_if<LeasesMessage>(&message)) {
      AcceptedMessage accepted;
      for (const LeaseMessage& lease : leases->leases) {
        accepted.leases.push_back(lease.lease);
        leased.Add(lease.lease);
        held_.insert(lease.lease);
      }
      session_->OnMessage(accepted);
      if (works_) Report(*leases);
    } else if (const auto* decided = std::get_if<ReportAcksMessage>(&message)) {
      for (const ReportAck& ack : decided->acks) {
        held_.erase(ack.lease);
        acks.Add(ack);
      }
    }
  }
  void Report(const LeasesMessage& leases) {
    OutcomesMessage outcomes;
    for (const LeaseMessage& lease : leases.leases) {
      outcomes.outcomes.emplace_back();
      outcomes.outcomes.back().lease = lease.lease;
      outcomes.outcomes.back().outcome = lease.spec.payload;  // Echo.
    }
    session_->OnMessage(std::move(outcomes));
  }
  void Beat() {
    HeartbeatMessage heartbeat;
    heartbeat.sequence = ++sequence_;
    for (const LeaseRef& lease : held_) {
      heartbeat.leases.emplace_back();
      heartbeat.leases.back().lease = lease;
    }
    session_->OnMessage(std::move(heartbeat));
  }

  const std::string id_;
  const int max_leases_;
  const bool works_;
  std::shared_ptr<Session> session_;
  std::set<LeaseRef> held_;  // Of the thread.
  int64_t sequence_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<SchedulerMessage> incoming_;
  bool dead_ = false;
  std::thread thread_;
};

class SchedulerCoreTest : public ::testing::Test {
 protected:
  ~SchedulerCoreTest() override {
    for (auto& executor : executors_) executor->Die();
  }

  std::unique_ptr<SchedulerCore> StartCore() {
    EngineOptions options;
    options.leases.lease_duration = absl::Seconds(1);
    options.leases.heartbeat_interval = absl::Milliseconds(100);
    options.leases.accept_timeout = absl::Milliseconds(800);
    auto core = SchedulerCore::Start(
        options, std::make_unique<BorrowedStore>(store_),
        *registries_.emplace_back(std::make_unique<MetricRegistry>()),
        Clock::Real());
    EXPECT_TRUE(core.ok()) << core.status();
    return *std::move(core);
  }
  std::shared_ptr<FakeExecutor> Connect(SchedulerCore& core, std::string id,
                                        int max_leases, bool works = true) {
    executors_.push_back(
        std::make_shared<FakeExecutor>(std::move(id), max_leases, works));
    executors_.back()->Connect(core.sessions());
    return executors_.back();
  }
  std::vector<TaskId> Submit(SchedulerCore& core, size_t count) {
    Inbox<absl::StatusOr<std::vector<SubmittedTask>>> answers;
    size_t calls = 0;
    for (size_t sent = 0; sent < count; sent += 100, ++calls) {
      core.submitter().Submit(
          std::vector<TaskSpec>(std::min<size_t>(100, count - sent),
                                MakeSpec("\"echo\"")),
          [&](auto answer) { answers.Add(std::move(answer)); });
    }
    EXPECT_TRUE(answers.Await(calls));
    std::vector<TaskId> ids;
    for (const auto& answer : answers.All()) {
      EXPECT_TRUE(answer.ok()) << answer.status();
      if (!answer.ok()) continue;
      for (const SubmittedTask& task : *answer) ids.push_back(task.id);
    }
    return ids;
  }
  bool AwaitEnded(size_t count) {
    return WaitFor([&] { return store_.ended_count() >= count; },
                   std::chrono::seconds(60));
  }

  MemoryTaskStore store_{&Clock::Real()};
  std::vector<std::unique_ptr<MetricRegistry>> registries_;
  std::vector<std::shared_ptr<FakeExecutor>> executors_;
};

TEST_F(SchedulerCoreTest, ATaskGoesAllTheWay) {
  auto core = StartCore();
  Inbox<absl::StatusOr<TaskRecord>> updates;
  const TaskId id = Submit(*core, 1)[0];
  ASSERT_TRUE(core->watch_hub()
                  .Watch(id, [&](auto task) { updates.Add(std::move(task)); })
                  .ok());

  auto executor = Connect(*core, "e", 4);

  ASSERT_TRUE(AwaitEnded(1));
  ASSERT_TRUE(WaitFor([&] {
    const auto all = updates.All();
    return !all.empty() && all.back().ok() && all.back()->ended.has_value();
  }));
  const TaskRecord ended = *updates.All().back();
  EXPECT_EQ(ended.ended->state, TaskState::kSucceeded);
  EXPECT_EQ(ended.ended->result.bytes, "\"echo\"");
  EXPECT_EQ(ended.ended->attempt, 1);
  ASSERT_TRUE(executor->acks.Await(1));
  EXPECT_EQ(executor->acks.All()[0].disposition, ReportDisposition::kRecorded);
  executor->Die();
}

TEST_F(SchedulerCoreTest, TwentyThousandTasksOverFourSessionsRunExactlyOnce) {
  constexpr size_t kTasks = 20'000;
  auto core = StartCore();
  for (const char* id : {"a", "b", "c", "d"}) Connect(*core, id, 200);

  const std::vector<TaskId> ids = Submit(*core, kTasks);

  ASSERT_TRUE(AwaitEnded(kTasks));
  std::map<TaskId, int> leases;
  for (auto& executor : executors_) {
    executor->Die();
    for (const LeaseRef& lease : executor->leased.All()) {
      ++leases[lease.task_id];
    }
  }
  ASSERT_EQ(leases.size(), kTasks);
  for (const TaskId id : ids) {
    ASSERT_EQ(leases[id], 1);
    ASSERT_EQ(store_.EndedRow(id)->state, TaskState::kSucceeded);
    ASSERT_EQ(store_.EndedRow(id)->lease_number, 1);
  }
}

TEST_F(SchedulerCoreTest, TwoReplicasOnOneDatabaseRunEveryTaskOnce) {
  constexpr size_t kTasks = 2'000;
  auto one = StartCore();
  auto two = StartCore();
  Connect(*one, "a", 100);
  Connect(*two, "b", 100);

  Submit(*one, kTasks / 2);
  Submit(*two, kTasks / 2);

  ASSERT_TRUE(AwaitEnded(kTasks));
  size_t leases = 0;
  for (auto& executor : executors_) {
    executor->Die();
    leases += executor->leased.size();
  }
  EXPECT_EQ(leases, kTasks);
}

TEST_F(SchedulerCoreTest, TheTasksOfADeadExecutorRunElsewhere) {
  auto core = StartCore();
  auto dying = Connect(*core, "dying", 3, /*works=*/false);
  const auto ids = Submit(*core, 3);
  ASSERT_TRUE(dying->leased.Await(3));

  dying->Die();
  auto living = Connect(*core, "living", 3);

  ASSERT_TRUE(AwaitEnded(3));
  for (const TaskId id : ids) {
    EXPECT_EQ(store_.EndedRow(id)->state, TaskState::kSucceeded);
    EXPECT_EQ(store_.EndedRow(id)->lease_number, 2);
  }
  living->Die();
}

TEST_F(SchedulerCoreTest, ALeaseThatIsHeartbeatenRunsOnceHoweverLong) {
  auto core = StartCore();
  auto slow = Connect(*core, "slow", 1, /*works=*/false);
  const TaskId id = Submit(*core, 1)[0];
  ASSERT_TRUE(slow->leased.Await(1));
  const int64_t until_us = store_.NowUs().value() + 3'000'000;

  ASSERT_TRUE(WaitFor([&] { return store_.NowUs().value() > until_us; }));

  EXPECT_EQ(store_.LiveRow(id)->phase, Phase::kLeased);
  EXPECT_EQ(store_.LiveRow(id)->lease_number, 1);
  EXPECT_EQ(slow->leased.size(), 1u);
  slow->Die();
}

TEST_F(SchedulerCoreTest, NothingIsLostWhenTheSchedulerIsReplaced) {
  auto first = StartCore();
  auto before = Connect(*first, "before", 5, /*works=*/false);
  const auto ids = Submit(*first, 50);
  ASSERT_TRUE(before->leased.Await(5));
  before->Die();
  first->Drain(absl::ZeroDuration());
  first->Stop();
  first.reset();

  auto second = StartCore();
  auto after = Connect(*second, "after", 10);

  ASSERT_TRUE(AwaitEnded(50));
  for (const TaskId id : ids) {
    EXPECT_EQ(store_.EndedRow(id)->state, TaskState::kSucceeded);
  }
  after->Die();
}

TEST_F(SchedulerCoreTest, ServiceResumesWhenTheDatabaseIsBack) {
  auto core = StartCore();
  auto executor = Connect(*core, "e", 10);
  Submit(*core, 10);
  ASSERT_TRUE(AwaitEnded(10));
  store_.SetReachable(false);
  ASSERT_TRUE(WaitFor([&] { return !core->DatabaseUp(); }));
  Inbox<absl::StatusOr<std::vector<SubmittedTask>>> answers;
  core->submitter().Submit({MakeSpec()}, [&](auto a) { answers.Add(a); });
  ASSERT_TRUE(answers.Await(1));
  EXPECT_EQ(answers.All()[0].status().code(), absl::StatusCode::kUnavailable);

  store_.SetReachable(true);
  Submit(*core, 10);

  EXPECT_TRUE(AwaitEnded(20));
  EXPECT_TRUE(WaitFor([&] { return core->DatabaseUp(); }));
  executor->Die();
}

TEST_F(SchedulerCoreTest, DrainRefusesWhatIsNewAndEndsWatches) {
  auto core = StartCore();
  auto executor = Connect(*core, "e", 1, /*works=*/false);
  const TaskId id = Submit(*core, 1)[0];
  Inbox<absl::StatusOr<TaskRecord>> updates;
  ASSERT_TRUE(core->watch_hub()
                  .Watch(id, [&](auto task) { updates.Add(std::move(task)); })
                  .ok());

  core->Drain(absl::Milliseconds(100));

  Inbox<absl::StatusOr<std::vector<SubmittedTask>>> answers;
  core->submitter().Submit({MakeSpec()}, [&](auto a) { answers.Add(a); });
  ASSERT_TRUE(answers.Await(1));
  EXPECT_EQ(answers.All()[0].status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(updates.All().back().status().code(),
            absl::StatusCode::kUnavailable);
  ASSERT_TRUE(executor->closed.Await(1));
  EXPECT_EQ(executor->closed.All()[0].code(), absl::StatusCode::kUnavailable);
  executor->Die();
  core->Stop();
}

TEST_F(SchedulerCoreTest, StartSaysThatTheDatabaseIsAway) {
  store_.SetReachable(false);
  MetricRegistry metrics;
  const auto core = SchedulerCore::Start(
      {}, std::make_unique<BorrowedStore>(store_), metrics, Clock::Real());
  EXPECT_EQ(core.status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(SchedulerCoreTest, EveryLoopSaysThatItComesRound) {
  auto core = StartCore();
  const std::vector<LoopAge> ages = core->LoopAges();
  EXPECT_EQ(ages.size(), 10u);
  for (const LoopAge& loop : ages) {
    EXPECT_LT(loop.age, loop.limit) << loop.name;
  }
}

}  // namespace
}  // namespace leasehold::scheduler
