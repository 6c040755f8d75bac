// OpenSession over a real gRPC server: peers that behave, and others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "leasehold/v1/executor_service.grpc.pb.h"
#include "scheduler/domain/limits.h"
#include "tests/scheduler/rpc/fakes.h"

namespace leasehold::scheduler {
namespace {

using testing::HasSubstr;

using ClientStream =
    grpc::ClientReaderWriter<v1::ExecutorMessage, v1::SchedulerMessage>;

v1::ExecutorMessage NewHello() {
  v1::ExecutorMessage message;
  v1::Hello* hello = message.mutable_hello();
  hello->set_executor_id("e");
  hello->set_incarnation("i");
  hello->set_slots(1);
  hello->set_max_leases(1);
  hello->add_subscriptions()->set_queue("q");
  hello->mutable_subscriptions(0)->add_types("echo");
  return message;
}

// An executor's end of a stream.
struct Peer {
  explicit Peer(std::shared_ptr<grpc::Channel> channel)
      : stub(v1::ExecutorService::NewStub(channel)),
        stream(stub->OpenSession(&context)) {}

  void Leave() {
    v1::ExecutorMessage goodbye;
    goodbye.mutable_goodbye();
    stream->Write(goodbye);
    stream->WritesDone();
  }

  // The status after reading everything.
  grpc::Status End() {
    v1::SchedulerMessage message;
    while (stream->Read(&message)) {
    }
    return stream->Finish();
  }

  grpc::ClientContext context;
  std::unique_ptr<v1::ExecutorService::Stub> stub;
  std::unique_ptr<ClientStream> stream;
};

class ExecutorStreamTest : public GrpcServerTest {
 protected:
  void SetUp() override {
    GrpcServerOptions options;
    options.session_outbox_bytes = 4 << 20;
    StartServer(options);
  }
  bool WaitForEnded(int n) {
    return sessions.monitor.WaitUntil([&] { return sessions.ended == n; });
  }
  std::shared_ptr<SessionSink> Sink(size_t i) {
    EXPECT_TRUE(
        sessions.monitor.WaitUntil([&] { return sessions.sinks.size() > i; }));
    return sessions.sinks[i].lock();
  }
};

LeasesMessage NewLeases(size_t bytes) {
  LeasesMessage leases;
  LeaseMessage& lease = leases.leases.emplace_back();
  lease.lease = {1, 1};
  lease.spec.payload = {PayloadKind::kData, std::string(bytes, 'x')};
  return leases;
}

TEST_F(ExecutorStreamTest, HelloGetsAWelcomeAndLeasesInOrder) {
  Peer peer(channel);
  peer.stream->Write(NewHello());
  v1::SchedulerMessage message;
  ASSERT_TRUE(peer.stream->Read(&message));
  EXPECT_EQ(message.welcome().session_id(), "s1");

  for (int i = 0; i < 100; ++i) {
    HeartbeatAckMessage ack;
    ack.sequence = i;
    Sink(0)->Send(ack);
  }

  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(peer.stream->Read(&message));
    EXPECT_EQ(message.heartbeat_ack().sequence(), i);
  }
  peer.Leave();
  EXPECT_TRUE(peer.End().ok());
  EXPECT_TRUE(WaitForEnded(1));
}

TEST_F(ExecutorStreamTest, GoodbyeAndHalfCloseEndTheStreamWell) {
  Peer peer(channel);
  peer.stream->Write(NewHello());
  peer.Leave();
  EXPECT_TRUE(peer.End().ok());
  EXPECT_TRUE(WaitForEnded(1));
}

TEST_F(ExecutorStreamTest, HalfCloseWithoutGoodbyeIsAMistake) {
  Peer peer(channel);
  peer.stream->Write(NewHello());
  peer.stream->WritesDone();
  const grpc::Status status = peer.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("without goodbye"));
  EXPECT_TRUE(WaitForEnded(1));
}

TEST_F(ExecutorStreamTest, UnknownMessageOfANewerExecutorIsIgnored) {
  Peer peer(channel);
  peer.stream->Write(NewHello());
  v1::ExecutorMessage unknown;
  unknown.GetReflection()->MutableUnknownFields(&unknown)->AddVarint(999, 1);
  peer.stream->Write(unknown);
  v1::ExecutorMessage heartbeat;
  heartbeat.mutable_heartbeat()->set_sequence(1);
  peer.stream->Write(heartbeat);

  EXPECT_TRUE(sessions.monitor.WaitUntil(
      [&] { return sessions.received.size() == 2; }));
  peer.Leave();
  EXPECT_TRUE(peer.End().ok());
}

TEST_F(ExecutorStreamTest, BrokenProtocolEndsWithInvalidArgument) {
  v1::ExecutorMessage results, bad_lease, rows, empty;
  results.mutable_results();
  bad_lease.mutable_accepted()->add_leases()->set_task_id("x");
  rows.mutable_row_results();
  const std::vector<std::pair<std::vector<v1::ExecutorMessage>, std::string>>
      cases = {{{NewHello(), NewHello()}, "hello"},
               {{results}, "want hello first"},
               {{empty}, "message: not set"},
               {{NewHello(), bad_lease}, "accepted.leases[0].task_id: \"x\""},
               {{NewHello(), rows}, "row_results"}};
  for (const auto& [messages, expected] : cases) {
    Peer peer(channel);
    for (const auto& message : messages) peer.stream->Write(message);
    const grpc::Status status = peer.End();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr(expected));
  }
  EXPECT_TRUE(WaitForEnded(static_cast<int>(cases.size())));
}

