// The executor's stream, spoken by hand: what the protocol promises, and what
// becomes of those who break it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/cluster.h"
#include "tests/support/raw_executor.h"

namespace leasehold::e2e {
namespace {

using leasehold::v1::ExecutorMessage;
using leasehold::v1::Hello;
using leasehold::v1::Lease;
using leasehold::v1::LeaseRef;
using leasehold::v1::ReportAck;
using leasehold::v1::SchedulerMessage;
using testing::HasSubstr;

class Session : public testing::Test {
 protected:
  Session()
      : cluster_(SharedDatabase()),
        scheduler_(cluster_.StartScheduler(ShortLeases())) {}

  TaskClient& client() { return scheduler_.client(); }
  std::string Submit(const std::string& data = "x") {
    return client().Submit(NewTask("q", "t", data));
  }

  Cluster cluster_;
  SchedulerProcess& scheduler_;
};

TEST_F(Session, WelcomesLeasesAndRecords) {
  const std::string id = Submit("input");
  RawExecutor executor(scheduler_.address());
  ASSERT_TRUE(executor.SayHello(NewHello("raw", "q", "t")));

  const leasehold::v1::Welcome welcome = executor.NextWelcome();
  EXPECT_FALSE(welcome.session_id().empty());
  EXPECT_EQ(welcome.lease_duration().seconds(), 3);
  EXPECT_EQ(welcome.heartbeat_interval().seconds(), 1);
  EXPECT_EQ(welcome.accept_timeout().seconds(), 2);
  const Lease lease = executor.NextLease();
  EXPECT_EQ(lease.lease().task_id(), id);
  EXPECT_EQ(lease.lease().lease_number(), 1);
  EXPECT_EQ(lease.payload().data(), "input");
  EXPECT_EQ(lease.attempt(), 1);
  EXPECT_EQ(lease.max_attempts(), 4);

  ASSERT_TRUE(executor.SendResult(lease.lease(), "output"));
  EXPECT_EQ(executor.NextAck().disposition(),
            leasehold::v1::REPORT_DISPOSITION_RECORDED);
  // Once more, as after a lost acknowledgement.
  ASSERT_TRUE(executor.SendResult(lease.lease(), "output"));
  EXPECT_EQ(executor.NextAck().disposition(),
            leasehold::v1::REPORT_DISPOSITION_DUPLICATE);
  EXPECT_EQ(client().Get(id).result().data(), "output");
}

TEST_F(Session, HoldsNoMoreThanMaxLeases) {
  for (int i = 0; i < 10; ++i) Submit();
  RawExecutor executor(scheduler_.address());
  ASSERT_TRUE(executor.SayHello(NewHello("raw", "q", "t", 3)));

  std::vector<Lease> leases;
  for (int i = 0; i < 3; ++i) leases.push_back(executor.NextLease());
  EXPECT_FALSE(executor.GetsLease(absl::Milliseconds(500)));

  ASSERT_TRUE(executor.SendResult(leases[0].lease(), ""));
  EXPECT_TRUE(executor.GetsLease(kPatience));
}

TEST_F(Session, RefusesAReportOfAnOlderLease) {
  const std::string id = Submit();
  RawExecutor first(scheduler_.address());
  ASSERT_TRUE(first.SayHello(NewHello("first", "q", "t")));
  const LeaseRef old_lease = first.NextLease().lease();
  ASSERT_TRUE(first.SendHeartbeat({old_lease}));
  // It falls silent; its lease ends and the task goes to another.
  RawExecutor second(scheduler_.address());
  ASSERT_TRUE(second.SayHello(NewHello("second", "q", "t")));
  const LeaseRef new_lease = second.NextLease().lease();
  ASSERT_EQ(new_lease.task_id(), id);
  ASSERT_GT(new_lease.lease_number(), old_lease.lease_number());

  ASSERT_TRUE(first.SendResult(old_lease, "late"));
  const ReportAck ack =
      first.Next([](const SchedulerMessage& m) { return m.has_report_acks(); })
          .report_acks()
          .acks(0);
  EXPECT_EQ(ack.disposition(), leasehold::v1::REPORT_DISPOSITION_STALE);
  EXPECT_FALSE(client().Get(id).has_finish_time());

  ASSERT_TRUE(second.SendResult(new_lease, "in time"));
  EXPECT_EQ(second.NextAck().disposition(),
            leasehold::v1::REPORT_DISPOSITION_RECORDED);
  ASSERT_TRUE(first.SendResult(old_lease, "later still"));
  EXPECT_EQ(first.NextAck().disposition(),
            leasehold::v1::REPORT_DISPOSITION_STALE);
  EXPECT_EQ(client().Get(id).result().data(), "in time");
}

TEST_F(Session, AHeartbeatAfterTheEndDoesNotBringTheTaskBack) {
  const std::string id = Submit();
  RawExecutor executor(scheduler_.address());
  ASSERT_TRUE(executor.SayHello(NewHello("raw", "q", "t")));
  const LeaseRef lease = executor.NextLease().lease();
  ASSERT_TRUE(executor.SendResult(lease, "done"));
  ASSERT_EQ(executor.NextAck().disposition(),
            leasehold::v1::REPORT_DISPOSITION_RECORDED);

  ASSERT_TRUE(executor.SendHeartbeat({lease}));
  const auto ack =
      executor
          .Next([](const SchedulerMessage& m) { return m.has_heartbeat_ack(); })
          .heartbeat_ack();

  ASSERT_EQ(ack.lost_size(), 1);
  EXPECT_EQ(ack.lost(0).task_id(), id);
  EXPECT_EQ(client().Get(id).state(), leasehold::v1::TASK_STATE_SUCCEEDED);
}

TEST_F(Session, RefusesAReportOfSomebodyElsesLease) {
  const std::string id = Submit();
  RawExecutor owner(scheduler_.address());
  ASSERT_TRUE(owner.SayHello(NewHello("owner", "q", "t")));
  const LeaseRef lease = owner.NextLease().lease();
  RawExecutor thief(scheduler_.address());
  ASSERT_TRUE(thief.SayHello(NewHello("thief", "q", "t")));
  thief.NextWelcome();

  ASSERT_TRUE(thief.SendResult(lease, "forged"));

  EXPECT_EQ(thief.NextAck().disposition(),
            leasehold::v1::REPORT_DISPOSITION_STALE);
  EXPECT_FALSE(client().Get(id).has_finish_time());
}

TEST_F(Session, TakesBackALeaseThatIsNotAcceptedAndChargesNothing) {
  const std::string id = Submit();
  RawExecutor deaf(scheduler_.address());
  ASSERT_TRUE(deaf.SayHello(NewHello("deaf", "q", "t")));
  ASSERT_EQ(deaf.NextLease().attempt(), 1);

  RawExecutor other(scheduler_.address());
  ASSERT_TRUE(other.SayHello(NewHello("other", "q", "t")));
  const Lease lease = other.NextLease();

  EXPECT_EQ(lease.lease().task_id(), id);
  EXPECT_EQ(lease.attempt(), 1);
}

TEST_F(Session, GivesReleasedTasksToOthersUncharged) {
  const std::string id = Submit();
  RawExecutor full(scheduler_.address());
  ASSERT_TRUE(full.SayHello(NewHello("full", "q", "t")));
  ExecutorMessage message;
  leasehold::v1::LeaseRelease* release =
      message.mutable_released()->add_leases();
  *release->mutable_lease() = full.NextLease().lease();
  release->set_reason(leasehold::v1::RELEASE_REASON_SNOOZED);
  release->mutable_delay()->set_nanos(100'000'000);

  ASSERT_TRUE(full.Send(message));
  EXPECT_EQ(full.NextAck().disposition(),
            leasehold::v1::REPORT_DISPOSITION_RECORDED);

  const Lease lease = full.NextLease();
  EXPECT_EQ(lease.lease().task_id(), id);
  EXPECT_EQ(lease.attempt(), 1);
  EXPECT_GT(lease.lease().lease_number(), 1);
}

TEST_F(Session, AReconnectedExecutorKeepsTheLeasesThatItNames) {
  const std::string kept = Submit("kept");
  const std::string forgotten = Submit("forgotten");
  Hello hello = NewHello("raw", "q", "t", 2);
  LeaseRef kept_lease;
  {
    RawExecutor executor(scheduler_.address());
    ASSERT_TRUE(executor.SayHello(hello));
    for (int i = 0; i < 2; ++i) {
      const Lease lease = executor.NextLease();
      if (lease.lease().task_id() == kept) kept_lease = lease.lease();
      ASSERT_TRUE(executor.SendHeartbeat({lease.lease()}));
    }
  }

  *hello.add_held_leases() = kept_lease;
  RawExecutor executor(scheduler_.address());
  ASSERT_TRUE(executor.SayHello(hello));

  const leasehold::v1::Welcome welcome = executor.NextWelcome();
  ASSERT_EQ(welcome.held_leases_size(), 1);
  EXPECT_EQ(welcome.held_leases(0).disposition(),
            leasehold::v1::REPORT_DISPOSITION_RECORDED);
  // The other one goes back at once, uncharged.
  const Lease lease = executor.NextLease(absl::Seconds(2));
  EXPECT_EQ(lease.lease().task_id(), forgotten);
  EXPECT_EQ(lease.attempt(), 1);
  ASSERT_TRUE(executor.SendResult(kept_lease, "done"));
  EXPECT_EQ(executor.NextAck().disposition(),
            leasehold::v1::REPORT_DISPOSITION_RECORDED);
}

TEST_F(Session, ANewerSessionOfAnIncarnationEndsTheOlder) {
  RawExecutor older(scheduler_.address());
  ASSERT_TRUE(older.SayHello(NewHello("raw", "q", "t")));
  older.NextWelcome();

  RawExecutor newer(scheduler_.address());
  ASSERT_TRUE(newer.SayHello(NewHello("raw", "q", "t")));
  newer.NextWelcome();

  EXPECT_EQ(older.WaitForEnd().error_code(), grpc::StatusCode::ABORTED);
}

// --- Broken protocol.

void ExpectEndsWithInvalidArgument(RawExecutor& executor,
                                   const std::string& named) {
  const grpc::Status status = executor.WaitForEnd();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT)
      << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr(named));
}

