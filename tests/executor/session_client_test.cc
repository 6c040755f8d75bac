#include "executor/sdk/session_client.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "executor/sdk/executor.h"
#include "tests/executor/fake_scheduler.h"

namespace leasehold::executor {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(10);

class SessionClientTest : public testing::Test {
 protected:
  SessionClientTest() {
    Register("echo", [](HandlerContext& ctx) {
      return HandlerResult::Success(ctx.TakePayload());
    });
    Register("wait", [this](HandlerContext& ctx) {
      std::unique_lock<std::mutex> lock(mutex_);
      while (!open_ && !ctx.cancellation().cancelled()) {
        changed_.wait_for(lock, std::chrono::milliseconds(5));
      }
      if (!open_) return HandlerResult::Cancelled();
      return HandlerResult::Json("\"waited\"");
    });
  }
  ~SessionClientTest() override { Finish(); }

  void Register(const std::string& type, HandlerFunction run) {
    ASSERT_TRUE(registry_.Register("q", type, std::move(run)).ok());
  }

  void StartExecutor(std::vector<std::string> schedulers) {
    ExecutorOptions options;
    options.schedulers = std::move(schedulers);
    options.executor_id = "e";
    options.slots = 2;
    options.max_leases = 4;
    options.reconnect_initial = absl::Milliseconds(10);
    options.reconnect_max = absl::Milliseconds(50);
    options.drain_timeout = drain_timeout_;
    options.settle_timeout = settle_timeout_;
    options.leak_grace = absl::Seconds(5);
    auto executor = Executor::Create(std::move(options), std::move(registry_));
    ASSERT_TRUE(executor.ok()) << executor.status();
    executor_ = *std::move(executor);
    runner_ = std::thread([this] { status_ = executor_->Run(); });
  }
  void StartExecutor() { StartExecutor({scheduler_.address()}); }

  void Finish() {
    OpenGate();
    if (executor_ != nullptr) executor_->Stop();
    if (runner_.joinable()) runner_.join();
  }

  // How it ended by itself.
  absl::Status Join() {
    runner_.join();
    return status_;
  }

  void OpenGate() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

  bool WaitUntilStarted(const std::string& id) {
    return scheduler_
        .WaitFor([&](const v1::ExecutorMessage& message) {
          for (const v1::LeaseRef& ref : message.started().leases()) {
            if (ref.task_id() == id) return true;
          }
          return false;
        })
        .has_value();
  }

  std::optional<v1::LeaseRelease> WaitForRelease(const std::string& id) {
    std::optional<v1::LeaseRelease> found;
    scheduler_.WaitFor([&](const v1::ExecutorMessage& message) {
      for (const v1::LeaseRelease& release : message.released().leases()) {
        if (release.lease().task_id() == id) found = release;
      }
      return found.has_value();
    });
    return found;
  }

  void Acknowledge(const std::string& id) {
    v1::LeaseRef ref;
    ref.set_task_id(id);
    ref.set_lease_number(1);
    scheduler_.Acknowledge(ref, v1::REPORT_DISPOSITION_RECORDED);
  }

  FakeScheduler scheduler_;
  Registry registry_;
  absl::Duration drain_timeout_ = absl::Seconds(25);
  // Most tests end without acknowledging everything.
  absl::Duration settle_timeout_ = absl::Milliseconds(20);
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  std::unique_ptr<Executor> executor_;
  std::thread runner_;
  absl::Status status_;
};

TEST_F(SessionClientTest, RunsALeaseAndReportsItsResult) {
  StartExecutor();
  ASSERT_TRUE(scheduler_.WaitForSession(1));

  scheduler_.SendLease("1", 7, "echo", "{\"n\": 9007199254740993}");

  const auto result = scheduler_.WaitForResult("1");
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->result().json(), "{\"n\": 9007199254740993}");
  EXPECT_EQ(result->lease().lease_number(), 7);
}

TEST_F(SessionClientTest, SendsResultsAgainUntilTheyAreAcknowledged) {
  StartExecutor();
  ASSERT_TRUE(scheduler_.WaitForSession(1));
  scheduler_.SendLease("1", 1, "echo", "1");
  const auto first = scheduler_.WaitForResult("1");
  ASSERT_TRUE(first.has_value());

  scheduler_.Acknowledge(first->lease(), v1::REPORT_DISPOSITION_TRY_AGAIN);
  EXPECT_TRUE(scheduler_.WaitForResult("1", 2).has_value());

  scheduler_.End(grpc::Status(grpc::StatusCode::UNAVAILABLE, "restart"));
  EXPECT_TRUE(scheduler_.WaitForResult("1", 3).has_value());
}

