// Cancel, pause, resume and retry of tasks, pause and resume of queues, over a
// real gRPC server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "leasehold/v1/admin_service.grpc.pb.h"
#include "tests/scheduler/rpc/fakes.h"

namespace leasehold::scheduler {
namespace {

using ::testing::StartsWith;

using ControlCallsTest = GrpcServerTest;

TEST_F(ControlCallsTest, ControlCallsSayWhatTheyWantOfWhichTask) {
  TaskRecord record;
  record.id = 42;
  record.live = LiveTask();
  record.live->state = TaskState::kPaused;
  control.answer = record;
  grpc::ClientContext c1, c2, c3, c4;
  v1::Task task;

  v1::CancelTaskRequest cancel;
  cancel.set_task_id("42");
  cancel.set_reason("no longer wanted");
  EXPECT_TRUE(tasks->CancelTask(&c1, cancel, &task).ok());
  EXPECT_EQ(control.last.action, ControlAction::kCancel);
  EXPECT_EQ(control.last.id, 42);
  EXPECT_EQ(control.last.reason, "no longer wanted");
  EXPECT_EQ(task.id(), "42");
  EXPECT_EQ(task.state(), v1::TASK_STATE_PAUSED);

  v1::PauseTaskRequest pause;
  pause.set_task_id("42");
  EXPECT_TRUE(tasks->PauseTask(&c2, pause, &task).ok());
  EXPECT_EQ(control.last.action, ControlAction::kPause);
  v1::ResumeTaskRequest resume;
  resume.set_task_id("42");
  EXPECT_TRUE(tasks->ResumeTask(&c3, resume, &task).ok());
  EXPECT_EQ(control.last.action, ControlAction::kResume);
  v1::RetryTaskRequest retry;
  retry.set_task_id("42");
  EXPECT_TRUE(tasks->RetryTask(&c4, retry, &task).ok());
  EXPECT_EQ(control.last.action, ControlAction::kRetry);
}

TEST_F(ControlCallsTest, ControlCallsAreCheckedAndTheirErrorsKept) {
  grpc::ClientContext c1, c2, c3;
  v1::Task task;
  v1::CancelTaskRequest cancel;
  cancel.set_task_id("42");
  cancel.set_reason(std::string(257, 'x'));
  const grpc::Status too_long = tasks->CancelTask(&c1, cancel, &task);
  EXPECT_EQ(too_long.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(too_long.error_message(), StartsWith("reason: "));

  cancel.set_reason("");
  cancel.set_task_id("042");
  EXPECT_EQ(tasks->CancelTask(&c2, cancel, &task).error_code(),
            grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(control.last.id, 0) << "the engine was not asked";

  control.answer = absl::FailedPreconditionError("task 1: is RUNNING");
  v1::PauseTaskRequest pause;
  pause.set_task_id("1");
  const grpc::Status status = tasks->PauseTask(&c3, pause, &task);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(status.error_message(), "task 1: is RUNNING");
}

TEST_F(ControlCallsTest, QueuesArePausedAndResumedByName) {
  auto admin = v1::AdminService::NewStub(channel);
  queues.answer = QueueRow{};
  queues.answer->name = "emails";
  queues.answer->paused = true;
  grpc::ClientContext c1, c2, c3, c4;
  v1::Queue queue;
  v1::PauseQueueRequest pause;
  pause.set_name("emails");

  EXPECT_TRUE(admin->PauseQueue(&c1, pause, &queue).ok());
  EXPECT_EQ(queues.last, "emails");
  EXPECT_TRUE(queues.paused);
  EXPECT_EQ(queue.name(), "emails");
  EXPECT_TRUE(queue.paused());
  v1::ResumeQueueRequest resume;
  resume.set_name("emails");
  EXPECT_TRUE(admin->ResumeQueue(&c2, resume, &queue).ok());
  EXPECT_FALSE(queues.paused);

  pause.set_name("E mails");
  const grpc::Status bad = admin->PauseQueue(&c3, pause, &queue);
  EXPECT_EQ(bad.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(bad.error_message(), "name: \"E mails\", want 1-64 of [a-z0-9._-]");
  queues.answer = absl::NotFoundError("queue \"none\": not found");
  pause.set_name("none");
  EXPECT_EQ(admin->PauseQueue(&c4, pause, &queue).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

}  // namespace
}  // namespace leasehold::scheduler
