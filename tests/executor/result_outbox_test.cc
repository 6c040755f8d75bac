#include "executor/sdk/result_outbox.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "executor/sdk/lease_keeper.h"

namespace leasehold::executor {
namespace {

using std::chrono::seconds;

Report MakeResult(const LeaseKey& key, size_t bytes = 10) {
  v1::TaskResult result;
  FillRef(key, result.mutable_lease());
  result.mutable_result()->set_data(std::string(bytes, 'x'));
  return result;
}

Report MakeReleaseOf(const LeaseKey& key) {
  v1::LeaseRelease release;
  FillRef(key, release.mutable_lease());
  release.set_reason(v1::RELEASE_REASON_DRAINING);
  return release;
}

class ResultOutboxTest : public testing::Test {
 protected:
  v1::ExecutorMessage Next() {
    v1::ExecutorMessage message;
    outbox_.NextMessage(now_, &message);
    return message;
  }
  bool Ack(const LeaseKey& key, v1::ReportDisposition disposition) {
    return outbox_.OnAck(key, disposition, now_, 0.5);
  }

  SteadyTime now_ = SteadyTime(seconds(1000));
  ResultOutbox outbox_{{.unacknowledged_bytes = 1000,
                        .message_bytes = 600,
                        .message_reports = 3}};
};

TEST_F(ResultOutboxTest, GathersReportsIntoOneMessageUpToItsLimits) {
  for (int i = 0; i < 4; ++i) {
    const LeaseKey key{absl::StrCat(i), 1};
    outbox_.Add(key, MakeResult(key));
  }

  EXPECT_EQ(Next().results().results_size(), 3);
  EXPECT_EQ(Next().results().results_size(), 1);
  EXPECT_EQ(Next().message_case(), v1::ExecutorMessage::MESSAGE_NOT_SET);
}

TEST_F(ResultOutboxTest, SplitsMessagesBySize) {
  outbox_.Add({"a", 1}, MakeResult({"a", 1}, 300));
  outbox_.Add({"b", 1}, MakeResult({"b", 1}, 300));

  EXPECT_EQ(Next().results().results_size(), 1);
  EXPECT_EQ(Next().results().results_size(), 1);
}

TEST_F(ResultOutboxTest, SendsResultsAndReleasesApartAndInOrder) {
  outbox_.Add({"a", 1}, MakeResult({"a", 1}));
  outbox_.Add({"b", 1}, MakeReleaseOf({"b", 1}));

  EXPECT_TRUE(Next().has_results());
  EXPECT_TRUE(Next().has_released());
}

TEST_F(ResultOutboxTest, ForgetsWhatIsSettledWhicheverWay) {
  for (const auto disposition :
       {v1::REPORT_DISPOSITION_RECORDED, v1::REPORT_DISPOSITION_DUPLICATE,
        v1::REPORT_DISPOSITION_STALE, v1::REPORT_DISPOSITION_REFUSED}) {
    outbox_.Add({"a", 1}, MakeResult({"a", 1}));
    Next();

    EXPECT_TRUE(Ack({"a", 1}, disposition));
    EXPECT_TRUE(outbox_.empty());
  }
}

TEST_F(ResultOutboxTest, SendsAgainAfterAWhileWhenToldToTryAgain) {
  outbox_.Add({"a", 1}, MakeResult({"a", 1}));
  Next();

  EXPECT_FALSE(Ack({"a", 1}, v1::REPORT_DISPOSITION_TRY_AGAIN));
  EXPECT_FALSE(Next().has_results());
  now_ = *outbox_.NextRetry();
  EXPECT_TRUE(Next().has_results());
  EXPECT_TRUE(Ack({"a", 1}, v1::REPORT_DISPOSITION_RECORDED));
}

TEST_F(ResultOutboxTest, WaitsLongerEachTimeItIsTurnedAway) {
  outbox_.Add({"a", 1}, MakeResult({"a", 1}));
  Next();
  Ack({"a", 1}, v1::REPORT_DISPOSITION_TRY_AGAIN);
  const auto first_wait = *outbox_.NextRetry() - now_;
  now_ = *outbox_.NextRetry();
  Next();
  Ack({"a", 1}, v1::REPORT_DISPOSITION_TRY_AGAIN);

  EXPECT_GT(*outbox_.NextRetry() - now_, first_wait);
}

TEST_F(ResultOutboxTest, SendsEverythingAgainOnANewStream) {
  outbox_.Add({"a", 1}, MakeResult({"a", 1}));
  outbox_.Add({"b", 1}, MakeResult({"b", 1}));
  Next();
  Ack({"a", 1}, v1::REPORT_DISPOSITION_TRY_AGAIN);

  outbox_.OnNewStream();

  EXPECT_EQ(Next().results().results_size(), 2);
}

TEST_F(ResultOutboxTest, KeepsNoMoreThanTheBoundUnderWay) {
  outbox_.Add({"a", 1}, MakeResult({"a", 1}, 500));
  outbox_.Add({"b", 1}, MakeResult({"b", 1}, 500));
  EXPECT_TRUE(outbox_.full());

  EXPECT_EQ(Next().results().results_size(), 1);
  EXPECT_FALSE(Next().has_results());
  Ack({"a", 1}, v1::REPORT_DISPOSITION_RECORDED);
  EXPECT_FALSE(outbox_.full());
  EXPECT_TRUE(Next().has_results());
}

TEST_F(ResultOutboxTest, SendsAReportThatIsLargerThanEveryBound) {
  outbox_.Add({"a", 1}, MakeResult({"a", 1}, 5000));

  EXPECT_TRUE(Next().has_results());
}

TEST_F(ResultOutboxTest, IgnoresAcknowledgementsOfWhatItDoesNotHold) {
  EXPECT_FALSE(Ack({"a", 1}, v1::REPORT_DISPOSITION_RECORDED));
}

TEST_F(ResultOutboxTest, KeepsTheFirstReportOfALease) {
  outbox_.Add({"a", 1}, MakeResult({"a", 1}));
  outbox_.Add({"a", 1}, MakeReleaseOf({"a", 1}));

  EXPECT_TRUE(Next().has_results());
  EXPECT_FALSE(Next().has_released());
}

}  // namespace
}  // namespace leasehold::executor