TEST_F(SessionClientTest, KeepsResultsThatEndWhileThereIsNoSession) {
  StartExecutor();
  ASSERT_TRUE(scheduler_.WaitForSession(1));
  for (const char* id : {"1", "2"}) scheduler_.SendLease(id, 1, "wait", "1");
  ASSERT_TRUE(WaitUntilStarted("1"));
  ASSERT_TRUE(WaitUntilStarted("2"));
  scheduler_.RefuseWith(grpc::Status(grpc::StatusCode::UNAVAILABLE, "away"));
  scheduler_.End(grpc::Status(grpc::StatusCode::UNAVAILABLE, "away"));

  OpenGate();
  ASSERT_TRUE(scheduler_.WaitFor([&, hellos = 0](const auto& message) mutable {
    return message.has_hello() && ++hellos == 4;
  }));
  scheduler_.RefuseWith(grpc::Status::OK);

  for (const char* id : {"1", "2"}) {
    const auto result = scheduler_.WaitForResult(id);
    ASSERT_TRUE(result.has_value());
    EXPECT_EQ(result->result().json(), "\"waited\"");
  }
}

TEST_F(SessionClientTest, NamesWhatItHoldsInTheNextHello) {
  StartExecutor();
  ASSERT_TRUE(scheduler_.WaitForSession(1));
  scheduler_.SendLease("1", 5, "wait", "1");
  ASSERT_TRUE(WaitUntilStarted("1"));

  scheduler_.End(grpc::Status(grpc::StatusCode::INTERNAL, "reset"));

  const auto hello = scheduler_.WaitFor([](const v1::ExecutorMessage& message) {
    return message.hello().held_leases_size() > 0;
  });
  ASSERT_TRUE(hello.has_value());
  EXPECT_EQ(hello->hello().held_leases(0).task_id(), "1");
  EXPECT_EQ(hello->hello().held_leases(0).lease_number(), 5);
}

TEST_F(SessionClientTest, MovesToAnotherSchedulerWhenToldToAndKeepsItsLeases) {
  FakeScheduler other;
  StartExecutor({scheduler_.address(), other.address()});
  // Which one comes first is random.
  const bool first_is_ours = [&] {
    for (;;) {
      if (!scheduler_.received().empty()) return true;
      if (!other.received().empty()) return false;
      absl::SleepFor(absl::Milliseconds(1));
    }
  }();
  FakeScheduler& first = first_is_ours ? scheduler_ : other;
  FakeScheduler& second = first_is_ours ? other : scheduler_;
  ASSERT_TRUE(first.WaitForSession(1));
  first.SendLease("1", 1, "wait", "1");
  ASSERT_TRUE(first.WaitFor([](const auto& message) {
    return message.started().leases_size() == 1;
  }));

  v1::SchedulerMessage drain;
  drain.mutable_drain()->set_reconnect(true);
  first.Send(drain);

  const auto hello = second.WaitFor(
      [](const v1::ExecutorMessage& message) { return message.has_hello(); });
  ASSERT_TRUE(hello.has_value());
  EXPECT_EQ(hello->hello().held_leases_size(), 1);
  ASSERT_TRUE(second.WaitForSession(1));
  OpenGate();
  EXPECT_TRUE(second.WaitForResult("1").has_value());
}

TEST_F(SessionClientTest, StopsForGoodOnceItIsSuperseded) {
  StartExecutor();
  ASSERT_TRUE(scheduler_.WaitForSession(1));
  scheduler_.SendLease("1", 1, "wait", "1");
  ASSERT_TRUE(WaitUntilStarted("1"));

  scheduler_.End(grpc::Status(grpc::StatusCode::ABORTED, "newer incarnation"));

  EXPECT_EQ(Join().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(status_.message(), absl::StrCat("scheduler ", scheduler_.address(),
                                            ": newer incarnation"));
}

TEST_F(SessionClientTest, DoesNotRepeatWhatCannotSucceed) {
  scheduler_.RefuseWith(
      grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "hello.slots: 0"));

  StartExecutor();

  EXPECT_EQ(Join().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(scheduler_.received().size(), 1u);
}

TEST_F(SessionClientTest, RepeatsWhatMayPass) {
  scheduler_.RefuseWith(
      grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "too many sessions"));
  StartExecutor();
  ASSERT_TRUE(scheduler_.WaitFor([&, hellos = 0](const auto& message) mutable {
    return message.has_hello() && ++hellos == 3;
  }));

  scheduler_.RefuseWith(grpc::Status::OK);

  EXPECT_TRUE(scheduler_.WaitForSession(1));
}

TEST_F(SessionClientTest, ReleasesWhatDoesNotFit) {
  StartExecutor();
  ASSERT_TRUE(scheduler_.WaitForSession(1));
  for (int i = 0; i < 5; ++i) {
    scheduler_.SendLease(absl::StrCat(i), 1, "wait", "1");
  }

  const auto release = WaitForRelease("4");

  ASSERT_TRUE(release.has_value());
  EXPECT_EQ(release->reason(), v1::RELEASE_REASON_REJECTED);
}

