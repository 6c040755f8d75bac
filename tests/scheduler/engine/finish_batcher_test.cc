#include "scheduler/engine/finish_batcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scheduler/engine/core_fixture.h"

namespace leasehold::scheduler {
namespace {

constexpr HolderId kHolder = 1;

class FakeSource : public ReportSource {
 public:
  void OnReportsDecided(std::vector<DecidedReport> reports) override {
    for (const DecidedReport& report : reports) decided.Add(report);
  }
  Inbox<DecidedReport> decided;
};

class FinishBatcherTest : public CoreFixture {
 protected:
  ~FinishBatcherTest() override {
    store_.OpenGate(Role::kFinish);
    if (batcher_ != nullptr) batcher_->Stop();
  }
  FinishBatcher& batcher() {
    if (batcher_ == nullptr) {
      batcher_ =
          std::make_unique<FinishBatcher>(changer_, bounds_, metrics_, clock_);
    }
    return *batcher_;
  }
  LeaseRef Leased() { return Lease(StoreOne(), kHolder); }
  static Report Of(const LeaseRef& lease,
                   std::variant<Payload, TaskError, Release> outcome = Payload{
                       PayloadKind::kJson, "42"}) {
    Report report;
    report.lease = lease;
    report.holder = kHolder;
    report.outcome = std::move(outcome);
    return report;
  }
  void Send(std::vector<Report> reports) {
    batcher().Report(std::move(reports), source_);
  }
  // Blocks the batcher's thread in the commit of one report.
  void Occupy() {
    store_.CloseGate(Role::kFinish);
    batcher().Report({Of(Leased())}, std::make_shared<FakeSource>());
    store_.AwaitBlocked(Role::kFinish, 1);
  }
  ReportDisposition Decided(size_t n = 0) {
    EXPECT_TRUE(source_->decided.Await(n + 1));
    return source_->decided.All()[n].disposition;
  }

