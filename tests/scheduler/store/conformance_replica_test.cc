// Queues and the replicas that act on them.
#include <algorithm>

#include "tests/scheduler/store/task_store_conformance.h"

namespace leasehold::scheduler {
namespace {

using ::testing::SizeIs;

QueueRow QueueOf(TaskStore& store, const std::string& name) {
  const std::vector<QueueRow> queues = store.ListQueues().value();
  for (const QueueRow& queue : queues) {
    if (queue.name == name) return queue;
  }
  ADD_FAILURE() << "no queue " << name;
  return {};
}

TEST_P(TaskStoreTest, PausesAQueueUnderANewVersion) {
  Lane("a");
  Lane("b");
  const int64_t before =
      std::max(QueueOf(store_, "a").version, QueueOf(store_, "b").version);

  const QueueRow a = store_.SetQueuePaused("a", true).value();
  const QueueRow b = store_.SetQueuePaused("b", true).value();

  EXPECT_TRUE(a.paused);
  EXPECT_GT(a.version, before);
  EXPECT_GT(b.version, a.version) << "of all queues, not of one";
  EXPECT_TRUE(QueueOf(harness_->other(), "a").paused);
  EXPECT_EQ(QueueOf(harness_->other(), "a").version, a.version);
  EXPECT_FALSE(store_.SetQueuePaused("a", false).value().paused);
}

TEST_P(TaskStoreTest, PausingAPausedQueueChangesNothing) {
  Lane("a");
  const QueueRow first = store_.SetQueuePaused("a", true).value();

  EXPECT_EQ(store_.SetQueuePaused("a", true).value().version, first.version);
}

TEST_P(TaskStoreTest, AQueueThatNobodyHasMadeIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(store_.SetQueuePaused("none", true).status()));
}

TEST_P(TaskStoreTest, ListsTheReplicasThatLive) {
  constexpr int64_t kAliveUs = 200'000;
  ReplicaRow a{"a", "host:1", 1, 0, 2, 3};
  ReplicaRow b{"b", "host:2", 1, 0, 4, 0};
  ASSERT_TRUE(store_.TouchReplica(b, kAliveUs).ok());

  const auto both = harness_->other().TouchReplica(a, kAliveUs).value();

  ASSERT_THAT(both, SizeIs(2));
  EXPECT_EQ(both[0].id, "a");
  EXPECT_EQ(both[0].address, "host:1");
  EXPECT_EQ(both[0].seen_version, 2);
  EXPECT_EQ(both[0].sessions, 3);
  EXPECT_EQ(both[1].id, "b");
  a.seen_version = 5;
  EXPECT_EQ(store_.TouchReplica(a, kAliveUs).value()[0].seen_version, 5);
  harness_->Pass(absl::Microseconds(kAliveUs) + absl::Milliseconds(10));
  EXPECT_THAT(store_.TouchReplica(a, kAliveUs).value(), SizeIs(1))
      << "b has said nothing since";
}

TEST_P(TaskStoreTest, AReplicaThatLeavesIsGoneAtOnce) {
  const ReplicaRow a{"a", "host:1", 1, 0, 2, 3};
  const ReplicaRow b{"b", "host:2", 1, 0, 4, 0};
  ASSERT_TRUE(store_.TouchReplica(a, 1'000'000).ok());

  ASSERT_TRUE(store_.RemoveReplica("a").ok());

  EXPECT_THAT(store_.TouchReplica(b, 1'000'000).value(), SizeIs(1));
}

}  // namespace
}  // namespace leasehold::scheduler
