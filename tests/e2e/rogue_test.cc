// Executors that break the protocol harm nobody, and get nothing by it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/cluster.h"
#include "tests/support/rogue_executor.h"

namespace leasehold::e2e {
namespace {

using leasehold::v1::REPORT_DISPOSITION_DUPLICATE;
using leasehold::v1::REPORT_DISPOSITION_RECORDED;
using leasehold::v1::REPORT_DISPOSITION_STALE;
using leasehold::v1::TASK_STATE_SUCCEEDED;

class Rogue : public testing::Test {
 protected:
  Rogue()
      : cluster_(SharedDatabase()),
        scheduler_(cluster_.StartScheduler(ShortLeases())) {}

  TaskClient& client() { return scheduler_.client(); }
  std::string Submit() { return client().Submit(NewTask("q", "t", "x")); }
  // By an executor that behaves.
  void ExpectRunsElsewhere(const std::string& id) {
    RogueExecutor good("good", scheduler_.address());
    good.SaysHello().TakesALease();
    EXPECT_EQ(good.lease().task_id(), id);
    EXPECT_EQ(good.Reports("good").Answer(), REPORT_DISPOSITION_RECORDED);
    const v1::Task task = client().Wait(id);
    EXPECT_EQ(task.state(), TASK_STATE_SUCCEEDED);
    EXPECT_EQ(task.result().data(), "good");
  }

  Cluster cluster_;
  SchedulerProcess& scheduler_;
  RogueExecutor rogue_{"rogue", scheduler_.address()};
};

TEST_F(Rogue, WithoutHelloItGetsNothing) {
  EXPECT_EQ(rogue_.OpensASession().Heartbeats().End().error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(Rogue, AHelloIsSaidOnce) {
  EXPECT_EQ(rogue_.SaysHello().RepeatsHello().End().error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(Rogue, ReportsTwiceAndCountsOnce) {
  const std::string id = Submit();
  rogue_.SaysHello().TakesALease().Reports("first").Reports("second");

  EXPECT_EQ(rogue_.Answer(), REPORT_DISPOSITION_RECORDED);
  EXPECT_EQ(rogue_.Answer(), REPORT_DISPOSITION_DUPLICATE);
  EXPECT_EQ(client().Get(id).result().data(), "first");
}

TEST_F(Rogue, OlderAndFutureLeaseNumbersAreStale) {
  const std::string id = Submit();
  rogue_.SaysHello().TakesALease();

  rogue_.ShiftsLeaseNumber(+1);
  EXPECT_EQ(rogue_.Reports("future").Answer(), REPORT_DISPOSITION_STALE);
  rogue_.ShiftsLeaseNumber(-1);
  EXPECT_EQ(rogue_.Reports("now").Answer(), REPORT_DISPOSITION_RECORDED);
  EXPECT_EQ(client().Get(id).result().data(), "now");
}

TEST_F(Rogue, OneThatNeverReadsOrAcceptsKeepsNothing) {
  const std::string id = Submit();
  rogue_.NeverReads().SaysHello();

  ExpectRunsElsewhere(id);
}

TEST_F(Rogue, ALateResultCountsUntilSomebodyElseIsLeasedTheTask) {
  const std::string id = Submit();
  rogue_.SaysHello().TakesALease().Heartbeats();
  // It serves nothing else meanwhile, and would be leased the same task again.
  rogue_.OutlivesItsLease();

  ExpectRunsElsewhere(id);
  EXPECT_EQ(rogue_.Reports("late").Answer(), REPORT_DISPOSITION_STALE);
  EXPECT_EQ(client().Get(id).result().data(), "good");
}

TEST_F(Rogue, ASecondSessionOfItsIncarnationEndsTheFirst) {
  rogue_.SaysHello().SaysHello();

  EXPECT_EQ(rogue_.EndOfSessionBefore().error_code(),
            grpc::StatusCode::ABORTED);
}

TEST_F(Rogue, AnOldSequenceNumberHarmsNobody) {
  const std::string id = Submit();
  rogue_.SaysHello().TakesALease().HeartbeatsWithSequence(7);
  EXPECT_EQ(rogue_.HeartbeatAnswer().sequence(), 7);

  rogue_.HeartbeatsWithSequence(3).HeartbeatsWithSequence(8);

  EXPECT_EQ(rogue_.Reports("done").Answer(), REPORT_DISPOSITION_RECORDED);
  EXPECT_EQ(client().Get(id).state(), TASK_STATE_SUCCEEDED);
}

TEST_F(Rogue, WhatAnotherHoldsIsNotItsToHeartbeatReportOrRelease) {
  const std::string id = Submit();
  RogueExecutor owner("owner", scheduler_.address());
  owner.SaysHello().TakesALease().Heartbeats();
  rogue_.SaysHello().Claims(owner.lease());

  EXPECT_EQ(rogue_.Heartbeats().HeartbeatAnswer().lost_size(), 1);
  EXPECT_EQ(rogue_.Reports("forged").Answer(), REPORT_DISPOSITION_STALE);
  EXPECT_EQ(rogue_.Releases(v1::RELEASE_REASON_SNOOZED).Answer(),
            REPORT_DISPOSITION_STALE);
  EXPECT_EQ(owner.Reports("owner's").Answer(), REPORT_DISPOSITION_RECORDED);
  EXPECT_EQ(client().Get(id).result().data(), "owner's");
}

}  // namespace
}  // namespace leasehold::e2e
