#include "scheduler/rpc/session_conversion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <variant>

#include "common/text/utf8.h"
#include "scheduler/domain/limits.h"

namespace leasehold::scheduler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::SizeIs;

absl::StatusOr<ExecutorMessage> Read(v1::ExecutorMessage message) {
  return ReadExecutorMessage(&message, "ipv4:127.0.0.1:5");
}

v1::ExecutorMessage GoodHello() {
  v1::ExecutorMessage message;
  v1::Hello* hello = message.mutable_hello();
  hello->set_executor_id("pod-1");
  hello->set_incarnation("abc");
  hello->set_slots(2);
  hello->set_max_leases(4);
  v1::Subscription* subscription = hello->add_subscriptions();
  subscription->set_queue("q");
  subscription->add_types("echo");
  return message;
}

void SetLease(v1::LeaseRef* lease, const char* id = "7", int64_t number = 3) {
  lease->set_task_id(id);
  lease->set_lease_number(number);
}

// The one outcome of a results message with `result` in it.
LeaseOutcome ReadOne(std::function<void(v1::TaskResult*)> fill) {
  v1::ExecutorMessage message;
  v1::TaskResult* result = message.mutable_results()->add_results();
  SetLease(result->mutable_lease());
  fill(result);
  auto read = Read(std::move(message));
  EXPECT_TRUE(read.ok()) << read.status();
  if (!read.ok()) return {};
  auto& outcomes = std::get<OutcomesMessage>(*read).outcomes;
  EXPECT_EQ(outcomes.size(), 1u);
  return outcomes.at(0);
}

TEST(SessionConversionTest, ReadsHello) {
  v1::ExecutorMessage message = GoodHello();
  message.mutable_hello()->add_subscriptions()->CopyFrom(
      message.hello().subscriptions(0));
  (*message.mutable_hello()->mutable_labels())["zone"] = "a";
  SetLease(message.mutable_hello()->add_held_leases());

  const auto read = Read(message);

  ASSERT_TRUE(read.ok()) << read.status();
  const auto& hello = std::get<HelloMessage>(*read);
  EXPECT_EQ(hello.executor_id, "pod-1");
  EXPECT_EQ(hello.address, "ipv4:127.0.0.1:5");
  EXPECT_THAT(hello.lanes, ElementsAre(Pair("q", "echo")));
  EXPECT_THAT(hello.labels, ElementsAre(Pair("zone", "a")));
  EXPECT_THAT(hello.held_leases, ElementsAre(LeaseRef{7, 3}));
}

struct HelloCase {
  const char* name;
  std::function<void(v1::Hello*)> change;
  const char* mistake;  // Empty: fine.
};
class HelloTable : public testing::TestWithParam<HelloCase> {};

