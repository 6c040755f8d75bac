// WaitTask and WatchTask over a real gRPC server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tests/scheduler/rpc/fakes.h"

namespace leasehold::scheduler {
namespace {

using LongCallsTest = GrpcServerTest;

TEST_F(LongCallsTest, WaitAnswersWhenTheTaskEnds) {
  std::thread later([&] {
    ASSERT_TRUE(hub.WaitForWatches(1));
    hub.Update(NewRecord(5));
    hub.Update(NewEndedRecord(5));
  });
  v1::Task task;

  const grpc::Status status = Wait("5", 20'000, &task);

  later.join();
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(task.state(), v1::TASK_STATE_SUCCEEDED);
  EXPECT_EQ(task.result().json(), "42");
  EXPECT_TRUE(hub.WaitForWatches(0));
}

TEST_F(LongCallsTest, WaitAnswersTheTaskAsItStandsWhenTimeIsUp) {
  for (const bool by_deadline : {false, true}) {
    std::thread later([&] {
      ASSERT_TRUE(hub.WaitForWatches(1));
      hub.Update(NewRecord(5));
    });
    v1::Task task;
    const grpc::Status status = by_deadline
                                    ? Wait("5", 20'000, &task, absl::Seconds(1))
                                    : Wait("5", 300, &task);
    later.join();
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(task.state(), v1::TASK_STATE_PENDING);
    EXPECT_TRUE(hub.WaitForWatches(0));
  }
}

TEST_F(LongCallsTest, WaitForNothingAnswersTheFirstSight) {
  std::thread later([&] {
    ASSERT_TRUE(hub.WaitForWatches(1));
    hub.Update(NewRecord(5));
  });
  v1::Task task;
  const grpc::Status status = Wait("5", 0, &task);
  later.join();
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST_F(LongCallsTest, WatchSendsEveryStateAndEndsWithTheLast) {
  grpc::ClientContext context;
  v1::WatchTaskRequest request;
  request.set_task_id("5");
  auto stream = tasks->WatchTask(&context, request);
  ASSERT_TRUE(hub.WaitForWatches(1));
  v1::Task task;

  hub.Update(NewRecord(5));
  ASSERT_TRUE(stream->Read(&task));
  EXPECT_EQ(task.state(), v1::TASK_STATE_PENDING);
  hub.Update(NewEndedRecord(5));
  ASSERT_TRUE(stream->Read(&task));
  EXPECT_EQ(task.state(), v1::TASK_STATE_SUCCEEDED);

  EXPECT_FALSE(stream->Read(&task));
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(hub.WaitForWatches(0));
}

TEST_F(LongCallsTest, SlowWatcherGetsTheLatestNotTheBacklog) {
  grpc::ClientContext context;
  v1::WatchTaskRequest request;
  request.set_task_id("5");
  auto stream = tasks->WatchTask(&context, request);
  ASSERT_TRUE(hub.WaitForWatches(1));
  TaskRecord record = NewRecord(5);
  // Large enough to fill every buffer between here and a client that reads
  // nothing.
  record.spec.traceparent = std::string(100'000, 't');

  for (int i = 1; i <= 2'000; ++i) {
    record.live->attempt = i;
    hub.Update(record);
  }
  hub.Update(NewEndedRecord(5));

  int seen = 0;
  v1::Task task;
  while (stream->Read(&task)) ++seen;
  EXPECT_LT(seen, 500);
  EXPECT_EQ(task.state(), v1::TASK_STATE_SUCCEEDED);
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(LongCallsTest, WatchOfAClientThatLeftIsForgotten) {
  grpc::ClientContext context;
  v1::WatchTaskRequest request;
  request.set_task_id("5");
  auto stream = tasks->WatchTask(&context, request);
  ASSERT_TRUE(hub.WaitForWatches(1));

  context.TryCancel();

  EXPECT_TRUE(hub.WaitForWatches(0));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(LongCallsTest, WatchErrorsEndTheCall) {
  hub.refuse = absl::ResourceExhaustedError("too many watches");
  for (const char* id : {"5", "x"}) {
    grpc::ClientContext context;
    v1::WatchTaskRequest request;
    request.set_task_id(id);
    auto stream = tasks->WatchTask(&context, request);
    v1::Task task;
    EXPECT_FALSE(stream->Read(&task));
    EXPECT_EQ(stream->Finish().error_code(),
              id[0] == '5' ? grpc::StatusCode::RESOURCE_EXHAUSTED
                           : grpc::StatusCode::NOT_FOUND);
  }
}

TEST_F(LongCallsTest, DrainEndsWaitsAndWatches) {
  grpc::Status waited;
  std::thread waiter([&] {
    v1::Task task;
    waited = Wait("5", 20'000, &task);
  });
  grpc::ClientContext context;
  v1::WatchTaskRequest request;
  request.set_task_id("6");
  auto stream = tasks->WatchTask(&context, request);
  ASSERT_TRUE(hub.WaitForWatches(2));

  server->EndWaitingCalls();

  waiter.join();
  EXPECT_EQ(waited.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(waited.error_message(),
            "scheduler is shutting down, try another replica");
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  v1::Task task;
  EXPECT_EQ(Wait("5", 1, &task).error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace leasehold::scheduler
