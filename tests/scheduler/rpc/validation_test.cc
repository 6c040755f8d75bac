#include "scheduler/rpc/validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace leasehold::scheduler {
namespace {

using testing::HasSubstr;

constexpr int64_t kNowUs = 1'700'000'000'000'000;
constexpr int64_t kNowSeconds = kNowUs / 1'000'000;
constexpr int64_t kDay = 86'400;

v1::SubmitTaskRequest GoodRequest() {
  v1::SubmitTaskRequest request;
  request.mutable_task()->set_queue("q");
  request.mutable_task()->set_type("t");
  return request;
}

struct Case {
  const char* name;
  std::function<void(v1::Task*)> change;
  const char* mistake;  // Empty: fine.
};

std::function<void(v1::Task*)> Timeout(int64_t seconds, int32_t nanos) {
  return [=](v1::Task* task) {
    task->mutable_attempt_timeout()->set_seconds(seconds);
    task->mutable_attempt_timeout()->set_nanos(nanos);
  };
}
std::function<void(v1::Task*)> Initial(int64_t seconds, int32_t nanos) {
  return [=](v1::Task* task) {
    auto* wait = task->mutable_retry_policy()->mutable_initial_backoff();
    wait->set_seconds(seconds);
    wait->set_nanos(nanos);
  };
}
std::function<void(v1::Task*)> Max(int64_t seconds) {
  return [=](v1::Task* task) {
    task->mutable_retry_policy()->mutable_max_backoff()->set_seconds(seconds);
  };
}
std::function<void(v1::Task*)> Attempts(int n) {
  return [=](v1::Task* task) {
    task->mutable_retry_policy()->set_max_attempts(n);
  };
}
std::function<void(v1::Task*)> Schedule(int entries, int64_t seconds) {
  return [=](v1::Task* task) {
    for (int i = 0; i < entries; ++i) {
      task->mutable_retry_policy()->add_backoff_schedule()->set_seconds(
          seconds);
    }
  };
}
std::function<void(v1::Task*)> Codes(int entries, size_t bytes) {
  return [=](v1::Task* task) {
    for (int i = 0; i < entries; ++i) {
      task->mutable_retry_policy()->add_non_retryable_codes(
          std::string(bytes, 'C'));
    }
  };
}
std::function<void(v1::Task*)> Labels(int pairs, size_t key, size_t value) {
  return [=](v1::Task* task) {
    for (int i = 0; i < pairs; ++i) {
      std::string name = absl::StrCat(i);
      name.resize(std::max(name.size(), key), 'k');
      (*task->mutable_labels())[name] = std::string(value, 'v');
    }
  };
}
std::function<void(v1::Task*)> Data(size_t bytes) {
  return [=](v1::Task* task) {
    task->mutable_payload()->set_data(std::string(bytes, 'x'));
  };
}
std::function<void(v1::Task*)> Json(std::string json) {
  return [=](v1::Task* task) { task->mutable_payload()->set_json(json); };
}
template <class Set>
std::function<void(v1::Task*)> Text(Set set, std::string value) {
  return [=](v1::Task* task) { (task->*set)(value); };
}
std::function<void(v1::Task*)> Queue(std::string value) {
  return [=](v1::Task* task) { task->set_queue(value); };
}
std::function<void(v1::Task*)> Type(std::string value) {
  return [=](v1::Task* task) { task->set_type(value); };
}
std::function<void(v1::Task*)> Priority(int value) {
  return [=](v1::Task* task) { task->set_priority(value); };
}
std::function<void(v1::Task*)> Partition(size_t n) {
  return [=](v1::Task* task) { task->set_partition_key(std::string(n, 'p')); };
}
std::function<void(v1::Task*)> Key(size_t n) {
  return
      [=](v1::Task* task) { task->set_idempotency_key(std::string(n, '\0')); };
}
std::function<void(v1::Task*)> Trace(std::string value) {
  return [=](v1::Task* task) { task->set_traceparent(value); };
}
std::function<void(v1::Task*)> Expire(int64_t seconds, int32_t nanos = 0) {
  return [=](v1::Task* task) {
    task->mutable_expire_time()->set_seconds(seconds);
    task->mutable_expire_time()->set_nanos(nanos);
  };
}
std::function<void(v1::Task*)> At(int64_t schedule, int64_t expire) {
  return [=](v1::Task* task) {
    task->mutable_schedule_time()->set_seconds(schedule);
    if (expire != 0) task->mutable_expire_time()->set_seconds(expire);
  };
}

const std::vector<Case>& Cases() {
  static const auto& cases = *new std::vector<Case>{
      {"QueueAtLimit", Queue(std::string(64, 'q')), ""},
      {"QueueTooLong", Queue(std::string(65, 'q')), "task.queue: "},
      {"QueueAllCharacters", Queue("az09._-"), ""},
      {"QueueEmpty", Queue(""), "task.queue: \"\", want 1-64 of [a-z0-9._-]"},
      {"QueueOddCharacters", Queue("Ä b"),
       "task.queue: \"Ä b\", want 1-64 of [a-z0-9._-]"},
      {"QueueCapital", Queue("Q"), "task.queue: \"Q\""},
      {"QueueNul", Queue(std::string("a\0b", 3)), "task.queue: "},
      {"TypeCapital", Type("Aaz09._-"), ""},
      {"TypeAtLimit", Type(std::string(64, 't')), ""},
      {"TypeTooLong", Type(std::string(65, 't')), "task.type: "},
      {"TypeSlash", Type("a/b"),
       "task.type: \"a/b\", want 1-64 of [A-Za-z0-9._-]"},
      {"PayloadBelowLimit", Data((1 << 20) - 1), ""},
      {"PayloadAtLimit", Data(1 << 20), ""},
      {"PayloadTooLarge", Data((1 << 20) + 1),
       "task.payload.data: 1048577 bytes, want at most 1048576"},
      {"JsonAtLimit", Json("\"" + std::string((1 << 20) - 2, 'x') + "\""), ""},
      {"JsonTooLarge", Json("\"" + std::string((1 << 20) - 1, 'x') + "\""),
       "task.payload.json: 1048577 bytes, want at most 1048576"},
      {"JsonBigNumber", Json("9007199254740993"), ""},
      {"JsonBroken", Json("{\"a\":}"),
       "task.payload.json: invalid JSON at byte 5"},
      {"JsonEmpty", Json(""), "task.payload.json: invalid JSON at byte 0"},
      {"PriorityBelow", Priority(-1), "task.priority: -1, want 0-9"},
      {"PriorityFirst", Priority(0), ""},
      {"PriorityLast", Priority(9), ""},
      {"PriorityAbove", Priority(10), "task.priority: 10, want 0-9"},
      {"PartitionAtLimit", Partition(128), ""},
      {"PartitionTooLong", Partition(129),
       "task.partition_key: 129 bytes, want at most 128"},
      {"KeyAtLimit", Key(191), ""},
      {"KeyTooLong", Key(192),
       "task.idempotency_key: 192 bytes, want at most 191"},
      {"LabelsAtLimit", Labels(16, 128, 128), ""},
      {"LabelsTooMany", Labels(17, 1, 1),
       "task.labels: 17 pairs, want at most 16"},
      {"LabelKeyTooLong", Labels(1, 129, 1), "key of 129 bytes"},
      {"LabelValueTooLong", Labels(1, 1, 129),
       "task.labels[\"0\"]: 129 bytes, want at most 128"},
      {"AttemptsUnset", Attempts(0), ""},
      {"AttemptsNegative", Attempts(-1),
       "task.retry_policy.max_attempts: -1, want 1-1000"},
      {"AttemptsAtLimit", Attempts(1000), ""},
      {"AttemptsTooMany", Attempts(1001), "max_attempts: 1001"},
      {"InitialAtLeast", Initial(0, 10'000'000), ""},
      {"InitialTooShort", Initial(0, 9'999'999), "initial_backoff: 9.999999ms"},
      {"InitialNegative", Initial(-1, 0), "initial_backoff: -1s"},
      {"InitialAtMost", Initial(kDay, 0), ""},
      {"InitialTooLong", Initial(kDay, 1), "initial_backoff: 24h"},
      {"InitialOutOfRange", Initial(1, -1),
       "initial_backoff: {seconds: 1 nanos: -1}"},
      {"MaxAtMost", Max(7 * kDay), ""},
      {"MaxTooLong", Max(7 * kDay + 1), "max_backoff: 168h1s"},
      {"MaxBelowInitial",
       [](v1::Task* task) {
         Initial(10, 0)(task);
         Max(9)(task);
       },
       "max_backoff: 9s, want at least initial_backoff: 10s"},
      {"ScheduleAtLimit", Schedule(20, 7 * kDay), ""},
      {"ScheduleTooMany", Schedule(21, 1), "backoff_schedule: 21 waits"},
      {"ScheduleTooLong", Schedule(1, 7 * kDay + 1), "backoff_schedule[0]: "},
      {"ScheduleNegative", Schedule(1, -1), "backoff_schedule[0]: -1s"},
      {"CodesAtLimit", Codes(50, 64), ""},
      {"CodesTooMany", Codes(51, 1), "non_retryable_codes: 51 codes"},
      {"CodeTooLong", Codes(1, 65), "non_retryable_codes[0]: "},
      {"CodeEmpty", Codes(1, 0), "non_retryable_codes[0]: \"\""},
      {"TimeoutAtLeast", Timeout(0, 100'000'000), ""},
      {"TimeoutTooShort", Timeout(0, 99'999'999),
       "task.attempt_timeout: 99.999999ms, want 100ms-168h"},
      {"TimeoutAtMost", Timeout(7 * kDay, 0), ""},
      {"TimeoutTooLong", Timeout(7 * kDay, 1000), "task.attempt_timeout: "},
      {"TimeoutOverflows", Timeout(int64_t{1} << 62, 0),
       "task.attempt_timeout: {seconds: 4611686018427387904 nanos: 0}"},
      {"ScheduleInThePast", At(1, 0), ""},
      {"ScheduleBefore1970", At(-1, 0), ""},
      {"ScheduleOverflows", At(int64_t{1} << 62, 0), "task.schedule_time: {"},
      {"ExpireNow", Expire(kNowSeconds), "task.expire_time: "},
      {"ExpireNext", Expire(kNowSeconds, 1000), ""},
      {"ExpireBadNanos", Expire(kNowSeconds + 1, -1), "task.expire_time: {"},
      {"ExpireAtSchedule", At(kNowSeconds + 5, kNowSeconds + 5),
       "want a time after schedule_time"},
      {"ExpireAfterSchedule", At(kNowSeconds + 5, kNowSeconds + 6), ""},
      {"TraceAtLimit", Trace(std::string(128, '0')), ""},
      {"TraceTooLong", Trace(std::string(129, '0')), "task.traceparent: "},
      {"TraceLineBreak", Trace("a\nb"), "task.traceparent: \"a\\x0ab\""},
  };
  return cases;
}

class SubmitTaskTable : public testing::TestWithParam<Case> {};

TEST_P(SubmitTaskTable, IsChecked) {
  v1::SubmitTaskRequest request = GoodRequest();
  GetParam().change(request.mutable_task());

  const absl::Status status = ValidateSubmitTask(request, kNowUs);

  const std::string mistake = GetParam().mistake;
  if (mistake.empty()) {
    EXPECT_TRUE(status.ok()) << status;
  } else {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(mistake));
    EXPECT_LT(status.message().size(), 400u);
  }
}

