// TaskService over a real gRPC server, with fakes for the engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "leasehold/v1/admin_service.grpc.pb.h"
#include "leasehold/v1/batch_service.grpc.pb.h"
#include "scheduler/domain/limits.h"
#include "tests/scheduler/rpc/fakes.h"

namespace leasehold::scheduler {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

v1::Task NewTask() {
  v1::Task task;
  task.set_queue("q");
  task.set_type("echo");
  task.mutable_payload()->set_json("{}");
  return task;
}

class TaskServiceTest : public GrpcServerTest {
 protected:
  grpc::Status Submit(const v1::Task& task, v1::Task* response,
                      grpc::ClientContext* context) {
    v1::SubmitTaskRequest request;
    *request.mutable_task() = task;
    return tasks->SubmitTask(context, request, response);
  }
  grpc::Status Submit(const v1::Task& task, v1::Task* response) {
    grpc::ClientContext context;
    return Submit(task, response, &context);
  }
  grpc::Status Get(const std::string& id, v1::Task* response) {
    grpc::ClientContext context;
    v1::GetTaskRequest request;
    request.set_task_id(id);
    return tasks->GetTask(&context, request, response);
  }
};

TEST_F(TaskServiceTest, SubmitAnswersTheStoredTaskWithoutItsPayload) {
  v1::Task stored;

  const grpc::Status status = Submit(NewTask(), &stored);

  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(stored.id(), "1");
  EXPECT_EQ(stored.state(), v1::TASK_STATE_PENDING);
  EXPECT_EQ(stored.create_time().seconds(), 7);
  EXPECT_FALSE(stored.has_payload());
  ASSERT_EQ(submitter.submitted.size(), 1u);
  EXPECT_EQ(submitter.submitted[0].payload.bytes, "{}");
}

TEST_F(TaskServiceTest, SubmitWithAKnownKeyAnswersTheTaskAsItStands) {
  reader.tasks[9] = NewEndedRecord(9);
  submitter.answer = [](const std::vector<TaskSpec>&) {
    return std::vector<SubmittedTask>{{9, true, 0, 0}};
  };
  v1::Task stored;

  ASSERT_TRUE(Submit(NewTask(), &stored).ok());

  EXPECT_EQ(stored.id(), "9");
  EXPECT_EQ(stored.state(), v1::TASK_STATE_SUCCEEDED);
  EXPECT_EQ(stored.result().json(), "42");
  EXPECT_FALSE(reader.last_options.payload);
}

TEST_F(TaskServiceTest, MistakesNeverReachTheEngine) {
  v1::Task task = NewTask();
  task.set_queue("Ä b");
  v1::Task stored;

  const grpc::Status status = Submit(task, &stored);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(),
            "task.queue: \"Ä b\", want 1-64 of [a-z0-9._-]");
  EXPECT_TRUE(submitter.submitted.empty());
}

TEST_F(TaskServiceTest, ErrorsKeepTheirCodes) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kAlreadyExists, absl::StatusCode::kUnavailable,
        absl::StatusCode::kInternal}) {
    submitter.answer = [code](const std::vector<TaskSpec>&) {
      return absl::Status(code, "why \xff");
    };
    v1::Task stored;
    grpc::ClientContext context;
    const grpc::Status status = Submit(NewTask(), &stored, &context);
    EXPECT_EQ(static_cast<int>(status.error_code()), static_cast<int>(code));
    EXPECT_THAT(status.error_message(), StartsWith("why "));
    EXPECT_EQ(
        context.GetServerTrailingMetadata().count("grpc-retry-pushback-ms"),
        0u);
  }
}