TEST_F(Session, EndsWhenTheFirstMessageIsNoHello) {
  RawExecutor executor(scheduler_.address());
  ASSERT_TRUE(executor.SendHeartbeat({}));
  ExpectEndsWithInvalidArgument(executor, "heartbeat");
}

TEST_F(Session, EndsAtASecondHello) {
  RawExecutor executor(scheduler_.address());
  ASSERT_TRUE(executor.SayHello(NewHello("raw", "q", "t")));
  executor.NextWelcome();
  ASSERT_TRUE(executor.SayHello(NewHello("raw", "q", "t")));
  ExpectEndsWithInvalidArgument(executor, "hello");
}

TEST_F(Session, EndsAtALeaseThatCannotBe) {
  RawExecutor executor(scheduler_.address());
  ASSERT_TRUE(executor.SayHello(NewHello("raw", "q", "t")));
  executor.NextWelcome();
  LeaseRef lease;
  lease.set_task_id("no number");
  lease.set_lease_number(1);
  ASSERT_TRUE(executor.SendHeartbeat({lease}));
  ExpectEndsWithInvalidArgument(executor, "task_id");
}

TEST_F(Session, SkipsAMessageThatOnlyNewerExecutorsKnow) {
  RawExecutor executor(scheduler_.address());
  ASSERT_TRUE(executor.SayHello(NewHello("raw", "q", "t")));
  executor.NextWelcome();

  // An unknown member of the oneof reads as none.
  ASSERT_TRUE(executor.Send({}));

  Submit();
  EXPECT_TRUE(executor.GetsLease(kPatience));
}