INSTANTIATE_TEST_SUITE_P(Fields, SubmitTaskTable, testing::ValuesIn(Cases()),
                         [](const auto& info) {
                           return std::string(info.param.name);
                         });

TEST(ValidationTest, NamesAllMistakesAtOnce) {
  v1::SubmitTaskRequest request = GoodRequest();
  request.mutable_task()->set_queue("Ä b");
  request.mutable_task()->set_priority(12);

  EXPECT_EQ(ValidateSubmitTask(request, kNowUs).message(),
            "task.queue: \"Ä b\", want 1-64 of [a-z0-9._-]; "
            "task.priority: 12, want 0-9");
}

TEST(ValidationTest, CountsTheMistakesPastTheTenth) {
  v1::SubmitTasksRequest request;
  for (int i = 0; i < 1000; ++i) request.add_tasks()->set_type("t");

  const absl::Status status = ValidateSubmitTasks(request, kNowUs);

  EXPECT_THAT(std::string(status.message()), HasSubstr("tasks[9].queue: "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("; and 990 more"));
}

TEST(ValidationTest, IgnoresOutputOnlyFields) {
  v1::SubmitTaskRequest request = GoodRequest();
  request.mutable_task()->set_id(std::string(1000, 'x'));
  request.mutable_task()->set_state(static_cast<v1::TaskState>(99));
  request.mutable_task()->mutable_create_time()->set_nanos(-5);

  EXPECT_TRUE(ValidateSubmitTask(request, kNowUs).ok());
}

TEST(ValidationTest, WantsATask) {
  EXPECT_EQ(ValidateSubmitTask({}, kNowUs).message(),
            "task: not set, want a task");
}

TEST(ValidationTest, TakesOneToAThousandTasks) {
  v1::SubmitTasksRequest request;
  EXPECT_EQ(ValidateSubmitTasks(request, kNowUs).message(),
            "tasks: 0 tasks, want 1-1000");
  for (int i = 0; i < 1000; ++i) *request.add_tasks() = GoodRequest().task();
  EXPECT_TRUE(ValidateSubmitTasks(request, kNowUs).ok());
  *request.add_tasks() = GoodRequest().task();
  EXPECT_EQ(ValidateSubmitTasks(request, kNowUs).message(),
            "tasks: 1001 tasks, want 1-1000");
}

TEST(ValidationTest, TakesThreeMebibytesInOneCallAndNotAByteMore) {
  v1::SubmitTasksRequest request;
  for (int i = 0; i < 3; ++i) {
    v1::Task* task = request.add_tasks();
    *task = GoodRequest().task();
    task->mutable_payload()->set_data(std::string((1 << 20) - 64, 'x'));
  }
  const size_t room = (3u << 20) - request.ByteSizeLong();
  // Long enough for its length to take two bytes already.
  request.mutable_tasks(0)->mutable_payload()->mutable_data()->append(48, 'x');
  request.mutable_tasks(1)->mutable_payload()->mutable_data()->append(48, 'x');
  request.mutable_tasks(2)->mutable_payload()->mutable_data()->append(room - 96,
                                                                      'x');
  ASSERT_EQ(request.ByteSizeLong(), 3u << 20);
  EXPECT_TRUE(ValidateSubmitTasks(request, kNowUs).ok());

  request.mutable_tasks(0)->mutable_payload()->mutable_data()->append("x");

  EXPECT_EQ(ValidateSubmitTasks(request, kNowUs).message(),
            "tasks: 3145729 bytes, want at most 3145728 in one call");
}

TEST(ValidationTest, ChecksFiltersOfAList) {
  v1::ListTasksRequest request;
  EXPECT_TRUE(ValidateListTasks(request).ok());
  request.set_page_size(-1);
  request.set_queue("Q");
  request.set_type("a b");
  request.add_states(v1::TASK_STATE_UNSPECIFIED);
  request.add_states(static_cast<v1::TaskState>(99));
  request.set_batch_id("x");
  request.set_partition_key(std::string(129, 'p'));
  request.mutable_create_time_from()->set_seconds(10);
  request.mutable_create_time_until()->set_seconds(10);

  const std::string message(ValidateListTasks(request).message());

  for (const char* part :
       {"page_size: -1, want >= 0", "queue: \"Q\"", "type: \"a b\"",
        "states[0]: 0, want a state", "states[1]: 99", "batch_id: \"x\"",
        "partition_key: 129 bytes", "want a time after create_time_from"}) {
    EXPECT_THAT(message, HasSubstr(part));
  }
}

TEST(ValidationTest, WaitsForTenMinutesAtMost) {
  v1::WaitTaskRequest request;
  EXPECT_TRUE(ValidateWaitTask(request).ok());
  request.mutable_timeout()->set_seconds(600);
  EXPECT_TRUE(ValidateWaitTask(request).ok());
  request.mutable_timeout()->set_nanos(1000);
  EXPECT_FALSE(ValidateWaitTask(request).ok());
  request.mutable_timeout()->set_seconds(-1);
  request.mutable_timeout()->set_nanos(0);
  EXPECT_EQ(ValidateWaitTask(request).message(), "timeout: -1s, want 0-10m");
}

TEST(ValidationTest, MalformedIdsAreNotFound) {
  EXPECT_EQ(*ReadTaskId("9007199254740993"), 9007199254740993);
  for (const char* id : {"", "x", "0", "-1", "01", "9223372036854775808"}) {
    EXPECT_EQ(ReadTaskId(id).status(), absl::NotFoundError(absl::StrCat(
                                           "task \"", id, "\": not found")));
  }
}

}  // namespace
}  // namespace leasehold::scheduler
