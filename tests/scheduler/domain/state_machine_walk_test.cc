// Drives one task through random events, impossible ones included, and checks
// after each what must hold in any order of events.
#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <variant>

#include "gtest/gtest.h"
#include "scheduler/domain/limits.h"
#include "scheduler/domain/state_machine.h"
#include "tests/scheduler/domain/decision_text.h"

namespace leasehold::scheduler {
namespace {

// A database of one task.
class Walk {
 public:
  explicit Walk(uint64_t seed) : random_(seed) {
    policy_.max_attempts = 1 + Draw(5);
    live_ = NewLiveTask(42, 3, TaskSpec{}, now_us_);
  }

  bool ended() const { return !live_.has_value(); }
  const EndedTask& end() const { return *ended_; }
  const std::set<int64_t>& attempts() const { return attempts_; }
  const RetryPolicy& policy() const { return policy_; }

  void Step() {
    now_us_ += Draw(20) * kSecondUs;
    switch (Draw(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return Claim();
      case 4:
        return Start();
      case 5:
      case 6:
        return Report();
      case 7:
      case 8:
        return Apply(DecideExpiry(View(), AnyLease(), Draw(2) == 0, 0.5));
      case 9:
        return Apply(DecideNotHeld(View(), AnyLease(), live_->holder));
      case 10:
        return Control();
      default:
        return Apply(DecideCancelDeadline(View()));
    }
  }

 private:
  int Draw(int below) { return static_cast<int>(random_() % below); }

  TaskView View() const {
    TaskView view;
    view.live = &*live_;
    view.policy = policy_;
    view.now_us = now_us_;
    return view;
  }

  LeaseRef AnyLease() { return {42, live_->lease_number - Draw(5) / 4}; }

  void Claim() {
    if (live_->phase != Phase::kWaiting || live_->run_us > now_us_) return;
    ASSERT_EQ(live_->cancel_expire_us, 0) << "queued again while cancelling";
    live_->phase = Phase::kLeased;
    live_->state = TaskState::kDispatched;
    ++live_->attempt;
    ++live_->lease_number;
    live_->holder = 1 + Draw(3);
    live_->lease_end = LeaseEnd::kOpen;
    live_->lease_expire_us = now_us_ + 10 * kSecondUs;
    reported_ = false;
    ASSERT_LE(live_->attempt, policy_.max_attempts);
  }

  void Start() {
    if (live_->state != TaskState::kDispatched) return;
    live_->state = TaskState::kRunning;
    live_->start_us = now_us_;
  }

  static std::variant<Payload, TaskError, Release> Outcome(int kind,
                                                           ErrorClass error) {
    if (kind == 0) return Payload{PayloadKind::kJson, "1"};
    if (kind == 1) return Release{};
    return TaskError{.error_class = error, .code = "", .message = ""};
  }

  void Report() {
    const int kind = Draw(10);
    const auto error_class = static_cast<ErrorClass>(Draw(7));
    const scheduler::Report report{.lease = AnyLease(),
                                   .holder = live_->holder,
                                   .start_us = 0,
                                   .outcome = Outcome(kind, error_class),
                                   .refused = false,
                                   .checkpoint = std::nullopt};
    const ReportDecision decision = DecideReport(View(), report, 0.5);
    if (decision.change.writes()) {
      ASSERT_EQ(report.lease.lease_number, live_->lease_number);
      ASSERT_FALSE(reported_) << "one lease, two reports";
      reported_ = true;
    }
    Apply(decision.change);
  }

  void Control() {
    const int what = Draw(8);
    if (what == 0) {
      Apply(DecideCancel(View(), 15 * kSecondUs, "").change);
    } else if (what < 4) {
      Apply(DecidePause(View()).change);
    } else {
      Apply(DecideResume(View()).change);
    }
  }

  void Apply(const Change& change) {
    ASSERT_FALSE(change.update.has_value() && change.end.has_value());
    ASSERT_TRUE(change.writes() || !change.attempt.has_value());
    if (change.attempt.has_value()) {
      ASSERT_TRUE(attempts_.insert(change.attempt->lease_number).second)
          << "one lease, two attempts";
    }
    if (change.end.has_value()) {
      ASSERT_TRUE(IsTerminal(change.end->state));
      ASSERT_EQ(change.end->lease_number, live_->lease_number);
      ended_ = change.end;
      live_.reset();
      return;
    }
    if (change.update.has_value()) Check(*change.update);
  }

  void Check(const LiveTask& next) {
    ASSERT_EQ(next.id, live_->id);
    ASSERT_EQ(next.lane_id, live_->lane_id);
    ASSERT_EQ(next.priority, live_->priority);
    ASSERT_EQ(next.lease_number, live_->lease_number);
    ASSERT_EQ(next.holder, live_->holder);
    ASSERT_GE(next.attempt, 0);
    ASSERT_EQ(next.state == TaskState::kPaused, next.phase == Phase::kPaused);
    ASSERT_EQ(next.lease_end == LeaseEnd::kOpen, next.phase == Phase::kLeased);
    if (next.phase == Phase::kWaiting) {
      ASSERT_EQ(next.state,
                next.attempt > 0 ? TaskState::kRetrying : TaskState::kPending);
      if (live_->phase != Phase::kWaiting) {
        ASSERT_GE(next.run_us, now_us_);
      }
    }
    live_ = next;
  }

  std::mt19937_64 random_;
  int64_t now_us_ = kNowUs;
  RetryPolicy policy_;
  std::optional<LiveTask> live_;
  std::optional<EndedTask> ended_;
  std::set<int64_t> attempts_;
  bool reported_ = false;
};

TEST(StateMachineWalk, KeepsItsPromisesInAnyOrderOfEvents) {
  std::set<std::pair<TaskState, FailureReason>> ends;
  for (uint64_t seed = 1; seed <= 5'000; ++seed) {
    SCOPED_TRACE(seed);
    Walk walk(seed);
    for (int step = 0; step < 5'000 && !walk.ended(); ++step) {
      walk.Step();
      if (::testing::Test::HasFatalFailure()) return;
    }

    ASSERT_TRUE(walk.ended()) << "the task goes on for ever";
    ASSERT_LE(walk.end().attempt, walk.policy().max_attempts);
    ends.insert({walk.end().state, walk.end().reason});
  }

  // The walk has been to every end that these events can lead to.
  EXPECT_EQ(ends.size(), 5u);
}

TEST(StateMachineWalk, LeavesNoRowStuckThatShouldNotExist) {
  for (int phase = 0; phase < 3; ++phase) {
    for (int state = 1; state <= 5; ++state) {
      for (int lease_end = 0; lease_end < 3; ++lease_end) {
        LiveTask live;
        live.id = 42;
        live.phase = static_cast<Phase>(phase);
        live.state = static_cast<TaskState>(state);
        live.lease_end = static_cast<LeaseEnd>(lease_end);
        live.attempt = 1;
        live.lease_number = 7;
        live.lease_expire_us = kNowUs;
        TaskView view;
        view.live = &live;
        view.now_us = kNowUs;

        const Change expiry = DecideExpiry(view, {42, 7}, true, 0.0);

        EXPECT_EQ(expiry.writes(), live.phase == Phase::kLeased)
            << phase << " " << state << " " << lease_end;
      }
    }
  }
}

}  // namespace
}  // namespace leasehold::scheduler
