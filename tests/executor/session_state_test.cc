#include "executor/sdk/session_state.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace leasehold::executor {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Registry MakeRegistry() {
  Registry registry;
  EXPECT_TRUE(
      registry
          .Register("q", "t",
                    [](HandlerContext&) { return HandlerResult::Success(); })
          .ok());
  return registry;
}

class SessionStateTest : public testing::Test {
 protected:
  void Welcome() {
    state_.MakeHello(now_);
    v1::SchedulerMessage message;
    message.mutable_welcome()->mutable_heartbeat_interval()->set_seconds(5);
    message.mutable_welcome()->mutable_lease_duration()->set_seconds(15);
    message.mutable_welcome()->mutable_accept_timeout()->set_seconds(10);
    Hear(message);
    EXPECT_TRUE(Say().has_heartbeat());
  }

  SessionState::Effects Hear(v1::SchedulerMessage message) {
    return state_.OnMessage(&message, now_, 0.5);
  }

  SessionState::Effects HearLease(const std::string& id, int64_t number = 1,
                                  const std::string& type = "t",
                                  int64_t lease_ms = 15'000) {
    v1::SchedulerMessage message;
    message.mutable_leases()->set_heartbeat_sequence(1);
    v1::Lease* lease = message.mutable_leases()->add_leases();
    lease->mutable_lease()->set_task_id(id);
    lease->mutable_lease()->set_lease_number(number);
    lease->set_queue("q");
    lease->set_type(type);
    lease->mutable_lease_duration()->set_seconds(lease_ms / 1000);
    lease->mutable_lease_duration()->set_nanos(
        static_cast<int32_t>(lease_ms % 1000 * 1'000'000));
    return Hear(std::move(message));
  }

  v1::ExecutorMessage Say() {
    v1::ExecutorMessage message;
    state_.NextMessage(now_, load_, &message);
    return message;
  }

  SteadyTime now_ = SteadyTime(seconds(1000));
  const Registry registry_ = MakeRegistry();
  v1::ExecutorLoad load_;
  SessionState state_{{"e", "i", "1", {}, 2, 4}, &registry_};
};

TEST_F(SessionStateTest, SaysNothingBeforeTheWelcome) {
  Welcome();
  auto run = HearLease("a").start.at(0);
  state_.OnFinished(*run, HandlerResult::Json("1"));

  const v1::ExecutorMessage hello = state_.MakeHello(now_);

  EXPECT_EQ(Say().message_case(), v1::ExecutorMessage::MESSAGE_NOT_SET);
  ASSERT_EQ(hello.hello().held_leases_size(), 1);
  EXPECT_EQ(hello.hello().held_leases(0).task_id(), "a");
  EXPECT_EQ(hello.hello().subscriptions(0).types(0), "t");
}

TEST_F(SessionStateTest, SendsAResultAtOnceAndNeitherAcceptedNorStarted) {
  Welcome();
  auto run = HearLease("a").start.at(0);
  run->phase = TaskRun::Phase::kStarted;

  state_.OnFinished(*run, HandlerResult::Json("1"));

  EXPECT_EQ(Say().results().results_size(), 1);
  now_ += seconds(1);
  EXPECT_EQ(Say().message_case(), v1::ExecutorMessage::MESSAGE_NOT_SET);
}

TEST_F(SessionStateTest, AnnouncesWhatIsStillThereAfterAMoment) {
  Welcome();
  auto queued = HearLease("queued").start.at(0);
  auto started = HearLease("started").start.at(0);
  started->phase = TaskRun::Phase::kStarted;
  EXPECT_EQ(Say().message_case(), v1::ExecutorMessage::MESSAGE_NOT_SET);
  EXPECT_LE(state_.NextWake(), now_ + milliseconds(20));

  now_ += milliseconds(20);

  EXPECT_EQ(Say().accepted().leases(0).task_id(), "queued");
  EXPECT_EQ(Say().started().leases(0).task_id(), "started");
  EXPECT_EQ(queued->phase, TaskRun::Phase::kAccepted);
}

TEST_F(SessionStateTest, AnnouncesAStartThatComesLater) {
  Welcome();
  auto run = HearLease("a").start.at(0);
  now_ += milliseconds(20);
  EXPECT_TRUE(Say().has_accepted());

  state_.OnStarted(run, now_);
  now_ += milliseconds(20);

  EXPECT_EQ(Say().started().leases_size(), 1);
}

