#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "common/concurrency/bounded_queue.h"
#include "common/concurrency/stop_signal.h"
#include "common/concurrency/thread_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leasehold {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(BoundedQueue, HoldsAsManyItemsAsItsBound) {
  BoundedQueue<int> queue(2, 100);

  EXPECT_TRUE(queue.TryPush(1));
  EXPECT_TRUE(queue.TryPush(2));
  EXPECT_FALSE(queue.TryPush(3));

  EXPECT_EQ(queue.TryPop(), 1);
  EXPECT_TRUE(queue.TryPush(3));
}

TEST(BoundedQueue, HoldsAsMuchWeightAsItsBound) {
  BoundedQueue<int> queue(100, 10);

  EXPECT_TRUE(queue.TryPush(1, 6));
  EXPECT_FALSE(queue.TryPush(2, 5));
  EXPECT_TRUE(queue.TryPush(3, 4));
  EXPECT_FALSE(queue.TryPush(4, 1));
  EXPECT_EQ(queue.weight(), 10u);

  EXPECT_EQ(queue.TryPop(), 1);
  EXPECT_EQ(queue.weight(), 4u);
  EXPECT_FALSE(queue.TryPush(5, SIZE_MAX));
}

TEST(BoundedQueue, TakesAnItemAboveItsBoundWhenEmpty) {
  BoundedQueue<int> queue(100, 10);

  EXPECT_TRUE(queue.TryPush(1, 50));
  EXPECT_FALSE(queue.TryPush(2, 0));

  EXPECT_EQ(queue.TryPop(), 1);
  EXPECT_EQ(queue.weight(), 0u);
}

TEST(BoundedQueue, LeavesAnItemThatItRefusesUntouched) {
  BoundedQueue<std::unique_ptr<int>> queue(1, 0);
  ASSERT_TRUE(queue.TryPush(std::make_unique<int>(1)));
  auto item = std::make_unique<int>(2);

  EXPECT_FALSE(queue.TryPush(std::move(item)));

  // NOLINTBEGIN(bugprone-use-after-move,clang-analyzer-cplusplus.Move)
  ASSERT_NE(item, nullptr);
  EXPECT_EQ(*item, 2);
  // NOLINTEND(bugprone-use-after-move,clang-analyzer-cplusplus.Move)
}

TEST(BoundedQueue, PopsBatchesWithinBothBoundsInOrder) {
  BoundedQueue<int> queue(100, 1000);
  for (int i = 1; i <= 6; ++i) ASSERT_TRUE(queue.TryPush(int{i}, 10));
  std::vector<int> batch;

  ASSERT_TRUE(queue.PopBatch(2, 1000, &batch));
  EXPECT_THAT(batch, ElementsAre(1, 2));
  ASSERT_TRUE(queue.PopBatch(100, 25, &batch));
  EXPECT_THAT(batch, ElementsAre(3, 4));
  ASSERT_TRUE(queue.PopBatch(100, 0, &batch));
  EXPECT_THAT(batch, ElementsAre(5)) << "at least one";
}

TEST(BoundedQueue, DrainsAfterItWasClosed) {
  BoundedQueue<int> queue(100, 1000);
  ASSERT_TRUE(queue.TryPush(1));
  queue.Close();
  std::vector<int> batch;

  EXPECT_FALSE(queue.TryPush(2));
  EXPECT_TRUE(queue.PopBatch(10, 10, &batch));
  EXPECT_THAT(batch, ElementsAre(1));
  EXPECT_FALSE(queue.PopBatch(10, 10, &batch));
  EXPECT_THAT(batch, IsEmpty());
}

TEST(BoundedQueue, GivesUpWaitingWhenTheTimeIsUp) {
  BoundedQueue<int> queue(100, 1000);
  std::vector<int> batch;

  EXPECT_TRUE(queue.PopBatchFor(absl::Milliseconds(1), 10, 10, &batch));
  EXPECT_THAT(batch, IsEmpty());

  queue.Close();
  EXPECT_FALSE(queue.PopBatchFor(absl::Hours(1), 10, 10, &batch));
}

TEST(BoundedQueue, HandsEveryItemToOneConsumer) {
  BoundedQueue<int> queue(16, 1000);
  constexpr int kEach = 5'000;
  std::atomic<int64_t> sum{0};
  std::atomic<int> count{0};
  const auto consume = [&] {
    std::vector<int> batch;
    while (queue.PopBatch(3, 1000, &batch)) {
      for (const int item : batch) {
        sum += item;
        ++count;
      }
    }
  };
  const auto produce = [&] {
    for (int i = 1; i <= kEach; ++i) {
      while (!queue.TryPush(int{i}, 1)) std::this_thread::yield();
    }
  };

  std::vector<std::thread> consumers;
  std::vector<std::thread> producers;
  for (int i = 0; i < 3; ++i) consumers.emplace_back(consume);
  for (int i = 0; i < 3; ++i) producers.emplace_back(produce);
  for (std::thread& thread : producers) thread.join();
  queue.Close();
  for (std::thread& thread : consumers) thread.join();

  EXPECT_EQ(count, 3 * kEach);
  EXPECT_EQ(sum, int64_t{3} * kEach * (kEach + 1) / 2);
}

TEST(ThreadPool, RunsEverythingThatItAcceptedBeforeShutdownReturns) {
  std::atomic<int> ran{0};
  int accepted = 0;
  ThreadPool pool("test", 3, 10);
  for (int i = 0; i < 1000; ++i) {
    if (pool.TryRun([&] { ++ran; })) ++accepted;
  }

  pool.Shutdown();

  EXPECT_EQ(ran, accepted);
  EXPECT_GE(accepted, 10);
  EXPECT_FALSE(pool.TryRun([&] { ++ran; }));
  pool.Shutdown();
}

TEST(ThreadPool, RefusesWhatItsQueueCannotHold) {
  StopSignal release;
  StopSignal started;
  std::atomic<int> ran{0};
  ThreadPool pool("test", 1, 2);
  ASSERT_TRUE(pool.TryRun([&] {
    started.Stop();
    release.Wait();
  }));
  started.Wait();

  EXPECT_TRUE(pool.TryRun([&] { ++ran; }));
  EXPECT_TRUE(pool.TryRun([&] { ++ran; }));
  EXPECT_FALSE(pool.TryRun([&] { ++ran; }));

  release.Stop();
  pool.Shutdown();
  EXPECT_EQ(ran, 2);
}

TEST(StopSignal, EndsALongWaitAtOnce) {
  StopSignal stop;
  bool stopped = false;
  std::thread waiter([&] { stopped = stop.WaitFor(absl::InfiniteDuration()); });

  stop.Stop();
  waiter.join();

  EXPECT_TRUE(stopped);
  EXPECT_TRUE(stop.stopped());
  EXPECT_TRUE(stop.WaitFor(absl::Hours(1))) << "and every later one";
}

TEST(StopSignal, ReportsATimeoutAsNotStopped) {
  StopSignal stop;

  EXPECT_FALSE(stop.WaitFor(absl::Milliseconds(1)));
  EXPECT_FALSE(stop.WaitFor(-absl::Seconds(1)));
  EXPECT_FALSE(stop.stopped());
}

TEST(StopSignal, WakesWithoutStopping) {
  StopSignal stop;

  stop.Wake();

  EXPECT_FALSE(stop.WaitFor(absl::Hours(1))) << "woken before the wait";
  EXPECT_FALSE(stop.WaitFor(absl::Milliseconds(1))) << "only once";
}

}  // namespace
}  // namespace leasehold
