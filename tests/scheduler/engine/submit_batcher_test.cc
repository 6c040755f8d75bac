#include "scheduler/engine/submit_batcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scheduler/engine/core_fixture.h"

namespace leasehold::scheduler {
namespace {

using Answer = absl::StatusOr<std::vector<SubmittedTask>>;

class FakeFeed : public ReadyFeed {
 public:
  void Offer(std::vector<OfferedTask> tasks) override {
    for (const OfferedTask& task : tasks) offered.Add(task.task);
  }
  Inbox<ReadyTask> offered;
};

class SubmitBatcherTest : public CoreFixture {
 protected:
  ~SubmitBatcherTest() override { store_.OpenGate(Role::kSubmit); }

  SubmitBatcher& batcher() {
    if (batcher_ == nullptr) {
      batcher_ = std::make_unique<SubmitBatcher>(store_, lanes_, feed_, bounds_,
                                                 metrics_, clock_);
    }
    return *batcher_;
  }
  void Submit(TaskSpec spec = MakeSpec()) {
    batcher().Submit({std::move(spec)},
                     [this](Answer answer) { answers_.Add(answer); });
  }
  static TaskSpec Keyed(std::string key, std::string payload = "1") {
    TaskSpec spec = MakeSpec(std::move(payload));
    spec.idempotency_key = std::move(key);
    return spec;
  }
  // Blocks the batcher's thread in a commit of one call.
  void Occupy() {
    store_.CloseGate(Role::kSubmit);
    Submit();
    store_.AwaitBlocked(Role::kSubmit, 1);
  }
  size_t CountOf(absl::StatusCode code) const {
    size_t count = 0;
    for (const Answer& answer : answers_.All()) {
      if (answer.status().code() == code) ++count;
    }
    return count;
  }