TEST_F(SessionClientTest, CancelsWhatRunsAndWhatIsQueued) {
  StartExecutor();
  ASSERT_TRUE(scheduler_.WaitForSession(1));
  for (const char* id : {"1", "2", "3"})
    scheduler_.SendLease(id, 1, "wait", "1");
  ASSERT_TRUE(WaitUntilStarted("1"));
  v1::SchedulerMessage cancel;
  for (const char* id : {"1", "3"}) {
    v1::LeaseRef* ref = cancel.mutable_cancel_leases()->add_leases();
    ref->set_task_id(id);
    ref->set_lease_number(1);
  }

  scheduler_.Send(cancel);

  for (const char* id : {"1", "3"}) {
    const auto result = scheduler_.WaitForResult(id);
    ASSERT_TRUE(result.has_value()) << id;
    EXPECT_EQ(result->error().error_class(), v1::ERROR_CLASS_CANCELLED) << id;
  }
}

TEST_F(SessionClientTest, ReopensAStreamOnWhichNothingIsAcknowledged) {
  scheduler_.SetAcknowledgesHeartbeats(false);
  v1::Welcome welcome;
  welcome.mutable_heartbeat_interval()->set_nanos(20'000'000);
  welcome.mutable_lease_duration()->set_nanos(200'000'000);
  welcome.mutable_accept_timeout()->set_seconds(10);
  scheduler_.SetWelcome(welcome);

  StartExecutor();

  EXPECT_TRUE(scheduler_.WaitForSession(2));
}

TEST_F(SessionClientTest, DrainFinishesWhatRunsAndGivesBackWhatIsQueued) {
  settle_timeout_ = kPatience;
  StartExecutor();
  ASSERT_TRUE(scheduler_.WaitForSession(1));
  for (const char* id : {"1", "2", "3"})
    scheduler_.SendLease(id, 1, "wait", "1");
  ASSERT_TRUE(WaitUntilStarted("1"));
  ASSERT_TRUE(WaitUntilStarted("2"));

  executor_->Stop();
  const auto release = WaitForRelease("3");
  OpenGate();

  ASSERT_TRUE(release.has_value());
  EXPECT_EQ(release->reason(), v1::RELEASE_REASON_DRAINING);
  for (const char* id : {"1", "2"}) {
    ASSERT_TRUE(scheduler_.WaitForResult(id).has_value());
  }
  for (const char* id : {"1", "2", "3"}) Acknowledge(id);
  EXPECT_TRUE(Join().ok());
  EXPECT_TRUE(scheduler_.WaitFor(
      [](const auto& message) { return message.has_goodbye(); }));
}

TEST_F(SessionClientTest, DrainReleasesWithTheCheckpointWhatTakesTooLong) {
  settle_timeout_ = kPatience;
  drain_timeout_ = absl::Milliseconds(20);
  Register("long", [](HandlerContext& ctx) {
    ctx.SaveCheckpoint("row 7").IgnoreError();
    ctx.cancellation().WaitFor(kPatience);
    return HandlerResult::Cancelled();
  });
  StartExecutor();
  ASSERT_TRUE(scheduler_.WaitForSession(1));
  scheduler_.SendLease("1", 1, "long", "1");
  ASSERT_TRUE(WaitUntilStarted("1"));

  executor_->Stop();

  const auto release = WaitForRelease("1");
  ASSERT_TRUE(release.has_value());
  EXPECT_EQ(release->reason(), v1::RELEASE_REASON_DRAINING);
  EXPECT_EQ(release->checkpoint(), "row 7");
  Acknowledge("1");
  EXPECT_TRUE(Join().ok());
}

TEST_F(SessionClientTest, LeavesWhenTheSchedulerDrainsIt) {
  StartExecutor();
  ASSERT_TRUE(scheduler_.WaitForSession(1));
  v1::SchedulerMessage drain;
  drain.mutable_drain();

  scheduler_.Send(drain);

  EXPECT_TRUE(Join().ok());
}

TEST_F(SessionClientTest, KeepsBeatingWhileEverySlotIsBusy) {
  StartExecutor();
  ASSERT_TRUE(scheduler_.WaitForSession(1));
  for (const char* id : {"1", "2"}) scheduler_.SendLease(id, 1, "wait", "1");
  ASSERT_TRUE(WaitUntilStarted("2"));

  EXPECT_TRUE(scheduler_.WaitFor([beats = 0](const auto& message) mutable {
    return message.heartbeat().leases_size() == 2 && ++beats == 4;
  }));
}

}  // namespace
}  // namespace leasehold::executor