TEST_F(SessionStateTest, BeatsAtAThirdOfTheShortestLeaseAlsoWhenIdle) {
  Welcome();
  EXPECT_FALSE(Say().has_heartbeat());
  now_ += seconds(5);
  EXPECT_TRUE(Say().has_heartbeat());

  HearLease("a", 1, "t", 6'000);
  now_ += seconds(2);
  EXPECT_EQ(Say().heartbeat().leases_size(), 1);
  now_ += milliseconds(1'999);
  EXPECT_FALSE(Say().has_heartbeat());
  now_ += milliseconds(1);
  EXPECT_TRUE(Say().has_heartbeat());
}

TEST_F(SessionStateTest, ALeaseLastsNoLongerThanAcceptTimeoutUntilItIsNamed) {
  Welcome();
  now_ += milliseconds(9'999);
  EXPECT_EQ(HearLease("a").start.size(), 1u);
  now_ += milliseconds(1);
  EXPECT_TRUE(HearLease("b").start.empty());
  EXPECT_EQ(state_.leases_held(), 1u);
}

TEST_F(SessionStateTest, ReleasesATypeThatItDoesNotKnow) {
  Welcome();

  EXPECT_TRUE(HearLease("a", 1, "other").start.empty());

  EXPECT_EQ(Say().released().leases(0).reason(),
            v1::RELEASE_REASON_UNKNOWN_TYPE);
}

TEST_F(SessionStateTest, ReleasesWhatArrivesWhileDraining) {
  Welcome();
  state_.StartDraining();

  EXPECT_TRUE(HearLease("a").start.empty());

  EXPECT_EQ(Say().released().leases(0).reason(), v1::RELEASE_REASON_DRAINING);
  EXPECT_FALSE(state_.settled());
}

TEST_F(SessionStateTest, CancelsTheHandlerOfALostLeaseButSendsAFinishedResult) {
  Welcome();
  auto running = HearLease("running").start.at(0);
  auto finished = HearLease("finished").start.at(0);
  state_.OnFinished(*finished, HandlerResult::Json("1"));
  v1::SchedulerMessage message;
  for (const char* id : {"running", "finished"}) {
    FillRef({id, 1}, message.mutable_heartbeat_ack()->add_lost());
  }
  message.mutable_heartbeat_ack()->set_sequence(1);

  const auto effects = Hear(message);

  ASSERT_EQ(effects.cancel.size(), 1u);
  EXPECT_EQ(effects.cancel[0].first, running);
  EXPECT_EQ(effects.cancel[0].second, CancelReason::kLeaseLost);
  EXPECT_EQ(Say().results().results(0).lease().task_id(), "finished");
}

TEST_F(SessionStateTest, DoesNotRunATaskWhileAnEarlierRunOfItStillGoesOn) {
  Welcome();
  auto first = HearLease("a", 1).start.at(0);
  v1::SchedulerMessage message;
  FillRef({"a", 1}, message.mutable_heartbeat_ack()->add_lost());
  Hear(message);

  EXPECT_TRUE(HearLease("a", 2).start.empty());

  EXPECT_EQ(Say().released().leases(0).reason(), v1::RELEASE_REASON_REJECTED);
  first->cancellation.Cancel(CancelReason::kLeaseLost);
  state_.OnFinished(*first, HandlerResult::Cancelled());
  EXPECT_EQ(HearLease("a", 3).start.size(), 1u);
}

TEST_F(SessionStateTest, AWelcomeThatDisownsALeaseStopsItsHandler) {
  Welcome();
  auto mine = HearLease("mine").start.at(0);
  auto lost = HearLease("lost").start.at(0);
  state_.MakeHello(now_);
  v1::SchedulerMessage message;
  for (const auto& [id, disposition] :
       {std::pair{"mine", v1::REPORT_DISPOSITION_RECORDED},
        std::pair{"lost", v1::REPORT_DISPOSITION_STALE}}) {
    v1::ReportAck* ack = message.mutable_welcome()->add_held_leases();
    FillRef({id, 1}, ack->mutable_lease());
    ack->set_disposition(disposition);
  }

  const auto effects = Hear(message);

  ASSERT_EQ(effects.cancel.size(), 1u);
  EXPECT_EQ(effects.cancel[0].first, lost);
}

TEST_F(SessionStateTest, CancelsByPushAndByHeartbeat) {
  Welcome();
  HearLease("a");
  HearLease("b");
  v1::SchedulerMessage push;
  FillRef({"a", 1}, push.mutable_cancel_leases()->add_leases());
  v1::SchedulerMessage ack;
  FillRef({"b", 1}, ack.mutable_heartbeat_ack()->add_cancelled());

  EXPECT_EQ(Hear(push).cancel.at(0).second, CancelReason::kCancelled);
  EXPECT_EQ(Hear(ack).cancel.at(0).second, CancelReason::kCancelled);
}

TEST_F(SessionStateTest, IsSettledOnceEveryReportIsAcknowledged) {
  Welcome();
  auto run = HearLease("a").start.at(0);
  EXPECT_FALSE(state_.settled());
  state_.OnFinished(*run, HandlerResult::Json("1"));
  EXPECT_FALSE(state_.settled());
  Say();
  v1::SchedulerMessage message;
  v1::ReportAck* ack = message.mutable_report_acks()->add_acks();
  FillRef({"a", 1}, ack->mutable_lease());
  ack->set_disposition(v1::REPORT_DISPOSITION_RECORDED);

  Hear(message);

  EXPECT_TRUE(state_.settled());
  EXPECT_EQ(state_.leases_held(), 0u);
}

TEST_F(SessionStateTest, ProgressBringsTheNextHeartbeatForward) {
  Welcome();
  auto run = HearLease("a").start.at(0);
  HandlerContext(*run).SetProgress(1, 2);
  state_.OnLiveChange();

  now_ += seconds(1);

  EXPECT_EQ(Say().heartbeat().leases(0).progress().done(), 1);
}

TEST_F(SessionStateTest, IsSilentAfterALeaseWithoutAcknowledgement) {
  Welcome();
  now_ += milliseconds(14'999);
  EXPECT_FALSE(state_.IsSilent(now_));
  now_ += milliseconds(1);
  EXPECT_TRUE(state_.IsSilent(now_));
}

}  // namespace
}  // namespace leasehold::executor