  FakeFeed feed_;
  Inbox<Answer> answers_;
  std::unique_ptr<SubmitBatcher> batcher_;
};

TEST_F(SubmitBatcherTest, StoresAnswersAndOffers) {
  Submit();

  ASSERT_TRUE(answers_.Await(1));
  const TaskId id = answers_.All()[0].value()[0].id;
  EXPECT_TRUE(store_.LiveRow(id).has_value());
  ASSERT_TRUE(feed_.offered.Await(1));
  EXPECT_EQ(feed_.offered.All()[0].id, id);
  EXPECT_EQ(feed_.offered.All()[0].run_us, NowUs());
}

TEST_F(SubmitBatcherTest, WhatGathersDuringACommitIsOneTransaction) {
  Occupy();
  for (int i = 0; i < 50; ++i) Submit();
  store_.OpenGate(Role::kSubmit);

  ASSERT_TRUE(answers_.Await(51));
  EXPECT_EQ(store_.CallsOf(StoreMethod::kSubmitTasks), 2);
  EXPECT_EQ(CountOf(absl::StatusCode::kOk), 51u);
}

TEST_F(SubmitBatcherTest, NobodyIsAnsweredBeforeTheCommit) {
  Occupy();
  EXPECT_EQ(answers_.size(), 0u);
}

TEST_F(SubmitBatcherTest, AKeyThatCollidesFailsAlone) {
  Submit(Keyed("k", "1"));
  ASSERT_TRUE(answers_.Await(1));
  Occupy();
  Submit();
  Submit(Keyed("k", "2"));
  Submit(Keyed("k", "1"));
  store_.OpenGate(Role::kSubmit);

  ASSERT_TRUE(answers_.Await(5));
  EXPECT_EQ(CountOf(absl::StatusCode::kAlreadyExists), 1u);
  EXPECT_EQ(CountOf(absl::StatusCode::kOk), 4u);
  EXPECT_TRUE(answers_.All()[4].value()[0].existed);
}

TEST_F(SubmitBatcherTest, ATaskThatExistedIsNotOfferedAgain) {
  Submit(Keyed("k"));
  ASSERT_TRUE(answers_.Await(1));
  Submit(Keyed("k"));
  ASSERT_TRUE(answers_.Await(2));
  batcher().Stop();

  EXPECT_EQ(feed_.offered.size(), 1u);
}

TEST_F(SubmitBatcherTest, ACallThatBreaksItsBatchDoesNotFailItsNeighbours) {
  Occupy();
  for (int i = 0; i < 3; ++i) Submit();
  // The occupying call, the batch, and of that the first call alone.
  store_.FailNext(StoreMethod::kSubmitTasks, 3, absl::InternalError("1366"));
  store_.OpenGate(Role::kSubmit);

  ASSERT_TRUE(answers_.Await(4));
  EXPECT_EQ(CountOf(absl::StatusCode::kInternal), 2u);
  EXPECT_EQ(CountOf(absl::StatusCode::kOk), 2u);
}

TEST_F(SubmitBatcherTest, AFullQueueRefusesAtOnce) {
  bounds_.submit_queue_tasks = 2;
  Occupy();
  Submit();
  Submit();

  Submit();

  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_EQ(answers_.All()[0].status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(SubmitBatcherTest, TheQueueIsBoundedInBytesToo) {
  bounds_.submit_queue_bytes = 10'000;
  Occupy();
  Submit(MakeSpec(std::string(8'000, 'x')));

  Submit(MakeSpec(std::string(8'000, 'x')));

  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_EQ(answers_.All()[0].status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(SubmitBatcherTest, FailsFastWhileTheDatabaseIsAwayAndRecovers) {
  Occupy();
  for (int i = 0; i < 20; ++i) Submit();
  store_.SetReachable(false);
  store_.OpenGate(Role::kSubmit);
  ASSERT_TRUE(answers_.Await(21));
  EXPECT_EQ(CountOf(absl::StatusCode::kUnavailable), 21u);

  store_.SetReachable(true);
  Submit();

  ASSERT_TRUE(answers_.Await(22));
  EXPECT_TRUE(answers_.All()[21].ok());
}

TEST_F(SubmitBatcherTest, OneCallFindsTheDatabaseAwayForItsWholeBatch) {
  Occupy();
  for (int i = 0; i < 20; ++i) {
    TaskSpec spec = MakeSpec();
    spec.type = "new" + std::to_string(i);  // Each would have to ask.
    Submit(spec);
  }
  const int before = store_.CallsOf(StoreMethod::kInternLanes);
  store_.SetReachable(false);
  store_.OpenGate(Role::kSubmit);

  ASSERT_TRUE(answers_.Await(21));
  EXPECT_EQ(store_.CallsOf(StoreMethod::kInternLanes), before + 1);
}

TEST_F(SubmitBatcherTest, StopAnswersEverybodyExactlyOnce) {
  Occupy();
  for (int i = 0; i < 10; ++i) Submit();
  std::thread stopper([this] { batcher().Stop(); });
  store_.OpenGate(Role::kSubmit);
  stopper.join();

  Submit();  // Refused.

  EXPECT_EQ(answers_.size(), 12u);
  EXPECT_EQ(CountOf(absl::StatusCode::kOk), 11u);
  EXPECT_EQ(CountOf(absl::StatusCode::kUnavailable), 1u);
}

TEST(ContentHashTest, DiffersWithQueueTypeAndPayloadOnly) {
  const std::string hash = ContentHash(MakeSpec());
  TaskSpec queue = MakeSpec(), type = MakeSpec(), bytes = MakeSpec(),
           kind = MakeSpec();
  queue.queue = "r";
  type.type = "u";
  bytes.payload.bytes = "2";
  kind.payload.kind = PayloadKind::kData;
  for (const TaskSpec& other : {queue, type, bytes, kind}) {
    EXPECT_NE(ContentHash(other), hash);
  }
  TaskSpec same = MakeSpec();
  same.priority = 1;
  same.partition_key = "p";
  same.idempotency_key = "k";
  same.labels = {{"a", "b"}};
  same.retry_policy.max_attempts = 9;
  same.attempt_timeout_us = 1;
  same.schedule_us = 2;
  same.expire_us = 3;
  same.traceparent = "t";
  EXPECT_EQ(ContentHash(same), hash);
  EXPECT_EQ(hash.size(), 32u);
}

TEST(ContentHashTest, FieldsDoNotRunIntoEachOther) {
  TaskSpec one = MakeSpec(), two = MakeSpec();
  one.queue = "ab";
  one.type = "c";
  two.queue = "a";
  two.type = "bc";
  EXPECT_NE(ContentHash(one), ContentHash(two));
}

// An executor with some free slots.
class FakeLeaser : public DirectLeaser {
 public:
  class Batch : public DirectLeaseBatch {
   public:
    explicit Batch(FakeLeaser& leaser) : leaser_(leaser) {}
    std::optional<DirectLease> Reserve(LaneId, const TaskSpec&) override {
      if (leaser_.free == 0) return std::nullopt;
      --leaser_.free;
      return DirectLease{7, 10'000'000, 0};
    }
    void Cancel(const DirectLease&) override { ++leaser_.free; }
    void Commit(const DirectLease&, TaskId id, LaneId, TaskSpec) override {
      ids_.push_back(id);
    }
    void Send() override {
      for (const TaskId id : ids_) leaser_.sent.Add(id);
    }

   private:
    FakeLeaser& leaser_;
    std::vector<TaskId> ids_;
  };

  std::unique_ptr<DirectLeaseBatch> Begin() override {
    if (free == 0) return nullptr;
    return std::make_unique<Batch>(*this);
  }

  std::atomic<int> free = 2;
  Inbox<TaskId> sent;
};

class SubmitAndLeaseTest : public SubmitBatcherTest {
 protected:
  SubmitAndLeaseTest() {
    batcher_ = std::make_unique<SubmitBatcher>(store_, lanes_, feed_, bounds_,
                                               metrics_, clock_, &leaser_);
  }
  ~SubmitAndLeaseTest() override {
    store_.OpenGate(Role::kSubmit);
    batcher_->Stop();
  }
  FakeLeaser leaser_;
};

TEST_F(SubmitAndLeaseTest, LeasesWhileThereIsRoomAndOffersTheRest) {
  batcher().Submit({MakeSpec(), MakeSpec(), MakeSpec()},
                   [this](Answer answer) { answers_.Add(answer); });

  ASSERT_TRUE(answers_.Await(1));
  const auto tasks = answers_.All()[0].value();
  EXPECT_THAT(leaser_.sent.All(),
              testing::ElementsAre(tasks[0].id, tasks[1].id));
  EXPECT_EQ(store_.LiveRow(tasks[0].id)->holder, 7u);
  EXPECT_EQ(store_.LiveRow(tasks[0].id)->lease_number, 1);
  EXPECT_EQ(store_.LiveRow(tasks[2].id)->phase, Phase::kWaiting);
  ASSERT_TRUE(feed_.offered.Await(1));
  EXPECT_EQ(feed_.offered.All()[0].id, tasks[2].id);
}

TEST_F(SubmitAndLeaseTest, ATaskThatExistedGivesItsRoomBack) {
  Submit(Keyed("k"));
  ASSERT_TRUE(answers_.Await(1));
  Submit(Keyed("k"));

  ASSERT_TRUE(answers_.Await(2));
  EXPECT_EQ(leaser_.sent.size(), 1u);
  EXPECT_EQ(leaser_.free, 1);
}

TEST_F(SubmitAndLeaseTest, CallsThatFailGiveTheirRoomBack) {
  store_.FailNext(StoreMethod::kSubmitTasks, 1, absl::UnavailableError("away"));
  Submit();
  ASSERT_TRUE(answers_.Await(1));
  EXPECT_EQ(CountOf(absl::StatusCode::kUnavailable), 1u);
  Submit(Keyed("k", "1"));
  ASSERT_TRUE(answers_.Await(2));
  Submit(Keyed("k", "2"));

  ASSERT_TRUE(answers_.Await(3));
  EXPECT_EQ(CountOf(absl::StatusCode::kAlreadyExists), 1u);
  EXPECT_EQ(leaser_.sent.size(), 1u);
  EXPECT_EQ(leaser_.free, 1);
}

TEST_F(SubmitAndLeaseTest, ABrokenBatchLeasesWhatCouldBeStored) {
  leaser_.free = 3;
  Occupy();
  Submit();
  Submit();
  // The occupying call, the batch, and of that the first call alone.
  store_.FailNext(StoreMethod::kSubmitTasks, 3, absl::InternalError("1366"));
  store_.OpenGate(Role::kSubmit);

  ASSERT_TRUE(answers_.Await(3));
  EXPECT_EQ(CountOf(absl::StatusCode::kOk), 1u);
  EXPECT_EQ(leaser_.sent.size(), 1u);
  EXPECT_EQ(leaser_.free, 2);
}

}  // namespace
}  // namespace leasehold::scheduler