TEST_F(Session, EndsAtAHelloWithBadFields) {
  const auto expect_refused = [this](const std::string& named,
                                     const Hello& hello) {
    RawExecutor executor(scheduler_.address());
    ASSERT_TRUE(executor.SayHello(hello));
    ExpectEndsWithInvalidArgument(executor, named);
  };

  Hello hello = NewHello("raw", "q", "t");
  hello.set_executor_id("");
  expect_refused("executor_id", hello);
  hello = NewHello(std::string(129, 'e'), "q", "t");
  expect_refused("executor_id", hello);
  hello = NewHello("raw", "q", "t");
  hello.set_slots(0);
  expect_refused("slots", hello);
  hello = NewHello("raw", "q", "t");
  hello.set_slots(2);
  expect_refused("max_leases", hello);
  hello = NewHello("raw", "Q Q", "t");
  expect_refused("queue", hello);
  hello = NewHello("raw", "q", "t");
  hello.clear_subscriptions();
  expect_refused("subscriptions", hello);
}

TEST_F(Session, ABrokenSessionDisturbsNoOther) {
  RawExecutor good(scheduler_.address());
  ASSERT_TRUE(good.SayHello(NewHello("good", "q", "t")));
  good.NextWelcome();
  RawExecutor bad(scheduler_.address());
  ASSERT_TRUE(bad.Send({}));
  bad.WaitForEnd();

  Submit();

  const Lease lease = good.NextLease();
  ASSERT_TRUE(good.SendResult(lease.lease(), "fine"));
  EXPECT_EQ(good.NextAck().disposition(),
            leasehold::v1::REPORT_DISPOSITION_RECORDED);
}

}  // namespace
}  // namespace leasehold::e2e