TEST_F(TaskServiceTest, WhatTheDatabaseAbortedCanBeTriedAgain) {
  submitter.answer = [](const std::vector<TaskSpec>&) {
    return absl::AbortedError("deadlock");
  };
  v1::Task stored;

  EXPECT_EQ(Submit(NewTask(), &stored).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TaskServiceTest, FullServerSaysWhenToComeBack) {
  submitter.answer = [](const std::vector<TaskSpec>&) {
    return absl::ResourceExhaustedError("submit queue is full");
  };
  v1::Task stored;
  grpc::ClientContext context;

  const grpc::Status status = Submit(NewTask(), &stored, &context);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto pushback = trailers.find("grpc-retry-pushback-ms");
  ASSERT_NE(pushback, trailers.end());
  const int millis =
      std::stoi(std::string(pushback->second.data(), pushback->second.size()));
  EXPECT_GE(millis, 100);
  EXPECT_LT(millis, 400);
}

TEST_F(TaskServiceTest, LongErrorTextsStillArrive) {
  submitter.answer = [](const std::vector<TaskSpec>&) {
    std::string text;
    for (int i = 0; i < 10'000; ++i) text += "ä";
    return absl::InternalError(text);
  };
  v1::Task stored;
  const grpc::Status status = Submit(NewTask(), &stored);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(status.error_message().size(), 2048u);
}

TEST_F(TaskServiceTest, SubmitTasksKeepsTheOrderOfNewAndKnown) {
  reader.tasks[50] = NewEndedRecord(50);
  submitter.answer = [](const std::vector<TaskSpec>&) {
    return std::vector<SubmittedTask>{{60, false, 1, 1},
                                      {50, true, 0, 0},
                                      {61, false, 1, 1},
                                      {50, true, 0, 0}};
  };
  v1::SubmitTasksRequest request;
  for (int i = 0; i < 4; ++i) *request.add_tasks() = NewTask();
  v1::SubmitTasksResponse response;
  grpc::ClientContext context;

  ASSERT_TRUE(tasks->SubmitTasks(&context, request, &response).ok());

  std::vector<std::string> ids;
  for (const auto& task : response.tasks()) ids.push_back(task.id());
  EXPECT_THAT(ids, testing::ElementsAre("60", "50", "61", "50"));
  EXPECT_FALSE(response.tasks(1).has_result());
}

TEST_F(TaskServiceTest, GetReadsEverything) {
  reader.tasks[3] = NewEndedRecord(3);
  reader.tasks[3].spec.payload = {PayloadKind::kData, "in"};
  v1::Task task;

  ASSERT_TRUE(Get("3", &task).ok());

  EXPECT_TRUE(reader.last_options.payload && reader.last_options.result &&
              reader.last_options.attempts);
  EXPECT_EQ(task.payload().data(), "in");
  EXPECT_EQ(task.result().json(), "42");
}

TEST_F(TaskServiceTest, UnknownIdsAreNotFound) {
  v1::Task task;
  EXPECT_EQ(Get("4", &task).error_message(), "task 4: not found");
  EXPECT_EQ(Get("x\n", &task).error_message(), "task \"x\\x0a\": not found");
  EXPECT_EQ(Get("", &task).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Wait("x", 1, &task).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(TaskServiceTest, ListsPageByPage) {
  for (TaskId id = 1; id <= 120; ++id) reader.tasks[id] = NewRecord(id);
  v1::ListTasksRequest request;
  request.set_queue("q");
  std::vector<int> sizes;
  int64_t last = 121;
  do {
    v1::ListTasksResponse response;
    grpc::ClientContext context;
    ASSERT_TRUE(tasks->ListTasks(&context, request, &response).ok());
    sizes.push_back(response.tasks_size());
    for (const auto& task : response.tasks()) {
      EXPECT_EQ(std::stoll(task.id()), --last);
    }
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_THAT(sizes, testing::ElementsAre(50, 50, 20));
}

TEST_F(TaskServiceTest, RefusesAPageTokenOfOtherFilters) {
  for (TaskId id = 1; id <= 2; ++id) reader.tasks[id] = NewRecord(id);
  v1::ListTasksRequest request;
  request.set_page_size(1);
  v1::ListTasksResponse response;
  grpc::ClientContext first, second;
  ASSERT_TRUE(tasks->ListTasks(&first, request, &response).ok());
  request.set_page_token(response.next_page_token());
  request.set_queue("other");

  const grpc::Status status = tasks->ListTasks(&second, request, &response);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), StartsWith("page_token: "));
}

TEST_F(TaskServiceTest, PagesAreCutAtThreeMebibytesAndGoOn) {
  for (TaskId id = 1; id <= 1000; ++id) {
    reader.tasks[id] = NewRecord(id);
    for (int i = 0; i < 16; ++i) {
      reader.tasks[id].spec.labels.emplace_back(
          absl::StrCat(i, std::string(126, 'k')), std::string(128, 'v'));
    }
  }
  v1::ListTasksRequest request;
  request.set_page_size(5000);
  int seen = 0, pages = 0;
  do {
    v1::ListTasksResponse response;
    grpc::ClientContext context;
    ASSERT_TRUE(tasks->ListTasks(&context, request, &response).ok());
    EXPECT_LT(response.ByteSizeLong(), kMaxPageBytes + 10'000);
    EXPECT_EQ(reader.last_page_size, 1000);
    seen += response.tasks_size();
    ++pages;
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_EQ(seen, 1000);
  EXPECT_GT(pages, 1);
}

TEST_F(TaskServiceTest, ShutdownDoesNotWaitForAnEngineThatNeverAnswers) {
  submitter.hold = true;
  grpc::Status status;
  std::thread caller([&] {
    v1::Task stored;
    status = Submit(NewTask(), &stored);
  });
  ASSERT_TRUE(submitter.monitor.WaitUntil(
      [&] { return submitter.waiting.size() == 1; }));

  server->Shutdown(absl::Milliseconds(50));

  caller.join();
  EXPECT_FALSE(status.ok());
  // The answer that comes too late goes nowhere.
  submitter.waiting[0](std::vector<SubmittedTask>{{1, false, 1, 1}});
}

TEST_F(TaskServiceTest, MethodsOfLaterVersionsSaySo) {
  grpc::ClientContext c1, c2, c3, c4;
  v1::ExplainTaskRequest explain;
  explain.set_task_id("1");
  v1::ExplainTaskResponse explained;
  const grpc::Status status = tasks->ExplainTask(&c1, explain, &explained);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(status.error_message(), HasSubstr("TaskService.ExplainTask"));

  v1::GetStatsResponse stats;
  EXPECT_THAT(v1::AdminService::NewStub(channel)
                  ->GetStats(&c2, {}, &stats)
                  .error_message(),
              HasSubstr("AdminService.GetStats"));

  auto batches = v1::BatchService::NewStub(channel);
  v1::Batch batch;
  auto create = batches->CreateBatch(&c3, &batch);
  EXPECT_THAT(create->Finish().error_message(),
              HasSubstr("BatchService.CreateBatch"));
  EXPECT_THAT(batches->WatchBatch(&c4, {})->Finish().error_message(),
              HasSubstr("BatchService.WatchBatch"));
}

TEST_F(TaskServiceTest, BusyPortIsAnError) {
  GrpcServerOptions options;
  options.listen = address;
  GrpcServerParts parts{
      &submitter, &reader, &control, &hub, &sessions, &queues, [] {
        return int64_t{0};
      }};

  const auto second = GrpcServer::Start(options, parts);

  EXPECT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_THAT(std::string(second.status().message()),
              StartsWith("--listen=" + address + ": cannot listen there"));
}

}  // namespace
}  // namespace leasehold::scheduler
