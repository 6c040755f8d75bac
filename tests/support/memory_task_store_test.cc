// What the conformance suite does not cover: the faults and the gates.
#include "tests/support/memory_task_store.h"

#include <thread>

#include "gtest/gtest.h"

namespace leasehold::scheduler {
namespace {

class MemoryTaskStoreTest : public ::testing::Test {
 protected:
  // One task of lane 1; its id.
  TaskId Submit(const std::string& key = "") {
    NewTask task;
    task.id = *store_.ReserveIds(1);
    task.lane_id = store_.InternLanes({{{"mail", "send"}}})->front();
    task.spec.queue = "mail";
    task.spec.type = "send";
    task.spec.idempotency_key = key;
    task.content_hash = "h";
    const std::vector<NewTask> call{task};
    (void)store_.SubmitTasks({&call, 1});
    return task.id;
  }

  bool Claim(TaskId id) {
    const struct Claim claim {
      id, store_.LiveRow(id)->lease_number, 1, 10'000'000
    };
    return store_.ClaimLeases({&claim, 1})->won.front();
  }

  absl::Status Succeed(TaskId id) {
    return store_.ChangeTasks({&id, 1}, [](size_t, const TaskView& task) {
      Report report;
      if (task.live != nullptr) {
        report.lease = {task.live->id, task.live->lease_number};
        report.holder = task.live->holder;
      }
      report.outcome = Payload{PayloadKind::kJson, "1"};
      return DecideReport(task, report, 0.0).change;
    });
  }

  MemoryTaskStore store_;
};

TEST_F(MemoryTaskStoreTest, TakesATaskFromSubmitToItsResult) {
  const TaskId id = Submit();

  ASSERT_TRUE(Claim(id));
  EXPECT_EQ(store_.LiveRow(id)->state, TaskState::kDispatched);
  EXPECT_EQ(store_.LiveRow(id)->lease_number, 1);
  ASSERT_TRUE(Succeed(id).ok());

  EXPECT_EQ(store_.LiveRow(id), std::nullopt);
  EXPECT_EQ(store_.EndedRow(id)->state, TaskState::kSucceeded);
  EXPECT_EQ(store_.EndedRow(id)->result.bytes, "1");
}

TEST_F(MemoryTaskStoreTest, FailsAsOftenAsAskedAndChangesNothing) {
  const TaskId id = Submit();
  ASSERT_TRUE(Claim(id));
  store_.FailNext(StoreMethod::kChangeTasks, 2, absl::AbortedError("test"));

  EXPECT_EQ(Succeed(id).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Succeed(id).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(store_.ended_count(), 0u);
  EXPECT_TRUE(Succeed(id).ok());
  EXPECT_EQ(store_.ended_count(), 1u);
  EXPECT_EQ(store_.CallsOf(StoreMethod::kChangeTasks), 3);
}

TEST_F(MemoryTaskStoreTest, LosesTheAnswerOfACommitThatHappened) {
  const TaskId id = Submit();
  ASSERT_TRUE(Claim(id));
  store_.LoseNext(StoreMethod::kChangeTasks, 1);

  EXPECT_EQ(Succeed(id).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(store_.ended_count(), 1u);
  EXPECT_TRUE(Succeed(id).ok()) << "safe to repeat";
}

TEST_F(MemoryTaskStoreTest, HoldsCallsOfOneRoleAtItsGate) {
  const TaskId id = Submit();
  ASSERT_TRUE(Claim(id));
  store_.CloseGate(Role::kFinish);

  std::thread finish([&] { EXPECT_TRUE(Succeed(id).ok()); });
  store_.AwaitBlocked(Role::kFinish, 1);
  EXPECT_EQ(store_.ended_count(), 0u);
  EXPECT_TRUE(store_.NowUs().ok()) << "other roles go on";
  store_.OpenGate(Role::kFinish);
  finish.join();

  EXPECT_EQ(store_.ended_count(), 1u);
}

TEST_F(MemoryTaskStoreTest, MakesExpiredLeasesVisibleAsItsClockMoves) {
  const TaskId id = Submit();
  ASSERT_TRUE(Claim(id));

  store_.Advance(absl::Microseconds(9'999'999));
  EXPECT_TRUE(store_.FindExpiredLeases(10)->empty());
  store_.Advance(absl::Microseconds(1));
  EXPECT_EQ(store_.FindExpiredLeases(10)->size(), 1u);
}

TEST_F(MemoryTaskStoreTest, KnowsAKeyUntilItsTaskIsPurged) {
  const TaskId first = Submit("k");
  EXPECT_EQ(store_.LiveRow(Submit("k")), std::nullopt);
  EXPECT_EQ(store_.live_count(), 1u);

  store_.PurgeTask(first);
  const TaskId again = Submit("k");
  EXPECT_TRUE(store_.LiveRow(again).has_value());
}

}  // namespace
}  // namespace leasehold::scheduler
