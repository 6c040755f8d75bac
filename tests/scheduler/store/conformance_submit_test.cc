// Submitting: ids, lanes, everything a task carries, idempotency keys.
#include <set>
#include <thread>

#include "tests/scheduler/store/task_store_conformance.h"

namespace leasehold::scheduler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

TEST_P(TaskStoreTest, ReservesIdsThatNobodyElseGets) {
  const TaskId first = store_.ReserveIds(10).value();
  const TaskId second = harness_->other().ReserveIds(5).value();
  const TaskId third = store_.ReserveIds(1).value();

  EXPECT_GE(first, 1);
  EXPECT_EQ(second, first + 10);
  EXPECT_EQ(third, second + 5);
}

TEST_P(TaskStoreTest, InternsLanesByteForByte) {
  const std::vector<std::pair<std::string, std::string>> names = {
      {"q", "a"}, {"q", "A"}, {"q", "a"}, {"q2", "a"}};

  const auto ids = store_.InternLanes(names).value();
  const auto again = harness_->other().InternLanes(names).value();

  EXPECT_EQ(ids[0], ids[2]);
  EXPECT_THAT(std::set<LaneId>(ids.begin(), ids.end()), SizeIs(3));
  EXPECT_EQ(again, ids);
  EXPECT_THAT(store_.ListLanes().value(), SizeIs(3));
  EXPECT_THAT(store_.ListQueues().value(), SizeIs(2));
}

TEST_P(TaskStoreTest, InternsHoldersByIncarnation) {
  const HolderId first = store_.InternHolder("e", "1").value();
  const HolderId restarted = store_.InternHolder("e", "2").value();

  EXPECT_NE(first, restarted);
  EXPECT_EQ(harness_->other().InternHolder("e", "1").value(), first);
}

