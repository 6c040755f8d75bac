// What is refused, and with which words; and what is so big or so odd that it
// might be, but is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "leasehold/v1/admin_service.grpc.pb.h"
#include "leasehold/v1/batch_service.grpc.pb.h"
#include "tests/support/cluster.h"

namespace leasehold::e2e {
namespace {

using leasehold::v1::Task;
using testing::AllOf;
using testing::HasSubstr;

constexpr size_t kMiB = 1 << 20;

// One cluster for all tests here; none of them breaks it.
class Limits : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster_ = new Cluster(SharedDatabase());
    scheduler_ = &cluster_->StartScheduler();
    cluster_->StartExecutor(BuiltInHandlers("q"));
    cluster_->StartExecutor(ShellHandler("sh", "run", R"sh(eval "$(cat)")sh"));
  }
  static void TearDownTestSuite() { delete cluster_; }

  static TaskClient& client() { return scheduler_->client(); }
  static grpc::Status Refusal(const Task& task) {
    Task stored;
    return client().Submit(task, &stored);
  }
  static Task RunShell(const std::string& script) {
    Task task = NewTask("sh", "run", script);
    task.mutable_retry_policy()->set_max_attempts(1);
    return client().Wait(client().Submit(task));
  }

  static Cluster* cluster_;
  static SchedulerProcess* scheduler_;
};

Cluster* Limits::cluster_ = nullptr;
SchedulerProcess* Limits::scheduler_ = nullptr;

TEST_F(Limits, PayloadsHoldAtTheLimit) {
  for (const size_t size : {kMiB - 1, kMiB}) {
    const std::string payload(size, 'x');
    const Task task =
        client().Wait(client().Submit(NewTask("q", "echo", payload)));
    EXPECT_EQ(task.state(), leasehold::v1::TASK_STATE_SUCCEEDED);
    EXPECT_EQ(task.result().data().size(), size);
  }

  const grpc::Status status =
      Refusal(NewTask("q", "echo", std::string(kMiB + 1, 'x')));

  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(),
              AllOf(HasSubstr("task.payload"), HasSubstr("1048577")));
}

TEST_F(Limits, ResultsHoldAtTheLimitAndOneTooLargeFailsItsTaskAlone) {
  for (const size_t size : {kMiB - 1, kMiB}) {
    const Task task = RunShell(absl::StrCat("head -c ", size, " /dev/zero"));
    EXPECT_EQ(task.state(), leasehold::v1::TASK_STATE_SUCCEEDED)
        << task.error().ShortDebugString();
    EXPECT_EQ(task.result().data().size(), size);
  }
  const std::string neighbour =
      client().Submit(NewTask("sh", "run", "sleep 1; echo fine"));

  const Task task = RunShell(absl::StrCat("head -c ", kMiB + 1, " /dev/zero"));

  EXPECT_EQ(task.state(), leasehold::v1::TASK_STATE_FAILED);
  EXPECT_EQ(task.error().code(), "RESULT_TOO_LARGE");
  EXPECT_EQ(task.failure_reason(), leasehold::v1::FAILURE_REASON_NON_RETRYABLE);
  EXPECT_EQ(client().Wait(neighbour).state(),
            leasehold::v1::TASK_STATE_SUCCEEDED);
}

TEST_F(Limits, OddBytesInOutputAndErrorsDoNotEndTheStream) {
  const Task odd = RunShell(R"(printf 'a\000\377\360\237\222')");
  EXPECT_EQ(odd.state(), leasehold::v1::TASK_STATE_SUCCEEDED)
      << odd.error().ShortDebugString();
  EXPECT_EQ(odd.result().data(), std::string("a\0\xff\xf0\x9f\x92", 6));

  // A 4-byte character lies across byte 4096, where messages are cut.
  const Task failed = RunShell(
      R"(head -c 4094 /dev/zero | tr '\0' x >&2; printf '\360\237\222\251\377\000' >&2; exit 1)");
  EXPECT_EQ(failed.state(), leasehold::v1::TASK_STATE_FAILED);
  EXPECT_LE(failed.error().message().size(), 4096u);
  EXPECT_FALSE(failed.error().message().empty());

  EXPECT_EQ(RunShell("echo still here").result().data(), "still here\n");
}

