#include "executor/sdk/task_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"

namespace leasehold::executor {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(10);

// Opens once.
class Gate {
 public:
  void Open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  bool Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, absl::ToChronoNanoseconds(kPatience),
                             [&] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

class Recorder : public RunObserver {
 public:
  void OnStarted(const std::shared_ptr<TaskRun>& run) override {
    Note("started " + run->input.task_id);
  }
  void OnFinished(const std::shared_ptr<TaskRun>& run,
                  HandlerResult result) override {
    const auto* error = std::get_if<TaskError>(&result.outcome());
    Note("finished " + run->input.task_id + " " +
         (error == nullptr ? "ok" : error->code));
  }
  void OnLeaked(const std::shared_ptr<TaskRun>& run) override {
    Note("leaked " + run->input.task_id);
  }

  bool WaitFor(const std::string& event) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, absl::ToChronoNanoseconds(kPatience), [&] {
      return std::find(events_.begin(), events_.end(), event) != events_.end();
    });
  }

 private:
  void Note(std::string event) {
    const std::lock_guard<std::mutex> lock(mutex_);
    events_.push_back(std::move(event));
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> events_;
};

class FunctionHandler : public Handler {
 public:
  explicit FunctionHandler(HandlerFunction run) : run_(std::move(run)) {}
  HandlerResult Run(HandlerContext& ctx) override { return run_(ctx); }

 private:
  HandlerFunction run_;
};

class TaskRunnerTest : public testing::Test {
 protected:
  void StartRunner(TaskRunner::Options options) {
    runner_ = std::make_unique<TaskRunner>(options, &recorder_);
  }

  std::shared_ptr<TaskRun> MakeRun(const std::string& id, Handler* handler) {
    auto run = std::make_shared<TaskRun>();
    run->input.task_id = id;
    run->handler = handler;
    return run;
  }

  // How many were not taken.
  size_t Push(std::vector<std::shared_ptr<TaskRun>> runs) {
    runner_->Push(&runs);
    return runs.size();
  }