TEST_P(TaskStoreTest, InternsOnceFromManyThreads) {
  std::vector<std::thread> threads;
  std::vector<LaneId> ids(8);
  for (size_t i = 0; i < ids.size(); ++i) {
    threads.emplace_back([&, i] {
      TaskStore& store = i % 2 == 0 ? store_ : harness_->other();
      const std::vector<std::pair<std::string, std::string>> names = {
          {"shared", "t"}};
      ids[i] = store.InternLanes(names).value().front();
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_THAT(std::set<LaneId>(ids.begin(), ids.end()), SizeIs(1));
}

TEST_P(TaskStoreTest, KeepsEverythingThatWasSubmitted) {
  TaskSpec spec = Spec();
  spec.payload = {PayloadKind::kData, OddBytes()};
  spec.priority = 2;
  spec.partition_key = "tenant:7 '\\\" \xFF";
  spec.idempotency_key = "key:1 \xFE'";
  spec.labels = {{"a:b", "it's \"x\" \\ :y"}, {"team", "\xC3\xA4"}};
  spec.retry_policy.max_attempts = 7;
  spec.retry_policy.backoff_schedule_us = {1'000'000, 2'000'000};
  spec.retry_policy.non_retryable_codes = {"bad:input", "it's"};
  spec.attempt_timeout_us = 5'000'000;
  spec.schedule_us = Now() + 3'600'000'000;
  spec.expire_us = spec.schedule_us + 1;
  spec.traceparent = "00-ab-cd-01";
  spec.batch_id = 99;

  const TaskId id = Submit(spec);

  const TaskRecord record = Get(id, {true, false, false});
  EXPECT_EQ(record.spec.queue, "q");
  EXPECT_EQ(record.spec.type, "t");
  EXPECT_EQ(record.spec.payload, spec.payload);
  EXPECT_EQ(record.spec.priority, 2);
  EXPECT_EQ(record.spec.partition_key, spec.partition_key);
  EXPECT_EQ(record.spec.idempotency_key, spec.idempotency_key);
  EXPECT_EQ(record.spec.labels, spec.labels);
  EXPECT_EQ(record.spec.retry_policy, spec.retry_policy);
  EXPECT_EQ(record.spec.attempt_timeout_us, spec.attempt_timeout_us);
  EXPECT_EQ(record.spec.schedule_us, spec.schedule_us);
  EXPECT_EQ(record.spec.expire_us, spec.expire_us);
  EXPECT_EQ(record.spec.traceparent, spec.traceparent);
  EXPECT_EQ(record.spec.batch_id, 99);
  ASSERT_TRUE(record.live.has_value());
  EXPECT_EQ(record.live->run_us, spec.schedule_us);
  EXPECT_EQ(record.live->state, TaskState::kPending);
  EXPECT_EQ(record.live->priority, 2);
}

TEST_P(TaskStoreTest, LeavesThePayloadOutUnlessAskedFor) {
  const TaskId id = Submit(Spec("[1]"));

  EXPECT_EQ(Get(id).spec.payload.bytes, "");
  EXPECT_EQ(Get(id, {true, false, false}).spec.payload.bytes, "[1]");
}

TEST_P(TaskStoreTest, TakesAPayloadOfOneMiB) {
  TaskSpec spec = Spec();
  spec.payload = {PayloadKind::kData, std::string(1 << 20, '\'')};

  const TaskId id = Submit(spec);

  EXPECT_EQ(Get(id, {true, false, false}).spec.payload, spec.payload);
}

TEST_P(TaskStoreTest, TakesMoreThanFitsOneStatement) {
  std::vector<TaskSpec> specs(9, Spec(std::string(1 << 20, 'x')));

  const std::vector<TaskId> ids = Submit(specs);

  EXPECT_THAT(store_.GetTasks(ids, {}).value(), SizeIs(9));
}

TEST_P(TaskStoreTest, RunsAtOnceOrWhenScheduled) {
  const int64_t before = Now();
  std::vector<std::vector<NewTask>> calls(1);
  TaskSpec later = Spec();
  later.schedule_us = before + 5'000'000;
  calls[0] = {New(Spec()), New(later)};

  const auto results = store_.SubmitTasks(calls).value();

  ASSERT_TRUE(results[0].ok());
  const auto& tasks = *results[0];
  EXPECT_GE(tasks[0].create_us, before);
  EXPECT_EQ(tasks[0].run_us, tasks[0].create_us);
  EXPECT_EQ(tasks[1].run_us, later.schedule_us);
  EXPECT_EQ(Get(tasks[0].id).create_us, tasks[0].create_us);
}

TEST_P(TaskStoreTest, GivesTheKnownTaskForItsKey) {
  TaskSpec spec = Spec("same");
  spec.idempotency_key = "k";
  const TaskId id = Submit(spec);

  const auto results = harness_->other().SubmitTasks({{{New(spec)}}}).value();

  ASSERT_TRUE(results[0].ok());
  EXPECT_EQ(results[0]->front().id, id);
  EXPECT_TRUE(results[0]->front().existed);
}

TEST_P(TaskStoreTest, GivesTheKnownTaskAfterItHasEnded) {
  TaskSpec spec = Spec("same");
  spec.idempotency_key = "k";
  const TaskId id = Submit(spec);
  Report(Claim(id), Payload{});

  EXPECT_EQ(Submit(spec), id);
}

TEST_P(TaskStoreTest, RefusesOtherContentForAKeyAndNobodyElse) {
  TaskSpec known = Spec("known");
  known.idempotency_key = "k";
  const TaskId id = Submit(known);
  TaskSpec other = Spec("other");
  other.idempotency_key = "k";
  const std::vector<std::vector<NewTask>> calls = {
      {New(Spec("neighbour"))},
      {New(Spec("of the same call")), New(other)},
      {New(known)},
      {New(Spec("neighbour 2"))}};

  const auto results = store_.SubmitTasks(calls).value();

  EXPECT_TRUE(results[0].ok());
  EXPECT_EQ(results[1].status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(results[1].status().message()),
              HasSubstr(std::to_string(id)));
  EXPECT_EQ(results[2].value().front().id, id);
  EXPECT_TRUE(results[3].ok());
  const TaskId none = calls[1][0].id;
  EXPECT_THAT(store_.GetTasks({&none, 1}, {}).value(), SizeIs(0));
}

TEST_P(TaskStoreTest, KnowsAKeyFromItsFirstCallOn) {
  TaskSpec spec = Spec("same");
  spec.idempotency_key = "k";
  const std::vector<std::vector<NewTask>> calls = {{New(spec), New(spec)},
                                                   {New(spec)}};

  const auto results = store_.SubmitTasks(calls).value();

  const TaskId id = calls[0][0].id;
  EXPECT_EQ(results[0].value()[0].id, id);
  EXPECT_FALSE(results[0].value()[0].existed);
  EXPECT_EQ(results[0].value()[1].id, id);
  EXPECT_TRUE(results[0].value()[1].existed);
  EXPECT_EQ(results[1].value()[0].id, id);
}

TEST_P(TaskStoreTest, ForgetsTheKeysOfACallThatFails) {
  TaskSpec known = Spec("known");
  known.idempotency_key = "k";
  Submit(known);
  TaskSpec clash = Spec("clash");
  clash.idempotency_key = "k";
  TaskSpec fresh = Spec("fresh");
  fresh.idempotency_key = "new";
  const std::vector<std::vector<NewTask>> calls = {{New(fresh), New(clash)},
                                                   {New(fresh)}};

  const auto results = store_.SubmitTasks(calls).value();

  EXPECT_FALSE(results[0].ok());
  EXPECT_FALSE(results[1].value()[0].existed);
  EXPECT_EQ(results[1].value()[0].id, calls[1][0].id);
}

TEST_P(TaskStoreTest, ComparesKeysByteForByte) {
  std::set<TaskId> ids;
  for (const std::string key :
       {"a", "A", "a ", "\xC3\xA4", "a\xCC\x88", "a%", "'a'", "\\a"}) {
    TaskSpec spec = Spec();
    spec.idempotency_key = key;
    ids.insert(Submit(spec));
  }
  TaskSpec elsewhere = Spec();
  elsewhere.queue = "q2";
  elsewhere.idempotency_key = "a";
  ids.insert(Submit(elsewhere));

  EXPECT_THAT(ids, SizeIs(9));
}

TEST_P(TaskStoreTest, MakesOneTaskOfManySubmitsWithOneKey) {
  TaskSpec spec = Spec("same");
  spec.idempotency_key = "k";
  std::vector<NewTask> tasks;
  for (int i = 0; i < 100; ++i) tasks.push_back(New(spec));
  std::vector<TaskId> ids(100);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 10; ++t) {
    threads.emplace_back([&, t] {
      TaskStore& store = t % 2 == 0 ? store_ : harness_->other();
      for (size_t i = t; i < 100; i += 10) {
        absl::StatusOr<std::vector<absl::StatusOr<std::vector<SubmittedTask>>>>
            result = absl::AbortedError("");
        while (absl::IsAborted(result.status())) {
          result = store.SubmitTasks({{{tasks[i]}}});
        }
        ASSERT_TRUE(result.ok()) << result.status();
        ids[i] = (*result)[0].value()[0].id;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_THAT(std::set<TaskId>(ids.begin(), ids.end()), SizeIs(1));
  EXPECT_THAT(store_.ListTasks({}, INT64_MAX, 10, 1 << 20).value().tasks,
              SizeIs(1));
}

TEST_P(TaskStoreTest, CanRepeatASubmitWhoseAnswerWasLost) {
  TaskSpec keyed = Spec("same");
  keyed.idempotency_key = "k";
  const std::vector<std::vector<NewTask>> calls = {{New(Spec())}, {New(keyed)}};
  const auto first = store_.SubmitTasks(calls).value();

  const auto second = store_.SubmitTasks(calls).value();

  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(second[i].value()[0].id, first[i].value()[0].id);
  }
  EXPECT_THAT(store_.ListTasks({}, INT64_MAX, 10, 1 << 20).value().tasks,
              SizeIs(2));
}

}  // namespace
}  // namespace leasehold::scheduler