TEST_F(Limits, NamesAreChecked) {
  const auto message = [](const std::string& queue, const std::string& type) {
    const grpc::Status status = Refusal(NewTask(queue, type));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT)
        << queue << " " << type;
    return status.error_message();
  };

  EXPECT_EQ(message("\u00c4 b", "echo"),
            "task.queue: \"\u00c4 b\", want 1-64 of [a-z0-9._-]");
  EXPECT_THAT(message("", "echo"), HasSubstr("task.queue"));
  EXPECT_THAT(message("Q", "echo"), HasSubstr("task.queue"));
  EXPECT_THAT(message("q", ""), HasSubstr("task.type"));
  EXPECT_THAT(message("q", "a/b"), HasSubstr("task.type"));
  EXPECT_THAT(message("q", std::string(65, 't')), HasSubstr("task.type"));
  EXPECT_THAT(message(std::string(65, 'q'), "echo"), HasSubstr("task.queue"));
  Task longest = NewTask(std::string(64, 'q'), std::string(64, 't'));
  EXPECT_TRUE(Refusal(longest).ok());
}

TEST_F(Limits, KeysLabelsAndTimesAreChecked) {
  const auto expect_refused = [](const char* field,
                                 const std::function<void(Task&)>& change) {
    Task task = NewTask("q", "nobody");
    change(task);
    const grpc::Status status = Refusal(task);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << field;
    EXPECT_THAT(status.error_message(), HasSubstr(field));
  };
  const auto expect_taken = [](const std::function<void(Task&)>& change) {
    Task task = NewTask("q", "nobody");
    change(task);
    const grpc::Status status = Refusal(task);
    EXPECT_TRUE(status.ok()) << status.error_message();
  };

  expect_taken([](Task& t) { t.set_partition_key(std::string(128, 'p')); });
  expect_refused("partition_key",
                 [](Task& t) { t.set_partition_key(std::string(129, 'p')); });
  expect_taken([](Task& t) { t.set_idempotency_key(std::string(191, 'k')); });
  expect_refused("idempotency_key",
                 [](Task& t) { t.set_idempotency_key(std::string(192, 'k')); });
  expect_taken([](Task& t) {
    (*t.mutable_labels())[std::string(128, 'k')] = std::string(128, 'v');
  });
  expect_refused("labels", [](Task& t) {
    (*t.mutable_labels())["k"] = std::string(129, 'v');
  });
  expect_refused("labels", [](Task& t) {
    for (int i = 0; i < 17; ++i)
      (*t.mutable_labels())[absl::StrCat("k", i)] = "v";
  });
  expect_refused("priority", [](Task& t) { t.set_priority(10); });
  expect_refused("priority", [](Task& t) { t.set_priority(-1); });
  expect_refused("max_attempts", [](Task& t) {
    t.mutable_retry_policy()->set_max_attempts(1001);
  });
  expect_refused("attempt_timeout", [](Task& t) {
    t.mutable_attempt_timeout()->set_nanos(99'999'999);
  });
  expect_refused("expire_time",
                 [](Task& t) { t.mutable_expire_time()->set_seconds(1); });
  expect_refused("task.payload",
                 [](Task& t) { t.mutable_payload()->set_json("{\"a\": 1,}"); });
}

TEST_F(Limits, InvalidJsonSaysWhere) {
  const grpc::Status status =
      Refusal(NewJsonTask("q", "echo", R"({"a": [1, 2, oops]})"));

  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("byte 13"));
}