TEST_P(HelloTable, IsChecked) {
  v1::ExecutorMessage message = GoodHello();
  GetParam().change(message.mutable_hello());

  const auto read = Read(message);

  if (GetParam().mistake[0] == '\0') {
    EXPECT_TRUE(read.ok()) << read.status();
  } else {
    EXPECT_TRUE(absl::IsInvalidArgument(read.status()));
    EXPECT_THAT(std::string(read.status().message()),
                HasSubstr(GetParam().mistake));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Fields, HelloTable,
    testing::Values(
        HelloCase{
            "IdAtLimit",
            [](v1::Hello* h) { h->set_executor_id(std::string(128, 'e')); },
            ""},
        HelloCase{
            "IdTooLong",
            [](v1::Hello* h) { h->set_executor_id(std::string(129, 'e')); },
            "hello.executor_id: "},
        HelloCase{"IdEmpty", [](v1::Hello* h) { h->set_executor_id(""); },
                  "hello.executor_id: \"\""},
        HelloCase{"IdLineBreak",
                  [](v1::Hello* h) { h->set_executor_id("a\n"); },
                  "hello.executor_id: \"a\\x0a\""},
        HelloCase{"IncarnationEmpty",
                  [](v1::Hello* h) { h->set_incarnation(""); },
                  "hello.incarnation: "},
        HelloCase{"NoSlots", [](v1::Hello* h) { h->set_slots(0); },
                  "hello.slots: 0"},
        HelloCase{"TooManySlots",
                  [](v1::Hello* h) {
                    h->set_slots(10'001);
                    h->set_max_leases(10'001);
                  },
                  "hello.slots: 10001"},
        HelloCase{"AsManyLeasesAsSlots",
                  [](v1::Hello* h) { h->set_max_leases(2); }, ""},
        HelloCase{"FewerLeasesThanSlots",
                  [](v1::Hello* h) { h->set_max_leases(1); },
                  "hello.max_leases: 1, want at least slots: 2"},
        HelloCase{"NoSubscription",
                  [](v1::Hello* h) { h->clear_subscriptions(); },
                  "hello.subscriptions: 0 pairs"},
        HelloCase{
            "NoType",
            [](v1::Hello* h) { h->mutable_subscriptions(0)->clear_types(); },
            "hello.subscriptions[0].types: empty"},
        HelloCase{
            "OddQueue",
            [](v1::Hello* h) { h->mutable_subscriptions(0)->set_queue("Q"); },
            "hello.subscriptions[0].queue: \"Q\""},
        HelloCase{"OddType",
                  [](v1::Hello* h) {
                    h->mutable_subscriptions(0)->set_types(0, "a b");
                  },
                  "hello.subscriptions[0].types[0]: \"a b\""},
        HelloCase{"OddHeldLease",
                  [](v1::Hello* h) { SetLease(h->add_held_leases(), "x", 0); },
                  "hello.held_leases[0].task_id: \"x\""}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(SessionConversionTest, NamesFewLeasesOfATask) {
  for (const int leases : {8, 9}) {
    v1::ExecutorMessage message;
    for (int i = 1; i <= leases; ++i) {
      SetLease(message.mutable_heartbeat()->add_leases()->mutable_lease(), "7",
               i);
    }

    const auto read = ReadExecutorMessage(&message, "address");

    EXPECT_EQ(read.ok(), leases == 8) << read.status();
    if (!read.ok()) {
      EXPECT_THAT(std::string(read.status().message()),
                  HasSubstr("heartbeat.leases: more than 8 leases of task 7"));
    }
  }
}

TEST(SessionConversionTest, NamesNoMoreLeasesThanAnExecutorCanHold) {
  for (const int leases : {20'000, 20'001}) {
    v1::ExecutorMessage message;
    for (int i = 1; i <= leases; ++i) {
      SetLease(message.mutable_heartbeat()->add_leases()->mutable_lease(),
               std::to_string(i).c_str(), 1);
    }

    EXPECT_EQ(ReadExecutorMessage(&message, "address").ok(), leases == 20'000);
  }
}

TEST(SessionConversionTest, TakesResultsUpToAMebibyte) {
  for (const size_t bytes : {kMaxResultBytes - 1, kMaxResultBytes}) {
    const LeaseOutcome outcome = ReadOne([&](v1::TaskResult* result) {
      result->mutable_result()->set_data(std::string(bytes, 'x'));
    });
    EXPECT_FALSE(outcome.refused);
    EXPECT_THAT(std::get<Payload>(outcome.outcome).bytes, SizeIs(bytes));
  }
}

TEST(SessionConversionTest, TooLargeResultFailsItsOwnTaskForGood) {
  // Also one that is larger than a message may be.
  for (const size_t bytes : {kMaxResultBytes + 1, kMaxStreamMessageBytes * 2}) {
    const LeaseOutcome outcome = ReadOne([&](v1::TaskResult* result) {
      result->mutable_result()->set_data(std::string(bytes, 'x'));
    });
    EXPECT_TRUE(outcome.refused);
    const auto& error = std::get<TaskError>(outcome.outcome);
    EXPECT_EQ(error.error_class, ErrorClass::kNonRetryable);
    EXPECT_EQ(error.code, "RESULT_TOO_LARGE");
    EXPECT_THAT(error.message, HasSubstr("want at most 1048576"));
  }
}

TEST(SessionConversionTest, ResultThatIsNotJsonIsRefused) {
  const LeaseOutcome outcome = ReadOne([](v1::TaskResult* result) {
    result->mutable_result()->set_json("{\"a\":}");
  });
  EXPECT_TRUE(outcome.refused);
  EXPECT_EQ(std::get<TaskError>(outcome.outcome).code, "INVALID_RESULT");
}

TEST(SessionConversionTest, KeepsDigitsOfJsonResults) {
  const LeaseOutcome outcome = ReadOne([](v1::TaskResult* result) {
    result->mutable_result()->set_json("9007199254740993");
  });
  EXPECT_EQ(std::get<Payload>(outcome.outcome),
            (Payload{PayloadKind::kJson, "9007199254740993"}));
}

TEST(SessionConversionTest, ResultWithoutOutcomeIsRefusedNotASuccess) {
  const LeaseOutcome outcome = ReadOne([](v1::TaskResult*) {});
  EXPECT_TRUE(outcome.refused);
  EXPECT_EQ(std::get<TaskError>(outcome.outcome).code, "INVALID_RESULT");
}

TEST(SessionConversionTest, EmptyResultIsASuccess) {
  const LeaseOutcome outcome =
      ReadOne([](v1::TaskResult* result) { result->mutable_result(); });
  EXPECT_FALSE(outcome.refused);
  EXPECT_EQ(std::get<Payload>(outcome.outcome), Payload{});
}

TEST(SessionConversionTest, CutsErrorTextsOnCharacterBoundaries) {
  const LeaseOutcome outcome = ReadOne([](v1::TaskResult* result) {
    v1::TaskError* error = result->mutable_error();
    // A 4-byte emoji across each limit, NULs in between.
    error->set_code(std::string(62, 'C') + "\xF0\x9F\x98\x80");
    error->set_message(std::string(4094, '\0') + "\xF0\x9F\x98\x80");
    error->set_error_class(static_cast<v1::ErrorClass>(77));
    error->mutable_retry_after()->set_seconds(int64_t{1} << 62);
  });
  const auto& error = std::get<TaskError>(outcome.outcome);
  EXPECT_FALSE(outcome.refused);
  EXPECT_EQ(error.code, std::string(62, 'C'));
  EXPECT_THAT(error.message, SizeIs(4094));
  EXPECT_EQ(error.error_class, ErrorClass::kRetryable);
  EXPECT_EQ(error.retry_after_us, 0);
}

TEST(SessionConversionTest, CapsRetryAfterAndReleaseDelay) {
  const LeaseOutcome outcome = ReadOne([](v1::TaskResult* result) {
    result->mutable_error()->mutable_retry_after()->set_seconds(1'000'000);
  });
  EXPECT_EQ(std::get<TaskError>(outcome.outcome).retry_after_us,
            kMaxRetryAfterUs);

  v1::ExecutorMessage message;
  v1::LeaseRelease* release = message.mutable_released()->add_leases();
  SetLease(release->mutable_lease());
  release->set_reason(static_cast<v1::ReleaseReason>(99));
  release->mutable_delay()->set_seconds(1'000'000);
  const auto read = Read(message);
  ASSERT_TRUE(read.ok());
  const auto& released = std::get<Release>(
      std::get<OutcomesMessage>(*read).outcomes.at(0).outcome);
  EXPECT_EQ(released.reason, ReleaseReason::kUnspecified);
  EXPECT_EQ(released.delay_us, kMaxReleaseDelayUs);
}

TEST(SessionConversionTest, ReleaseWithoutDelayLeavesItToItsReason) {
  v1::ExecutorMessage message;
  SetLease(message.mutable_released()->add_leases()->mutable_lease());
  const auto read = Read(message);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(
      std::get<Release>(std::get<OutcomesMessage>(*read).outcomes.at(0).outcome)
          .delay_us,
      std::nullopt);
}

TEST(SessionConversionTest, HeartbeatCutsProgressAndDropsLargeCheckpoints) {
  v1::ExecutorMessage message;
  message.mutable_heartbeat()->set_sequence(5);
  for (const size_t bytes : {kMaxCheckpointBytes, kMaxCheckpointBytes + 1}) {
    v1::LeaseStatus* status = message.mutable_heartbeat()->add_leases();
    SetLease(status->mutable_lease());
    status->set_checkpoint(std::string(bytes, 'c'));
    status->mutable_progress()->set_message(std::string(255, 'm') + "ä");
  }

  const auto read = Read(message);

  ASSERT_TRUE(read.ok()) << read.status();
  const auto& heartbeat = std::get<HeartbeatMessage>(*read);
  EXPECT_EQ(heartbeat.sequence, 5);
  ASSERT_THAT(heartbeat.leases, SizeIs(2));
  EXPECT_THAT(*heartbeat.leases[0].checkpoint, SizeIs(kMaxCheckpointBytes));
  EXPECT_EQ(heartbeat.leases[1].checkpoint, std::nullopt);
  EXPECT_EQ(heartbeat.leases[0].progress->message, std::string(255, 'm'));
}

TEST(SessionConversionTest, NamesTheMessageThatBreaksTheProtocol) {
  v1::ExecutorMessage message;
  SetLease(message.mutable_accepted()->add_leases(), "x", 0);
  EXPECT_EQ(Read(message).status().message(),
            "accepted.leases[0].task_id: \"x\", want the id of a task; "
            "accepted.leases[0].lease_number: 0, want >= 1");

  message.mutable_row_results();
  EXPECT_THAT(std::string(Read(message).status().message()),
              HasSubstr("row_results: "));

  message.mutable_heartbeat();
  for (int i = 0; i < 60; ++i) {
    message.mutable_heartbeat()->add_leases()->set_checkpoint(
        std::string(kMaxCheckpointBytes, 'c'));
  }
  EXPECT_THAT(std::string(Read(message).status().message()),
              HasSubstr("want at most 3670016"));
}

TEST(SessionConversionTest, SplitsLeasesBelowTheLimitOfAMessage) {
  LeasesMessage leases;
  leases.heartbeat_sequence = 9;
  for (int i = 0; i < 200; ++i) {
    LeaseMessage& lease = leases.leases.emplace_back();
    lease.lease = {i + 1, 1};
    lease.spec.payload = {PayloadKind::kData, std::string(50'000, 'x')};
    lease.checkpoint = std::string(kMaxCheckpointBytes, 'c');
  }
  LeaseMessage& largest = leases.leases.emplace_back();
  largest.lease = {201, 1};
  largest.spec.payload = {PayloadKind::kData, std::string(1 << 20, 'x')};

  const auto messages = ToProto(std::move(leases));

  int64_t next = 1;
  EXPECT_GT(messages.size(), 5u);
  for (const v1::SchedulerMessage& message : messages) {
    EXPECT_LE(message.ByteSizeLong(), kMaxStreamMessageBytes);
    EXPECT_EQ(message.leases().heartbeat_sequence(), 9);
    for (const v1::Lease& lease : message.leases().leases()) {
      EXPECT_EQ(lease.lease().task_id(), std::to_string(next++));
    }
  }
  EXPECT_EQ(next, 202);
}

TEST(SessionConversionTest, SplitsLongListsOfAcks) {
  ReportAcksMessage acks;
  HeartbeatAckMessage heartbeat;
  heartbeat.sequence = 4;
  for (int64_t i = 1; i <= 120'000; ++i) {
    acks.acks.push_back(
        {{INT64_MAX - i, INT64_MAX}, ReportDisposition::kStale});
    heartbeat.lost.push_back({INT64_MAX - i, INT64_MAX});
    heartbeat.cancelled.push_back({INT64_MAX - i, INT64_MAX});
  }
  int total = 0;
  for (const auto& message : ToProto(acks)) {
    EXPECT_LE(message.ByteSizeLong(), kMaxStreamMessageBytes);
    total += message.report_acks().acks_size();
  }
  for (const auto& message : ToProto(heartbeat)) {
    EXPECT_LE(message.ByteSizeLong(), kMaxStreamMessageBytes);
    EXPECT_EQ(message.heartbeat_ack().sequence(), 4);
    total += message.heartbeat_ack().lost_size() +
             message.heartbeat_ack().cancelled_size();
  }
  EXPECT_EQ(total, 360'000);
}

TEST(SessionConversionTest, LeaseCarriesEverythingTheHandlerNeeds) {
  LeasesMessage leases;
  LeaseMessage& lease = leases.leases.emplace_back();
  lease.lease = {7, 3};
  lease.spec.queue = "q";
  lease.spec.type = "echo";
  lease.spec.payload = {PayloadKind::kJson, "{}"};
  lease.spec.labels = {{"a", "b"}};
  lease.spec.expire_us = 5'000'001;
  lease.attempt = 2;
  lease.max_attempts = 4;
  lease.lease_duration_us = 15'000'000;
  lease.attempt_timeout_us = 100'000;
  lease.checkpoint = "c";

  const auto messages = ToProto(std::move(leases));

  ASSERT_THAT(messages, SizeIs(1));
  EXPECT_THAT(messages[0].ShortDebugString(),
              HasSubstr("lease { task_id: \"7\" lease_number: 3 } queue: \"q\" "
                        "type: \"echo\" payload { json: \"{}\" } attempt: 2 "
                        "max_attempts: 4 lease_duration { seconds: 15 } "
                        "attempt_timeout { nanos: 100000000 } expire_time { "
                        "seconds: 5 nanos: 1000 }"));
  EXPECT_EQ(messages[0].leases().leases(0).checkpoint(), "c");
}

TEST(SessionConversionTest, EmptyListsSayNothing) {
  EXPECT_TRUE(ToProto(ReportAcksMessage{}).empty());
  EXPECT_TRUE(ToProto(LeasesMessage{}).empty());
  EXPECT_EQ(ToProto(HeartbeatAckMessage{}).size(), 1u);
}

}  // namespace
}  // namespace leasehold::scheduler
