#include "executor/sdk/lease_keeper.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace leasehold::executor {
namespace {

using std::chrono::seconds;

constexpr size_t kNoCheckpointLimit = 1 << 20;

class LeaseKeeperTest : public testing::Test {
 protected:
  LeaseKeeperTest() { keeper_.OnHelloSent(start_); }

  static std::shared_ptr<TaskRun> MakeRun(const std::string& task_id,
                                          int64_t lease_number = 1) {
    auto run = std::make_shared<TaskRun>();
    run->input.task_id = task_id;
    run->input.lease_number = lease_number;
    return run;
  }

  LeaseKeeper::Added Add(std::shared_ptr<TaskRun> run, int64_t sequence,
                         SteadyTime now) {
    return keeper_.Add(std::move(run), absl::Seconds(15), absl::Seconds(15),
                       sequence, now);
  }

  v1::Heartbeat Beat(SteadyTime now) {
    v1::Heartbeat heartbeat;
    keeper_.FillHeartbeat(now, kNoCheckpointLimit, &heartbeat);
    return heartbeat;
  }

  const SteadyTime start_ = SteadyTime(seconds(1000));
  LeaseKeeper keeper_;
};

TEST_F(LeaseKeeperTest, CountsALeaseFromTheSendingOfHello) {
  ASSERT_EQ(Add(MakeRun("a"), 0, start_ + seconds(14)),
            LeaseKeeper::Added::kHeld);

  EXPECT_EQ(keeper_.Find({"a", 1})->end, start_ + seconds(15));
}

TEST_F(LeaseKeeperTest, CountsALeaseFromTheSendingOfTheHeartbeatItNames) {
  Beat(start_ + seconds(5));
  Beat(start_ + seconds(10));

  ASSERT_EQ(Add(MakeRun("a"), 1, start_ + seconds(12)),
            LeaseKeeper::Added::kHeld);

  EXPECT_EQ(keeper_.Find({"a", 1})->end, start_ + seconds(20));
}

TEST_F(LeaseKeeperTest, DropsALeaseThatIsOverOnArrival) {
  EXPECT_EQ(Add(MakeRun("a"), 0, start_ + seconds(15)),
            LeaseKeeper::Added::kOver);

  EXPECT_TRUE(keeper_.empty());
}

TEST_F(LeaseKeeperTest, DropsALeaseThatNamesAHeartbeatOfAnOlderStream) {
  Beat(start_ + seconds(1));
  keeper_.OnHelloSent(start_ + seconds(2));

  EXPECT_EQ(Add(MakeRun("a"), 1, start_ + seconds(3)),
            LeaseKeeper::Added::kOver);
  EXPECT_EQ(Add(MakeRun("a"), 99, start_ + seconds(3)),
            LeaseKeeper::Added::kOver);
}

TEST_F(LeaseKeeperTest, IgnoresALeaseThatIsHeldAlready) {
  Add(MakeRun("a"), 0, start_);

  EXPECT_EQ(Add(MakeRun("a"), 0, start_), LeaseKeeper::Added::kKnown);
  EXPECT_EQ(Add(MakeRun("a", 2), 0, start_), LeaseKeeper::Added::kHeld);
}

TEST_F(LeaseKeeperTest, AnAcknowledgementRenewsFromTheHeartbeatsSending) {
  Add(MakeRun("a"), 0, start_);
  const int64_t sequence = Beat(start_ + seconds(5)).sequence();

  keeper_.OnHeartbeatAck(sequence);

  EXPECT_EQ(keeper_.Find({"a", 1})->end, start_ + seconds(20));
}

TEST_F(LeaseKeeperTest,
       AnAcknowledgementDoesNotRenewWhatItsHeartbeatDidNotName) {
  const int64_t before = Beat(start_ + seconds(5)).sequence();
  Add(MakeRun("a"), 0, start_ + seconds(6));
  Beat(start_ + seconds(10));

  keeper_.OnHeartbeatAck(before);

  EXPECT_EQ(keeper_.Find({"a", 1})->end, start_ + seconds(15));
}

TEST_F(LeaseKeeperTest, ALateAcknowledgementDoesNotShortenALease) {
  Add(MakeRun("a"), 0, start_);
  const int64_t first = Beat(start_ + seconds(2)).sequence();
  const int64_t second = Beat(start_ + seconds(4)).sequence();

  keeper_.OnHeartbeatAck(second);
  keeper_.OnHeartbeatAck(first);

  EXPECT_EQ(keeper_.Find({"a", 1})->end, start_ + seconds(19));
}

TEST_F(LeaseKeeperTest, SequencesGrowOverStreams) {
  const int64_t first = Beat(start_).sequence();
  keeper_.OnHelloSent(start_ + seconds(1));

  EXPECT_EQ(Beat(start_ + seconds(2)).sequence(), first + 1);
}

TEST_F(LeaseKeeperTest, HeartbeatsGoOnNamingReportedLeasesButNotLostOnes) {
  Add(MakeRun("reported"), 0, start_);
  Add(MakeRun("lost"), 0, start_);
  keeper_.Find({"reported", 1})->reported = true;
  keeper_.Find({"lost", 1})->lost = true;

  const v1::Heartbeat heartbeat = Beat(start_ + seconds(1));

  ASSERT_EQ(heartbeat.leases_size(), 1);
  EXPECT_EQ(heartbeat.leases(0).lease().task_id(), "reported");
}

TEST_F(LeaseKeeperTest, RepeatsProgressUntilItIsAcknowledged) {
  auto run = MakeRun("a");
  Add(run, 0, start_);
  HandlerContext(*run).SetProgress(1, 2, "half");

  const v1::Heartbeat first = Beat(start_ + seconds(1));
  const v1::Heartbeat second = Beat(start_ + seconds(2));
  keeper_.OnHeartbeatAck(second.sequence());
  const v1::Heartbeat third = Beat(start_ + seconds(3));

  EXPECT_EQ(first.leases(0).progress().message(), "half");
  EXPECT_TRUE(second.leases(0).has_progress());
  EXPECT_FALSE(third.leases(0).has_progress());
}

TEST_F(LeaseKeeperTest, PutsCheckpointsThatDoNotFitIntoALaterHeartbeat) {
  auto run_a = MakeRun("a");
  auto run_b = MakeRun("b");
  Add(run_a, 0, start_);
  Add(run_b, 0, start_);
  ASSERT_TRUE(HandlerContext(*run_a).SaveCheckpoint("1234567").ok());
  ASSERT_TRUE(HandlerContext(*run_b).SaveCheckpoint("1234567").ok());

  v1::Heartbeat first;
  keeper_.FillHeartbeat(start_, 10, &first);
  keeper_.OnHeartbeatAck(first.sequence());
  v1::Heartbeat second;
  keeper_.FillHeartbeat(start_, 10, &second);

  ASSERT_EQ(first.leases_size(), 2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_NE(first.leases(i).checkpoint().empty(),
              second.leases(i).checkpoint().empty());
  }
}

}  // namespace
}  // namespace leasehold::executor
