// Submit, run, watch, wait, list: what a client sees when nothing breaks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/support/cluster.h"

namespace leasehold::e2e {
namespace {

using leasehold::v1::ListTasksRequest;
using leasehold::v1::Task;
using leasehold::v1::TaskState;
using testing::Contains;
using testing::HasSubstr;
using testing::SizeIs;

TEST(Tasks, RunsATaskAndReturnsItsResult) {
  Cluster cluster(SharedDatabase());
  TaskClient& client = cluster.StartScheduler().client();
  cluster.StartExecutor(BuiltInHandlers("q"));

  Task submitted = NewTask("q", "echo", std::string("a\0\xff", 3));
  submitted.set_partition_key("tenant");
  (*submitted.mutable_labels())["colour"] = "blue";
  const Task task = client.Wait(client.Submit(submitted));

  EXPECT_EQ(task.state(), leasehold::v1::TASK_STATE_SUCCEEDED);
  EXPECT_EQ(task.result().data(), std::string("a\0\xff", 3));
  EXPECT_EQ(task.attempt(), 1);
  EXPECT_EQ(task.executor_id(), "executor-1");
  EXPECT_EQ(task.partition_key(), "tenant");
  EXPECT_EQ(task.labels().at("colour"), "blue");
  EXPECT_GE(task.finish_time().seconds(), task.create_time().seconds());
}

TEST(Tasks, DoesNotEchoThePayloadToTheSubmitter) {
  Cluster cluster(SharedDatabase());
  TaskClient& client = cluster.StartScheduler().client();

  Task stored;
  ASSERT_TRUE(client.Submit(NewTask("q", "echo", "input"), &stored).ok());

  EXPECT_FALSE(stored.has_payload());
  EXPECT_EQ(stored.state(), leasehold::v1::TASK_STATE_PENDING);
  EXPECT_EQ(client.Get(stored.id()).payload().data(), "input");
}

TEST(Tasks, KeepsEveryDigitOfJson) {
  Cluster cluster(SharedDatabase());
  TaskClient& client = cluster.StartScheduler().client();
  cluster.StartExecutor(BuiltInHandlers("q"));
  const std::string json =
      R"({"id": 9007199254740993, "max": 18446744073709551615, "x": 1.10})";

  const Task task = client.Wait(client.Submit(NewJsonTask("q", "echo", json)));

  EXPECT_EQ(task.result().json(), json);
}

TEST(Tasks, RetriesUntilAnAttemptSucceeds) {
  Cluster cluster(SharedDatabase());
  TaskClient& client = cluster.StartScheduler().client();
  cluster.StartExecutor(BuiltInHandlers("q"));
  Task task = NewJsonTask(
      "q", "fail", R"({"error_class":"RETRYABLE","code":"BOOM","times":2})");
  task.mutable_retry_policy()->mutable_initial_backoff()->set_nanos(50'000'000);

  task = client.Wait(client.Submit(task));

  EXPECT_EQ(task.state(), leasehold::v1::TASK_STATE_SUCCEEDED);
  EXPECT_EQ(task.attempt(), 3);
  ASSERT_EQ(client.Get(task.id()).attempts_size(), 2);
  EXPECT_EQ(client.Get(task.id()).attempts(0).error().code(), "BOOM");
}

TEST(Tasks, FailsAtOnceWhenARetryCannotHelp) {
  Cluster cluster(SharedDatabase());
  TaskClient& client = cluster.StartScheduler().client();
  cluster.StartExecutor(BuiltInHandlers("q"));

  const Task task = client.Wait(client.Submit(NewJsonTask(
      "q", "fail", R"({"error_class":"NON_RETRYABLE","code":"BAD_INPUT"})")));

  EXPECT_EQ(task.state(), leasehold::v1::TASK_STATE_FAILED);
  EXPECT_EQ(task.failure_reason(), leasehold::v1::FAILURE_REASON_NON_RETRYABLE);
  EXPECT_EQ(task.error().code(), "BAD_INPUT");
  EXPECT_EQ(task.attempt(), 1);
}

TEST(Tasks, WatchShowsTheWayToTheEnd) {
  Cluster cluster(SharedDatabase());
  TaskClient& client = cluster.StartScheduler().client();
  const std::string id =
      client.Submit(NewJsonTask("q", "sleep", R"({"ms":2500})"));
  const auto context = ContextWithTimeout();
  leasehold::v1::WatchTaskRequest request;
  request.set_task_id(id);
  const auto stream = client.stub().WatchTask(context.get(), request);
  Task task;
  ASSERT_TRUE(stream->Read(&task));
  ASSERT_EQ(task.state(), leasehold::v1::TASK_STATE_PENDING);

  cluster.StartExecutor(BuiltInHandlers("q"));
  std::set<int> seen;
  while (stream->Read(&task)) seen.insert(task.state());

  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(task.state(), leasehold::v1::TASK_STATE_SUCCEEDED);
  EXPECT_THAT(seen, Contains(leasehold::v1::TASK_STATE_RUNNING));
}

TEST(Tasks, WaitReturnsTheTaskAsItStandsWhenItsTimeIsUp) {
  Cluster cluster(SharedDatabase());
  TaskClient& client = cluster.StartScheduler().client();
  leasehold::v1::WaitTaskRequest request;
  request.set_task_id(client.Submit(NewTask("nobody", "echo")));
  request.mutable_timeout()->set_nanos(300'000'000);

  Task task;
  const absl::Time began = absl::Now();
  const grpc::Status status =
      client.stub().WaitTask(ContextWithTimeout().get(), request, &task);

  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(task.state(), leasehold::v1::TASK_STATE_PENDING);
  EXPECT_GE(absl::Now() - began, absl::Milliseconds(290));
}

TEST(Tasks, ListsEveryTaskOnceOverManyPages) {
  Cluster cluster(SharedDatabase());
  TaskClient& client = cluster.StartScheduler().client();
  cluster.StartExecutor(BuiltInHandlers("q"));
  std::vector<Task> tasks(230, NewTask("q", "echo", "x"));
  for (size_t i = 0; i < tasks.size(); ++i)
    tasks[i].set_partition_key(i % 2 == 0 ? "even" : "odd");
  const std::vector<std::string> ids = client.SubmitAll(tasks);

  // While the tasks change state.
  ListTasksRequest request;
  request.set_queue("q");
  request.set_page_size(7);
  std::multiset<std::string> listed;
  for (const Task& task : client.List(request)) {
    listed.insert(task.id());
    EXPECT_FALSE(task.has_payload());
    EXPECT_FALSE(task.has_result());
  }
  EXPECT_EQ(listed, std::multiset<std::string>(ids.begin(), ids.end()));

  ASSERT_TRUE(client.WaitForCount("q", leasehold::v1::TASK_STATE_SUCCEEDED,
                                  ids.size()));
  request.set_partition_key("odd");
  request.add_states(leasehold::v1::TASK_STATE_SUCCEEDED);
  EXPECT_THAT(client.List(request), SizeIs(115));
  request.set_type("sleep");
  EXPECT_THAT(client.List(request), SizeIs(0));
}

TEST(Tasks, WaitsForItsScheduleTime) {
  Cluster cluster(SharedDatabase());
  TaskClient& client = cluster.StartScheduler().client();
  cluster.StartExecutor(BuiltInHandlers("q"));
  Task task = NewTask("q", "echo");
  const absl::Time due = absl::Now() + absl::Seconds(2);
  task.mutable_schedule_time()->set_seconds(absl::ToUnixSeconds(due));

  task = client.Wait(client.Submit(task));

  EXPECT_EQ(task.state(), leasehold::v1::TASK_STATE_SUCCEEDED);
  EXPECT_GE(task.finish_time().seconds(), absl::ToUnixSeconds(due));
}

TEST(Tasks, NeverLeasesATypeThatNobodyServes) {
  Cluster cluster(SharedDatabase());
  TaskClient& client = cluster.StartScheduler().client();
  cluster.StartExecutor(BuiltInHandlers("q"));
  const std::string orphan = client.Submit(NewTask("q", "nobody-serves-this"));

  const std::string served = client.Submit(NewTask("q", "echo"));

  EXPECT_EQ(client.Wait(served).state(), leasehold::v1::TASK_STATE_SUCCEEDED);
  EXPECT_EQ(client.Get(orphan).state(), leasehold::v1::TASK_STATE_PENDING);
  EXPECT_EQ(client.Get(orphan).attempt(), 0);
}

TEST(Tasks, RunsEachOf2000TasksOnceOverTwoExecutors) {
  Cluster cluster(SharedDatabase());
  SchedulerProcess& scheduler = cluster.StartScheduler();
  TaskClient& client = scheduler.client();
  cluster.StartExecutor(BuiltInHandlers("q", 8));
  cluster.StartExecutor(BuiltInHandlers("q", 8));
  std::vector<Task> tasks;
  for (int i = 0; i < 2000; ++i)
    tasks.push_back(NewTask("q", "echo", absl::StrCat("input ", i)));

  const std::vector<std::string> ids = client.SubmitAll(tasks);

  ASSERT_TRUE(client.WaitForCount("q", leasehold::v1::TASK_STATE_SUCCEEDED,
                                  ids.size()));
  ASSERT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), 2000u);
  std::set<std::string> executors;
  for (size_t i = 0; i < ids.size(); ++i) {
    const Task task = client.Get(ids[i]);
    ASSERT_EQ(task.result().data(), absl::StrCat("input ", i));
    ASSERT_EQ(task.attempt(), 1) << task.ShortDebugString();
    executors.insert(task.executor_id());
  }
  EXPECT_THAT(executors, SizeIs(2));
  EXPECT_EQ(cluster.Sql().Number("SELECT COUNT(*) FROM task_result"), 2000);
  EXPECT_EQ(cluster.Sql().Number("SELECT COUNT(*) FROM task_live"), 0);
}

