#include "scheduler/maintenance/replica_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/engine/queue_pauser.h"
#include "tests/scheduler/engine/core_fixture.h"

namespace leasehold::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ReplicaKeeperTest : public CoreFixture {
 protected:
  struct Replica {
    Replica(ReplicaKeeperTest& test, const std::string& id, int executors)
        : lanes(test.store_, test.times_),
          board(id),
          probe("dispatch", absl::Seconds(1), Clock::Real()),
          sessions(executors),
          keeper(
              {.address = "host:" + id,
               .start_us = 1,
               .quiet = absl::Milliseconds(20)},
              test.store_, lanes, board, {&probe}, [this] { return sessions; },
              Clock::Real()) {
      EXPECT_TRUE(lanes.Load().ok());
    }
    void Keep() { EXPECT_TRUE(keeper.RunOnce().ok()); }

    LaneDirectory lanes;
    ReplicaBoard board;
    LoopProbe probe;
    int sessions;
    ReplicaKeeper keeper;
  };

  static std::vector<std::string> IdsOf(const ReplicaBoard& board) {
    std::vector<std::string> ids;
    for (const ReplicaRow& row : board.replicas()) ids.push_back(row.id);
    return ids;
  }
};

TEST_F(ReplicaKeeperTest, LearnsWhoLives) {
  Replica a(*this, "a", 1);
  Replica b(*this, "b", 1);
  a.Keep();
  b.Keep();
  a.Keep();
  EXPECT_THAT(IdsOf(a.board), ElementsAre("a", "b"));

  Advance(kReplicaAlive + absl::Seconds(1));
  a.Keep();
  EXPECT_THAT(IdsOf(a.board), ElementsAre("a")) << "b has said nothing";

  b.Keep();
  b.keeper.Leave();
  a.Keep();
  EXPECT_THAT(IdsOf(a.board), ElementsAre("a"));
}

TEST_F(ReplicaKeeperTest, ReplicasWithExecutorsShareTheIds) {
  Replica a(*this, "a", 2);
  Replica b(*this, "b", 0);
  Replica c(*this, "c", 1);
  for (int i = 0; i < 2; ++i) {
    a.Keep();
    b.Keep();
    c.Keep();
  }

  EXPECT_EQ(a.board.Share(), (IdShare{0, 2}));
  EXPECT_EQ(c.board.Share(), (IdShare{1, 2}));
  EXPECT_EQ(b.board.Share(), IdShare{}) << "it leases nothing";
  EXPECT_EQ(ReplicaBoard("x").Share(), IdShare{});
}

TEST_F(ReplicaKeeperTest, SaysThatItActsOnAVersionOnlyWhenOlderRoundsAreOver) {
  Replica a(*this, "a", 1);
  a.Keep();
  {
    const LoopProbe::Round round(a.probe);
    ASSERT_TRUE(store_.SetQueuePaused("q", true).ok());
    a.Keep();
    EXPECT_TRUE(a.lanes.Settings("q").paused);
    EXPECT_THAT(a.board.Behind(a.lanes.version()), ElementsAre("a"));
  }
  a.Keep();

  EXPECT_THAT(a.board.Behind(a.lanes.version()), IsEmpty());
}

TEST_F(ReplicaKeeperTest, OneThatHasNotBeenHeardOfStopsToLease) {
  ReplicaBoard board("a");
  const SteadyTime now = Clock::Real().SteadyNow();
  EXPECT_FALSE(board.Current(now));

  board.Update({}, now);

  EXPECT_TRUE(board.Current(now + std::chrono::seconds(7)));
  EXPECT_FALSE(board.Current(now + std::chrono::seconds(8)));
}

class QueuePauserTest : public ReplicaKeeperTest {
 protected:
  using Answer = absl::StatusOr<QueueRow>;
  QueueControl::Done Collect() {
    return [this](Answer answer) { answers_.Add(std::move(answer)); };
  }
  Inbox<Answer> answers_;
};

TEST_F(QueuePauserTest, APauseIsOverWhenEveryReplicaActsOnIt) {
  Replica a(*this, "a", 1);
  Replica b(*this, "b", 1);
  b.Keep();
  a.Keep();
  QueuePauser pauser(store_, a.lanes, a.board);

  pauser.Pause("q", Collect());
  ASSERT_TRUE(WaitFor([&] { return a.lanes.Settings("q").paused; }));
  a.Keep();
  EXPECT_THAT(a.board.Behind(store_.ListQueues().value()[0].version),
              ElementsAre("b"));
  EXPECT_EQ(answers_.size(), 0u);
  b.Keep();
  a.Keep();

  ASSERT_TRUE(answers_.Await(1));
  EXPECT_TRUE(answers_.All()[0].value().paused);
  EXPECT_TRUE(b.lanes.Settings("q").paused);
}

TEST_F(QueuePauserTest, AReplicaThatDoesNotConfirmIsNamed) {
  Replica a(*this, "a", 1);
  Replica b(*this, "b", 1);
  b.Keep();
  a.Keep();
  QueuePauser pauser(store_, a.lanes, a.board, absl::Milliseconds(50));

  pauser.Pause("q", Collect());

  ASSERT_TRUE(answers_.Await(1));
  EXPECT_TRUE(absl::IsUnavailable(answers_.All()[0].status()));
  EXPECT_THAT(std::string(answers_.All()[0].status().message()),
              HasSubstr("not confirmed by a, b"));
}

TEST_F(QueuePauserTest, AResumeWaitsForNobody) {
  Replica a(*this, "a", 1);
  ASSERT_TRUE(store_.SetQueuePaused("q", true).ok());
  a.Keep();
  QueuePauser pauser(store_, a.lanes, a.board);

  pauser.Resume("q", Collect());

  ASSERT_TRUE(answers_.Await(1));
  EXPECT_FALSE(answers_.All()[0].value().paused);
  EXPECT_FALSE(a.lanes.Settings("q").paused) << "here at once";
}

TEST_F(QueuePauserTest, UnknownQueuesAreNotFound) {
  Replica a(*this, "a", 1);
  QueuePauser pauser(store_, a.lanes, a.board);

  pauser.Pause("none", Collect());

  ASSERT_TRUE(answers_.Await(1));
  EXPECT_TRUE(absl::IsNotFound(answers_.All()[0].status()));
}

TEST_F(QueuePauserTest, StopEndsWhatWaits) {
  Replica a(*this, "a", 1);
  a.Keep();
  QueuePauser pauser(store_, a.lanes, a.board);
  pauser.Pause("q", Collect());

  pauser.Stop();

  ASSERT_TRUE(answers_.Await(1));
  EXPECT_TRUE(absl::IsUnavailable(answers_.All()[0].status()));
  pauser.Resume("q", Collect());
  EXPECT_EQ(answers_.size(), 2u);
}

}  // namespace
}  // namespace leasehold::scheduler
