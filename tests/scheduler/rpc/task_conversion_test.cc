#include "scheduler/rpc/task_conversion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "scheduler/rpc/proto_time.h"

namespace leasehold::scheduler {
namespace {

using google::protobuf::TextFormat;

constexpr ReadOptions kAll{true, true, true};

v1::Task Parse(const std::string& text) {
  v1::Task task;
  EXPECT_TRUE(TextFormat::ParseFromString(text, &task));
  return task;
}

const char kSpec[] = R"(
  queue: "q" type: "Echo" payload { json: "{\"n\": 9007199254740993}" }
  priority: 0 partition_key: "p\000x" idempotency_key: "ключ"
  labels { key: "a" value: "1" } labels { key: "b" value: "" }
  retry_policy {
    max_attempts: 7 initial_backoff { nanos: 10000000 }
    max_backoff { seconds: 604800 }
    backoff_schedule { seconds: 1 } backoff_schedule { }
    non_retryable_codes: "HTTP_404"
  }
  attempt_timeout { nanos: 100000000 } schedule_time { seconds: 5 nanos: 1000 }
  expire_time { seconds: 1800000000 } traceparent: "00-ab"
)";

TEST(TaskConversionTest, EverythingThatAClientSentComesBack) {
  const v1::Task sent = Parse(kSpec);
  TaskRecord record;
  record.spec = ToTaskSpec(sent);
  record.id = 9007199254740993;

  v1::Task shown = ToProto(record, kAll);

  EXPECT_EQ(shown.id(), "9007199254740993");
  shown.clear_id();
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(shown, sent))
      << shown.DebugString();
}

TEST(TaskConversionTest, UnsetFieldsTakeTheirDefaults) {
  const TaskSpec spec = ToTaskSpec(Parse("queue: 'q' type: 't'"));
  EXPECT_EQ(spec.priority, 5);
  EXPECT_EQ(spec.retry_policy, RetryPolicySpec{});
  EXPECT_EQ(spec.payload, Payload{});
  EXPECT_EQ(spec.schedule_us, 0);
  EXPECT_EQ(ToTaskSpec(Parse("schedule_time { seconds: -1 }")).schedule_us, 0);
}

TEST(TaskConversionTest, WaitingRetryShowsItsErrorAndItsNextTime) {
  TaskRecord record;
  record.id = 1;
  record.create_us = 1'000'000;
  record.live = LiveTask{};
  record.live->state = TaskState::kRetrying;
  record.live->run_us = 8'000'000;
  record.live->attempt = 2;
  record.live->state_us = 3'000'000;
  record.live->lease_expire_us = 2'000'000;
  record.last_error = TaskError{ErrorClass::kRetryable, "E", "boom", 0};

  const v1::Task task = ToProto(record, kAll);

  EXPECT_EQ(task.state(), v1::TASK_STATE_RETRYING);
  EXPECT_EQ(task.schedule_time().seconds(), 8);
  EXPECT_EQ(task.update_time().seconds(), 3);
  EXPECT_EQ(task.error().message(), "boom");
  EXPECT_FALSE(task.has_lease_expire_time());
}

TEST(TaskConversionTest, LeasedTaskShowsItsLease) {
  TaskRecord record;
  record.live = LiveTask{};
  record.live->phase = Phase::kLeased;
  record.live->state = TaskState::kRunning;
  record.live->lease_expire_us = 2'000'000;
  record.live->cancel_expire_us = 1;
  record.executor_id = "e1";
  record.progress = Progress{1, 2, "half"};

  const v1::Task task = ToProto(record, kAll);

  EXPECT_EQ(task.lease_expire_time().seconds(), 2);
  EXPECT_TRUE(task.cancel_requested());
  EXPECT_EQ(task.executor_id(), "e1");
  EXPECT_EQ(task.progress().message(), "half");
}

TEST(TaskConversionTest, EndedTaskShowsHowItEnded) {
  TaskRecord record;
  record.ended = EndedTask{};
  record.ended->state = TaskState::kFailed;
  record.ended->reason = FailureReason::kPoisoned;
  record.ended->error = TaskError{ErrorClass::kLeaseExpired, "POISONED", "", 0};
  record.ended->finish_us = 4'000'000;
  record.attempts.push_back({1, 1, 5, 0, 3'000'000, {}});
  record.attempt_executor_ids = {"e5"};

  const v1::Task task = ToProto(record, kAll);

  EXPECT_EQ(task.failure_reason(), v1::FAILURE_REASON_POISONED);
  EXPECT_EQ(task.error().code(), "POISONED");
  EXPECT_EQ(task.finish_time().seconds(), 4);
  ASSERT_EQ(task.attempts_size(), 1);
  EXPECT_EQ(task.attempts(0).executor_id(), "e5");
  EXPECT_FALSE(task.attempts(0).has_start_time());
}

TEST(TaskConversionTest, ShowsPayloadAndResultOnlyWhenTheyWereRead) {
  TaskRecord record;
  record.spec.payload = {PayloadKind::kJson, ""};
  record.ended = EndedTask{};
  record.ended->state = TaskState::kSucceeded;
  record.ended->result = {PayloadKind::kData, ""};

  const v1::Task task = ToProto(record, ReadOptions{});

  EXPECT_FALSE(task.has_payload());
  EXPECT_FALSE(task.has_result());
  EXPECT_TRUE(ToProto(record, kAll).has_result());
}

TEST(TaskConversionTest, EmptyDataIsAPayload) {
  const TaskSpec spec = ToTaskSpec(Parse("payload { data: '' }"));
  EXPECT_EQ(spec.payload.kind, PayloadKind::kData);
}

TEST(TaskConversionTest, StatesOfAFilterAreASet) {
  v1::ListTasksRequest request;
  request.add_states(v1::TASK_STATE_FAILED);
  request.add_states(v1::TASK_STATE_PENDING);
  request.add_states(v1::TASK_STATE_FAILED);
  EXPECT_THAT(ToListFilter(request).states,
              testing::ElementsAre(TaskState::kPending, TaskState::kFailed));
}

TEST(ProtoTimeTest, RoundTripsAndStaysInRange) {
  for (const int64_t micros :
       {int64_t{-62'135'596'800'000'000}, int64_t{-1}, int64_t{0}, int64_t{1},
        int64_t{253'402'300'799'999'999}}) {
    google::protobuf::Timestamp time;
    SetMicros(micros, &time);
    EXPECT_EQ(ToMicros(time), micros);
  }
  google::protobuf::Timestamp time;
  time.set_seconds(253'402'300'800);
  EXPECT_EQ(ToMicros(time), std::nullopt);
  for (const int64_t micros :
       {int64_t{-315'576'000'000'999'999}, int64_t{-1'500'000}, int64_t{1}}) {
    google::protobuf::Duration duration;
    SetMicros(micros, &duration);
    EXPECT_EQ(ToMicros(duration), micros);
  }
  google::protobuf::Duration duration;
  duration.set_seconds(-1);
  duration.set_nanos(1);
  EXPECT_EQ(ToMicros(duration), std::nullopt);
}

}  // namespace
}  // namespace leasehold::scheduler