  Recorder recorder_;
  Gate gate_;
  FunctionHandler waits_{[this](HandlerContext&) {
    gate_.Wait();
    return HandlerResult::Success();
  }};
  FunctionHandler waits_for_cancel_{[](HandlerContext& ctx) {
    ctx.cancellation().WaitFor(kPatience);
    return HandlerResult::Cancelled();
  }};
  FunctionHandler quick_{
      [](HandlerContext&) { return HandlerResult::Success(); }};
  std::unique_ptr<TaskRunner> runner_;
};

TEST_F(TaskRunnerTest, TakesWhatFitsAndLeavesTheRest) {
  StartRunner({.slots = 1, .max_runs = 2});

  EXPECT_EQ(Push({MakeRun("a", &waits_), MakeRun("b", &waits_),
                  MakeRun("c", &waits_)}),
            1u);
  EXPECT_EQ(Push({MakeRun("d", &waits_)}), 1u);

  gate_.Open();
  EXPECT_TRUE(recorder_.WaitFor("finished a ok"));
  EXPECT_TRUE(recorder_.WaitFor("finished b ok"));
  EXPECT_TRUE(runner_->WaitIdle(kPatience));
  EXPECT_EQ(Push({MakeRun("e", &quick_)}), 0u);
}

TEST_F(TaskRunnerTest, ARunThatHasBeenReportedLeavesRoomForTheNext) {
  StartRunner({.slots = 1, .max_runs = 1});
  for (int i = 0; i < 200; ++i) {
    const std::string id = std::to_string(i);
    ASSERT_EQ(Push({MakeRun(id, &quick_)}), 0u) << i;
    ASSERT_TRUE(recorder_.WaitFor("finished " + id + " ok"));
  }
}

TEST_F(TaskRunnerTest, CancelsAnAttemptThatTakesTooLong) {
  StartRunner({.slots = 1, .max_runs = 1});
  auto run = MakeRun("a", &waits_for_cancel_);
  run->attempt_timeout = absl::Milliseconds(20);

  Push({run});

  EXPECT_TRUE(recorder_.WaitFor("finished a CANCELLED"));
  EXPECT_EQ(run->token.reason(), CancelReason::kTimeout);
}

TEST_F(TaskRunnerTest, ReplacesAHandlerThatIgnoresCancellation) {
  StartRunner(
      {.slots = 1, .max_runs = 2, .leak_grace = absl::Milliseconds(20)});
  auto stuck = MakeRun("stuck", &waits_);
  stuck->attempt_timeout = absl::Milliseconds(20);
  Push({stuck, MakeRun("next", &quick_)});

  EXPECT_TRUE(recorder_.WaitFor("leaked stuck"));
  EXPECT_TRUE(recorder_.WaitFor("finished next ok"));
  EXPECT_EQ(runner_->load().leaked, 1);
  EXPECT_TRUE(runner_->WaitIdle(kPatience));

  gate_.Open();
  EXPECT_TRUE(recorder_.WaitFor("finished stuck ok"));
}

TEST_F(TaskRunnerTest, DoesNotReplaceMoreThanItsBound) {
  StartRunner({.slots = 1,
               .max_runs = 2,
               .leak_grace = absl::Milliseconds(20),
               .max_leaked = 0});
  auto stuck = MakeRun("stuck", &waits_);
  stuck->attempt_timeout = absl::Milliseconds(20);
  Push({stuck, MakeRun("next", &quick_)});
  ASSERT_TRUE(recorder_.WaitFor("leaked stuck"));
  EXPECT_EQ(runner_->load().queued, 1);

  gate_.Open();

  EXPECT_TRUE(recorder_.WaitFor("finished next ok"));
  EXPECT_EQ(runner_->load().leaked, 0);
}

TEST_F(TaskRunnerTest, LetsGoOfALeakedHandlerWhenItEnds) {
  StartRunner(
      {.slots = 1, .max_runs = 1, .leak_grace = absl::Milliseconds(20)});
  Gate ended;
  FunctionHandler stuck([&](HandlerContext&) {
    gate_.Wait();
    ended.Open();
    return HandlerResult::Success();
  });
  auto run = MakeRun("stuck", &stuck);
  run->attempt_timeout = absl::Milliseconds(20);
  Push({run});
  ASSERT_TRUE(recorder_.WaitFor("leaked stuck"));

  runner_.reset();  // Does not wait for it,
  gate_.Open();     // and it may end at any time after.

  EXPECT_TRUE(ended.Wait());
}

TEST_F(TaskRunnerTest, RemovesACancelledRunFromTheQueue) {
  StartRunner({.slots = 1, .max_runs = 2});
  auto running = MakeRun("running", &waits_for_cancel_);
  auto queued = MakeRun("queued", &quick_);
  Push({running, queued});

  while (runner_->load().running == 0) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_TRUE(runner_->Cancel(queued, CancelReason::kCancelled));
  EXPECT_FALSE(runner_->Cancel(running, CancelReason::kCancelled));

  EXPECT_TRUE(recorder_.WaitFor("finished running CANCELLED"));
  EXPECT_EQ(queued->phase, TaskRun::Phase::kQueued);
}

TEST_F(TaskRunnerTest, StartsNothingWhilePaused) {
  StartRunner({.slots = 1, .max_runs = 2});
  runner_->SetPaused(true);
  Push({MakeRun("a", &quick_)});
  EXPECT_FALSE(runner_->WaitIdle(absl::Milliseconds(20)));

  runner_->SetPaused(false);

  EXPECT_TRUE(recorder_.WaitFor("finished a ok"));
}

TEST_F(TaskRunnerTest, ReturnsWhatHasNotStartedWhenItStopsTaking) {
  StartRunner({.slots = 1, .max_runs = 3});
  Push({MakeRun("a", &waits_for_cancel_), MakeRun("b", &quick_)});
  while (runner_->load().running == 0) absl::SleepFor(absl::Milliseconds(1));

  const auto queued = runner_->StopTaking();

  ASSERT_EQ(queued.size(), 1u);
  EXPECT_EQ(queued[0]->input.task_id, "b");
  EXPECT_EQ(Push({MakeRun("c", &quick_)}), 1u);
  EXPECT_FALSE(runner_->WaitIdle(absl::Milliseconds(1)));
  runner_->CancelRunning(CancelReason::kDraining);
  EXPECT_TRUE(runner_->WaitIdle(kPatience));
}

TEST_F(TaskRunnerTest, AnnouncesAStartOnlyAfterItWasAccepted) {
  StartRunner({.slots = 1, .max_runs = 2});
  runner_->SetPaused(true);
  auto accepted = MakeRun("accepted", &quick_);
  Push({accepted});
  accepted->phase = TaskRun::Phase::kAccepted;

  runner_->SetPaused(false);

  EXPECT_TRUE(recorder_.WaitFor("started accepted"));
}

TEST_F(TaskRunnerTest, ExceptionsStopAtTheHandler) {
  StartRunner({.slots = 1, .max_runs = 2});
  FunctionHandler throws([](HandlerContext&) -> HandlerResult {
    throw std::runtime_error("bad \xff");
  });
  FunctionHandler throws_int([](HandlerContext&) -> HandlerResult { throw 7; });

  Push({MakeRun("a", &throws), MakeRun("b", &throws_int)});

  EXPECT_TRUE(recorder_.WaitFor("finished a HANDLER_EXCEPTION"));
  EXPECT_TRUE(recorder_.WaitFor("finished b HANDLER_EXCEPTION"));
}

TEST(CancellationToken, CallsBackOnceAndNotAfterTheWatchHasEnded) {
  CancellationSource source;
  int calls = 0;
  int ended_calls = 0;
  auto watch = source.token().OnCancel([&] { ++calls; });
  {
    auto ended = source.token().OnCancel([&] { ++ended_calls; });
  }

  EXPECT_TRUE(source.Cancel(CancelReason::kTimeout));
  EXPECT_FALSE(source.Cancel(CancelReason::kCancelled));
  auto late = source.token().OnCancel([&] { ++calls; });

  EXPECT_EQ(calls, 2);
  EXPECT_EQ(ended_calls, 0);
  EXPECT_EQ(source.reason(), CancelReason::kTimeout);
  EXPECT_TRUE(source.token().WaitFor(absl::InfiniteDuration()));
}

}  // namespace
}  // namespace leasehold::executor