  std::shared_ptr<FakeSource> source_ = std::make_shared<FakeSource>();
  std::unique_ptr<FinishBatcher> batcher_;
};

TEST_F(FinishBatcherTest, AcknowledgesAfterTheCommitOnly) {
  store_.CloseGate(Role::kFinish);
  const LeaseRef lease = Leased();
  Send({Of(lease)});
  store_.AwaitBlocked(Role::kFinish, 1);
  EXPECT_EQ(source_->decided.size(), 0u);

  store_.OpenGate(Role::kFinish);

  EXPECT_EQ(Decided(), ReportDisposition::kRecorded);
  EXPECT_EQ(store_.EndedRow(lease.task_id)->result.bytes, "42");
}

TEST_F(FinishBatcherTest, WhatGathersDuringACommitIsOneTransaction) {
  std::vector<Report> reports;
  for (int i = 0; i < 50; ++i) reports.push_back(Of(Leased()));
  std::reverse(reports.begin(), reports.end());
  Occupy();
  Send(std::move(reports));
  store_.OpenGate(Role::kFinish);

  ASSERT_TRUE(source_->decided.Await(50));
  EXPECT_EQ(store_.CallsOf(StoreMethod::kChangeTasks), 2);
}

TEST_F(FinishBatcherTest, ReportsOfOneTaskAreWrittenOneAfterTheOther) {
  const LeaseRef lease = Leased();
  Occupy();
  Send({Of(lease), Of(lease), Of(lease)});
  store_.OpenGate(Role::kFinish);

  EXPECT_EQ(Decided(0), ReportDisposition::kRecorded);
  EXPECT_EQ(Decided(1), ReportDisposition::kDuplicate);
  EXPECT_EQ(Decided(2), ReportDisposition::kDuplicate);
}

TEST_F(FinishBatcherTest, ADatabaseThatIsAwaySaysTryAgain) {
  const LeaseRef lease = Leased();
  store_.FailNext(StoreMethod::kChangeTasks, 1, absl::UnavailableError("away"));
  Send({Of(lease)});
  EXPECT_EQ(Decided(0), ReportDisposition::kTryAgain);

  Send({Of(lease)});

  EXPECT_EQ(Decided(1), ReportDisposition::kRecorded);
}

TEST_F(FinishBatcherTest, DeadlocksSayTryAgain) {
  store_.FailNext(StoreMethod::kChangeTasks, 1, absl::AbortedError("1213"));
  Send({Of(Leased())});
  EXPECT_EQ(Decided(), ReportDisposition::kTryAgain);
}

TEST_F(FinishBatcherTest, AReportRepeatedAfterAnUnknownCommitIsADuplicate) {
  const LeaseRef lease = Leased();
  store_.LoseNext(StoreMethod::kChangeTasks, 1);
  Send({Of(lease)});
  EXPECT_EQ(Decided(0), ReportDisposition::kTryAgain);

  Send({Of(lease)});

  EXPECT_EQ(Decided(1), ReportDisposition::kDuplicate);
  EXPECT_EQ(store_.EndedRow(lease.task_id)->state, TaskState::kSucceeded);
}

TEST_F(FinishBatcherTest, AFullQueueSaysTryAgainAtOnce) {
  bounds_.finish_queue_reports = 2;
  const std::vector<LeaseRef> leases = {Leased(), Leased(), Leased()};
  Occupy();

  Send({Of(leases[0]), Of(leases[1]), Of(leases[2])});

  ASSERT_EQ(source_->decided.size(), 1u);
  EXPECT_EQ(source_->decided.All()[0].lease, leases[2]);
  EXPECT_EQ(Decided(), ReportDisposition::kTryAgain);
}

TEST_F(FinishBatcherTest, AnOutcomeThatCannotBeStoredFailsItsTask) {
  const LeaseRef bad = Leased();
  store_.FailNext(StoreMethod::kChangeTasks, 1, absl::InternalError("1366"));

  Send({Of(bad)});

  EXPECT_EQ(Decided(), ReportDisposition::kRefused);
  const EndedTask ended = *store_.EndedRow(bad.task_id);
  EXPECT_EQ(ended.state, TaskState::kFailed);
  EXPECT_EQ(ended.error->code, "INVALID_RESULT");
}

TEST_F(FinishBatcherTest, NeighboursOfABadOutcomeAreRecorded) {
  const std::vector<LeaseRef> leases = {Leased(), Leased(), Leased()};
  Occupy();
  Send({Of(leases[0]), Of(leases[1]), Of(leases[2])});
  // The occupying report, then its failure as stored; the batch; its first.
  store_.FailNext(StoreMethod::kChangeTasks, 4, absl::InternalError("1366"));
  store_.OpenGate(Role::kFinish);

  ASSERT_TRUE(source_->decided.Await(3));
  EXPECT_EQ(store_.EndedRow(leases[0].task_id)->state, TaskState::kFailed);
  EXPECT_EQ(store_.EndedRow(leases[1].task_id)->state, TaskState::kSucceeded);
  EXPECT_EQ(store_.EndedRow(leases[2].task_id)->state, TaskState::kSucceeded);
}

TEST_F(FinishBatcherTest, AFailureThatCannotBeStoredEitherIsNotAcknowledged) {
  const LeaseRef lease = Leased();
  store_.FailNext(StoreMethod::kChangeTasks, 2, absl::InternalError("1021"));

  Send({Of(lease)});

  EXPECT_EQ(Decided(), ReportDisposition::kTryAgain);
  EXPECT_TRUE(store_.LiveRow(lease.task_id).has_value());
}

TEST_F(FinishBatcherTest, EverySourceHearsOfItsOwn) {
  auto other = std::make_shared<FakeSource>();
  const LeaseRef mine = Leased();
  const LeaseRef theirs = Leased();
  Occupy();
  Send({Of(mine)});
  batcher().Report({Of(theirs)}, other);
  store_.OpenGate(Role::kFinish);

  ASSERT_TRUE(source_->decided.Await(1));
  ASSERT_TRUE(other->decided.Await(1));
  EXPECT_EQ(source_->decided.All()[0].lease, mine);
  EXPECT_EQ(other->decided.All()[0].lease, theirs);
}

TEST_F(FinishBatcherTest, DecisionsThatAreRepeatedCountOnce) {
  store_.RepeatDecisions(true);
  const LeaseRef lease = Leased();
  TaskError error;
  error.error_class = ErrorClass::kRetryable;

  Send({Of(lease, error)});

  EXPECT_EQ(Decided(), ReportDisposition::kRecorded);
  EXPECT_EQ(store_.LiveRow(lease.task_id)->attempt, 1);
  EXPECT_EQ(source_->decided.size(), 1u);
}

TEST_F(FinishBatcherTest, StopAnswersWhatWaitsAndRefusesTheRest) {
  const std::vector<LeaseRef> leases = {Leased(), Leased()};
  Occupy();
  Send({Of(leases[0])});
  std::thread stopper([this] { batcher().Stop(); });
  store_.OpenGate(Role::kFinish);
  stopper.join();
  EXPECT_EQ(Decided(0), ReportDisposition::kRecorded);

  Send({Of(leases[1])});

  EXPECT_EQ(Decided(1), ReportDisposition::kTryAgain);
}

}  // namespace
}  // namespace leasehold::scheduler