TEST_F(ExecutorStreamTest, GarbageEnumeratorsAreNotFatal) {
  Peer peer(channel);
  peer.stream->Write(NewHello());
  v1::ExecutorMessage released;
  v1::LeaseRelease* release = released.mutable_released()->add_leases();
  release->mutable_lease()->set_task_id("1");
  release->mutable_lease()->set_lease_number(1);
  release->set_reason(static_cast<v1::ReleaseReason>(12345));
  peer.stream->Write(released);

  EXPECT_TRUE(sessions.monitor.WaitUntil(
      [&] { return sessions.received.size() == 2; }));
  peer.Leave();
  EXPECT_TRUE(peer.End().ok());
}

TEST_F(ExecutorStreamTest, InvalidUtf8EndsOnlyItsOwnStream) {
  Peer good(channel), bad(channel);
  good.stream->Write(NewHello());
  bad.stream->Write(NewHello());
  v1::ExecutorMessage results;
  v1::TaskResult* result = results.mutable_results()->add_results();
  result->mutable_lease()->set_task_id("1");
  result->mutable_lease()->set_lease_number(1);
  result->mutable_error()->set_message("\xff\xfe");
  bad.stream->Write(results);

  const grpc::Status status = bad.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("valid UTF-8"));

  EXPECT_TRUE(WaitForEnded(1));
  good.Leave();
  EXPECT_TRUE(good.End().ok());
}

TEST_F(ExecutorStreamTest, RefusedSessionsSayWhy) {
  sessions.refuse = absl::ResourceExhaustedError("too many sessions");
  Peer peer(channel);
  const grpc::Status status = peer.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(), "too many sessions");
  EXPECT_EQ(
      peer.context.GetServerTrailingMetadata().count("grpc-retry-pushback-ms"),
      1u);
}

TEST_F(ExecutorStreamTest, WhatWasSentBeforeCloseStillArrives) {
  Peer peer(channel);
  peer.stream->Write(NewHello());
  v1::SchedulerMessage message;
  ASSERT_TRUE(peer.stream->Read(&message));

  Sink(0)->Send(DrainMessage{true});
  Sink(0)->Close(absl::UnavailableError("scheduler is draining"));
  Sink(0)->Close(absl::InternalError("later, ignored"));

  ASSERT_TRUE(peer.stream->Read(&message));
  EXPECT_TRUE(message.drain().reconnect());
  const grpc::Status status = peer.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "scheduler is draining");
}

TEST_F(ExecutorStreamTest, PeerThatDoesNotReadIsCutOff) {
  Peer peer(channel);
  peer.stream->Write(NewHello());
  auto sink = Sink(0);

  // 200 MiB, if all of it were kept.
  for (int i = 0; i < 200; ++i) sink->Send(NewLeases(1 << 20));

  EXPECT_TRUE(WaitForEnded(1));
  EXPECT_FALSE(peer.End().ok());
  sink->Send(NewLeases(10));  // To nobody.
}

TEST_F(ExecutorStreamTest, CloseDoesNotWaitForAPeerThatDoesNotRead) {
  Peer peer(channel);
  peer.stream->Write(NewHello());
  auto sink = Sink(0);
  for (int i = 0; i < 3; ++i) sink->Send(NewLeases(1 << 20));

  sink->Close(absl::AbortedError("superseded"));

  EXPECT_TRUE(WaitForEnded(1));
  EXPECT_FALSE(peer.End().ok());
}

TEST_F(ExecutorStreamTest, ShutdownEndsAHundredStreamsInTime) {
  std::vector<std::unique_ptr<Peer>> peers;
  for (int i = 0; i < 100; ++i) {
    peers.push_back(std::make_unique<Peer>(NewChannel()));
    peers.back()->stream->Write(NewHello());
  }
  ASSERT_TRUE(sessions.monitor.WaitUntil(
      [&] { return sessions.received.size() == 100; }));
  // Every third has more to read than it takes.
  for (size_t i = 0; i < 100; i += 3) {
    for (int j = 0; j < 3; ++j) Sink(i)->Send(NewLeases(1 << 20));
  }
  const absl::Time begin = absl::Now();

  server->Shutdown(absl::Seconds(1));

  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
  EXPECT_EQ(sessions.ended, 100);
  for (auto& peer : peers) EXPECT_FALSE(peer->End().ok());
}

TEST_F(ExecutorStreamTest, SurvivesPeersThatComeAndGoAsTheyLike) {
  constexpr int kThreads = 4, kRounds = 60;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        Peer peer(channel);
        const int how = (t + i) % 5;
        if (how > 0) peer.stream->Write(NewHello());
        if (how > 1) {
          v1::SchedulerMessage message;
          peer.stream->Read(&message);
        }
        if (how == 3) peer.stream->WritesDone();
        if (how == 4) peer.stream->Write(NewHello());
        if (how < 3) peer.context.TryCancel();
        peer.End();
      }
    });
  }
  // Meanwhile the scheduler sends to whoever is there, and closes some.
  bool stop = false;
  std::thread sender([&] {
    size_t next = 0;
    while (!sessions.monitor.With([&] { return stop; })) {
      auto sink = sessions.monitor.With([&] {
        return sessions.sinks.empty()
                   ? nullptr
                   : sessions.sinks[++next % sessions.sinks.size()].lock();
      });
      if (sink == nullptr) continue;
      sink->Send(NewLeases(1000));
      if (next % 7 == 0) sink->Close(absl::UnavailableError("bye"));
    }
  });
  for (std::thread& thread : threads) thread.join();
  sessions.monitor.With([&] { return stop = true; });
  sender.join();

  server->Shutdown(absl::Seconds(1));

  EXPECT_EQ(sessions.ended, sessions.opened);
  EXPECT_EQ(server->open_streams(), 0u);
}

}  // namespace
}  // namespace leasehold::scheduler