TEST(IdempotencyKey, MakesOneTaskOf100ParallelSubmits) {
  Cluster cluster(SharedDatabase());
  const std::string address = cluster.StartScheduler().address();
  Task task = NewTask("q", "echo", "same");
  task.set_idempotency_key("order 17");
  std::vector<std::string> ids(100);
  std::vector<std::thread> submitters;
  TaskClient client(address);

  for (std::string& id : ids) {
    submitters.emplace_back([&] {
      Task stored;
      const grpc::Status status = client.Submit(task, &stored);
      id = status.ok() ? stored.id() : "error: " + status.error_message();
    });
  }
  for (std::thread& submitter : submitters) submitter.join();

  EXPECT_THAT(std::set<std::string>(ids.begin(), ids.end()), SizeIs(1))
      << ids[0];
  EXPECT_EQ(cluster.Sql().Number("SELECT COUNT(*) FROM task_live"), 1);
  EXPECT_EQ(client.Get(ids[0]).idempotency_key(), "order 17");
}

TEST(IdempotencyKey, RefusesOtherContentAndLeavesNeighboursAlone) {
  Cluster cluster(SharedDatabase());
  TaskClient& client = cluster.StartScheduler().client();
  Task first = NewTask("q", "echo", "first");
  first.set_idempotency_key("k");
  const std::string id = client.Submit(first);

  // Fifty submits at once share transactions; one of them cannot be stored.
  std::vector<grpc::Status> statuses(50);
  std::vector<std::thread> submitters;
  for (size_t i = 0; i < statuses.size(); ++i) {
    submitters.emplace_back([&, i] {
      Task task = NewTask("q", "echo", absl::StrCat("other ", i));
      task.set_idempotency_key(i == 25 ? "k" : absl::StrCat("k", i));
      Task stored;
      statuses[i] = client.Submit(task, &stored);
    });
  }
  for (std::thread& submitter : submitters) submitter.join();

  for (size_t i = 0; i < statuses.size(); ++i) {
    EXPECT_EQ(statuses[i].error_code(),
              i == 25 ? grpc::StatusCode::ALREADY_EXISTS : grpc::StatusCode::OK)
        << i << ": " << statuses[i].error_message();
  }
  EXPECT_EQ(client.Get(id).payload().data(), "first");
}