TEST_F(Limits, ABadTaskRefusesTheWholeGroupAndIsNamed) {
  leasehold::v1::SubmitTasksRequest request;
  for (int i = 0; i < 3; ++i) *request.add_tasks() = NewTask("group", "nobody");
  request.mutable_tasks(2)->set_queue("NO");
  leasehold::v1::SubmitTasksResponse response;

  const grpc::Status status = client().stub().SubmitTasks(
      ContextWithTimeout().get(), request, &response);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("tasks[2]"));
  leasehold::v1::ListTasksRequest list;
  list.set_queue("group");
  EXPECT_TRUE(client().List(list).empty());
}

TEST_F(Limits, AGroupHoldsAThousandTasks) {
  leasehold::v1::SubmitTasksRequest request;
  for (int i = 0; i < 1000; ++i)
    *request.add_tasks() = NewTask("thousand", "nobody");
  leasehold::v1::SubmitTasksResponse response;
  EXPECT_TRUE(client()
                  .stub()
                  .SubmitTasks(ContextWithTimeout().get(), request, &response)
                  .ok());
  EXPECT_EQ(response.tasks_size(), 1000);

  *request.add_tasks() = NewTask("thousand", "nobody");
  const grpc::Status status = client().stub().SubmitTasks(
      ContextWithTimeout().get(), request, &response);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("1001"));
}

TEST_F(Limits, UnknownTasksAreNotFound) {
  for (const char* id : {"4000000000", "99999999999999999", "no-such-id",
                         "18446744073709551616"}) {
    leasehold::v1::GetTaskRequest get;
    get.set_task_id(id);
    Task task;
    EXPECT_EQ(client()
                  .stub()
                  .GetTask(ContextWithTimeout().get(), get, &task)
                  .error_code(),
              grpc::StatusCode::NOT_FOUND)
        << id;
    leasehold::v1::WaitTaskRequest wait;
    wait.set_task_id(id);
    EXPECT_EQ(client()
                  .stub()
                  .WaitTask(ContextWithTimeout().get(), wait, &task)
                  .error_code(),
              grpc::StatusCode::NOT_FOUND)
        << id;
    leasehold::v1::WatchTaskRequest watch;
    watch.set_task_id(id);
    const auto context = ContextWithTimeout();
    const auto stream = client().stub().WatchTask(context.get(), watch);
    EXPECT_FALSE(stream->Read(&task));
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::NOT_FOUND) << id;
  }
}

TEST_F(Limits, MethodsToComeNameThemselves) {
  leasehold::v1::ExplainTaskRequest explain;
  explain.set_task_id("1");
  leasehold::v1::ExplainTaskResponse explained;
  const grpc::Status status = client().stub().ExplainTask(
      ContextWithTimeout().get(), explain, &explained);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(status.error_message(), HasSubstr("ExplainTask"));

  leasehold::v1::GetStatsResponse stats;
  const auto admin = leasehold::v1::AdminService::NewStub(client().channel());
  const grpc::Status admin_status =
      admin->GetStats(ContextWithTimeout().get(), {}, &stats);
  EXPECT_EQ(admin_status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(admin_status.error_message(), HasSubstr("GetStats"));

  leasehold::v1::Batch batch;
  const auto batches = leasehold::v1::BatchService::NewStub(client().channel());
  const grpc::Status batch_status =
      batches->GetBatch(ContextWithTimeout().get(), {}, &batch);
  EXPECT_EQ(batch_status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(batch_status.error_message(), HasSubstr("GetBatch"));
}

TEST_F(Limits, PagesAreChecked) {
  leasehold::v1::ListTasksRequest request;
  leasehold::v1::ListTasksResponse response;
  request.set_page_size(-1);
  grpc::Status status =
      client().stub().ListTasks(ContextWithTimeout().get(), request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "page_size: -1, want >= 0");

  request.set_page_size(1);
  request.set_page_token("made up");
  status =
      client().stub().ListTasks(ContextWithTimeout().get(), request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("page_token"));
}

}  // namespace
}  // namespace leasehold::e2e