TEST(IdempotencyKey, ComparesByteForByteAndWithinItsQueue) {
  Cluster cluster(SharedDatabase());
  TaskClient& client = cluster.StartScheduler().client();
  std::set<std::string> ids;

  for (const char* key : {"a", "A", "a ", "\u00e4", "a\u0308"}) {
    for (const char* queue : {"q1", "q2"}) {
      Task task = NewTask(queue, "echo", "same");
      task.set_idempotency_key(key);
      ids.insert(client.Submit(task));
    }
  }

  EXPECT_THAT(ids, SizeIs(10));
}

TEST(IdempotencyKey, ReturnsTheTaskAfterItEnded) {
  Cluster cluster(SharedDatabase());
  TaskClient& client = cluster.StartScheduler().client();
  cluster.StartExecutor(BuiltInHandlers("q"));
  Task task = NewTask("q", "echo", "same");
  task.set_idempotency_key("k");
  const std::string id = client.Submit(task);
  client.Wait(id);

  Task again;
  ASSERT_TRUE(client.Submit(task, &again).ok());

  EXPECT_EQ(again.id(), id);
  EXPECT_EQ(again.state(), leasehold::v1::TASK_STATE_SUCCEEDED);
}

TEST(Observability, MetricsFollowTheWork) {
  Cluster cluster(SharedDatabase());
  SchedulerProcess& scheduler = cluster.StartScheduler();
  cluster.StartExecutor(BuiltInHandlers("q"));
  scheduler.client().Wait(scheduler.client().Submit(NewTask("q", "echo")));

  const std::string metrics = scheduler.HttpBody("/metrics");

  EXPECT_THAT(metrics, HasSubstr("# HELP leasehold_"));
  EXPECT_THAT(metrics, HasSubstr("_bucket{"));
  EXPECT_EQ(scheduler.HttpStatus("/healthz"), 200);
  EXPECT_EQ(scheduler.HttpStatus("/readyz"), 200);
}

}  // namespace
}  // namespace leasehold::e2e
