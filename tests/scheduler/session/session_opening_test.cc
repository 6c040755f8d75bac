// How sessions begin and end, and which of them.
#include "tests/scheduler/session/session_fixture.h"

namespace leasehold::scheduler {
namespace {

using ::testing::HasSubstr;

// ---- Hello ----

TEST_F(SessionTest, HelloIsAnsweredByWelcome) {
  Executor executor = Welcomed();

  const auto welcome = executor.sink->Await<WelcomeMessage>();
  EXPECT_EQ(welcome.lease_duration_us, 15'000'000);
  EXPECT_EQ(welcome.heartbeat_interval_us, 5'000'000);
  EXPECT_EQ(welcome.accept_timeout_us, 10'000'000);
  EXPECT_EQ(RoomOf(executor).free_leases, 4);
  EXPECT_EQ(RoomOf(executor).free_slots, 2);
}

TEST_F(SessionTest, ReservedRoomIsGoneUntilItIsGivenBack) {
  Executor executor = Welcomed();
  const auto session = Ready(executor);

  EXPECT_EQ(session->Reserve(3), 3);
  EXPECT_EQ(RoomOf(executor).free_leases, 1);
  EXPECT_EQ(session->Reserve(3), 1);
  EXPECT_EQ(session->Reserve(3), 0);
  session->Unreserve(4);

  EXPECT_EQ(RoomOf(executor).free_leases, 4);
}

TEST_F(SessionTest, NothingIsReservedOfAnExecutorThatDrains) {
  Executor executor = Welcomed();
  const auto session = Ready(executor);
  executor.session->OnMessage(GoodbyeMessage{});

  EXPECT_EQ(session->Reserve(1), 0);
}

TEST_F(SessionTest, AnyOtherFirstMessageBreaksTheProtocol) {
  const std::vector<ExecutorMessage> others = {
      AcceptedMessage(), StartedMessage(), HeartbeatMessage(),
      OutcomesMessage(), GoodbyeMessage()};
  for (const ExecutorMessage& message : others) {
    Executor executor = Connect();
    executor.session->OnMessage(message);

    const absl::Status status = executor.sink->AwaitClosed();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("first message must be hello"));
  }
  EXPECT_EQ(registry_.session_count(), 0u);
}

TEST_F(SessionTest, ASecondHelloBreaksTheProtocol) {
  Executor executor = Welcomed();

  executor.session->OnMessage(Hello());

  EXPECT_EQ(executor.sink->AwaitClosed().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Ready(executor), nullptr);
}

TEST_F(SessionTest, ASecondHelloWhileOpeningBreaksTheProtocol) {
  store_.CloseGate(Role::kControl);
  Executor executor = Connect();
  executor.session->OnMessage(Hello());

  executor.session->OnMessage(Hello());

  EXPECT_EQ(executor.sink->AwaitClosed().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(SessionTest, ADatabaseThatIsAwayRefusesHelloAsUnavailable) {
  store_.SetReachable(false);
  Executor executor = Connect();
  executor.session->OnMessage(Hello());

  EXPECT_EQ(executor.sink->AwaitClosed().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(registry_.session_count(), 0u);
}

TEST_F(SessionTest, ADeadlockAtHelloIsNotTakenForBeingSuperseded) {
  store_.FailNext(StoreMethod::kInternHolder, 1,
                  absl::AbortedError("deadlock"));
  Executor executor = Connect();
  executor.session->OnMessage(Hello());

  EXPECT_EQ(executor.sink->AwaitClosed().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(SessionTest, TooManySessionsAreRefused) {
  std::vector<Executor> executors;
  for (int i = 0; i < 10; ++i) executors.push_back(Connect());

  EXPECT_EQ(registry_.OpenSession(std::make_shared<FakeSink>()).status().code(),
            absl::StatusCode::kResourceExhausted);
  executors[0].session->OnStreamEnded();
  EXPECT_TRUE(registry_.OpenSession(std::make_shared<FakeSink>()).ok());
}

TEST_F(SessionTest, AStreamThatEndsWhileOpeningLeavesNothing) {
  store_.CloseGate(Role::kControl);
  Executor executor = Connect();
  executor.session->OnMessage(Hello());
  store_.AwaitBlocked(Role::kControl, 1);
  std::weak_ptr<Session> session = executor.session;

  executor.session->OnStreamEnded();
  executor.session.reset();
  store_.OpenGate(Role::kControl);

  EXPECT_TRUE(WaitFor([&] { return session.expired(); }));
  EXPECT_EQ(registry_.session_count(), 0u);
  EXPECT_EQ(served_, 0);
}

TEST_F(SessionTest, AStreamThatEndedBeforeItOpenedSupersedesNobody) {
  Executor living = Welcomed();
  store_.CloseGate(Role::kControl);
  Executor dead = Connect();
  dead.session->OnMessage(Hello());
  store_.AwaitBlocked(Role::kControl, 1);
  dead.session->OnStreamEnded();
  store_.OpenGate(Role::kControl);
  opener_.Stop();

  EXPECT_FALSE(living.sink->closed());
}

// ---- Held leases ----

TEST_F(SessionTest, NamedLeasesGoOnAndUnnamedOnesGoBackUncharged) {
  Executor first = Welcomed();
  const LeaseRef named = Give(first);
  const LeaseRef unnamed = Give(first);
  first.session->OnStreamEnded();

  Executor second = Welcomed(Hello({named}));

  const auto welcome = second.sink->Await<WelcomeMessage>();
  ASSERT_EQ(welcome.held_leases.size(), 1u);
  EXPECT_EQ(welcome.held_leases[0].disposition, ReportDisposition::kRecorded);
  EXPECT_EQ(store_.LiveRow(named.task_id)->phase, Phase::kLeased);
  const LiveTask back = *store_.LiveRow(unnamed.task_id);
  EXPECT_EQ(back.phase, Phase::kWaiting);
  EXPECT_EQ(back.attempt, 0);
  EXPECT_EQ(RoomOf(second).free_leases, 3);
}

TEST_F(SessionTest, ANamedLeaseThatIsLostIsSaidToBeStale) {
  Executor first = Welcomed();
  const LeaseRef lease = Give(first);
  first.session->OnStreamEnded();
  Advance(absl::Seconds(11));
  TakeBack(lease);

  Executor second = Welcomed(Hello({lease}));

  const auto welcome = second.sink->Await<WelcomeMessage>();
  ASSERT_EQ(welcome.held_leases.size(), 1u);
  EXPECT_EQ(welcome.held_leases[0].disposition, ReportDisposition::kStale);
  EXPECT_EQ(RoomOf(second).free_leases, 4);
}

TEST_F(SessionTest, ResultsBeforeWelcomeAreKeptAndRecorded) {
  Executor first = Welcomed();
  const LeaseRef lease = Give(first);
  first.session->OnStreamEnded();
  store_.CloseGate(Role::kControl);
  Executor second = Connect();
  second.session->OnMessage(Hello({lease}));
  second.session->OnMessage(Success(lease));
  second.session->OnMessage(Heartbeat(1, {}));
  EXPECT_EQ(second.sink->Of<ReportAcksMessage>().size(), 0u);

  store_.OpenGate(Role::kControl);

  const auto acks = second.sink->Await<ReportAcksMessage>();
  ASSERT_EQ(acks.acks.size(), 1u);
  EXPECT_EQ(acks.acks[0].disposition, ReportDisposition::kRecorded);
  EXPECT_EQ(second.sink->Await<HeartbeatAckMessage>().sequence, 1);
  EXPECT_EQ(store_.EndedRow(lease.task_id)->state, TaskState::kSucceeded);
}

TEST_F(SessionTest, TheEndOfAStreamKeepsItsLeases) {
  Executor executor = Welcomed();
  const LeaseRef lease = Give(executor);

  executor.session->OnStreamEnded();

  EXPECT_EQ(store_.LiveRow(lease.task_id)->phase, Phase::kLeased);
  EXPECT_EQ(served_, 0);
}

// ---- Who supersedes whom ----

TEST_F(SessionTest, ANewerSessionOfTheIncarnationEndsTheOlder) {
  Executor older = Welcomed();
  const LeaseRef lease = Give(older);
  Executor newer = Welcomed(Hello({lease}));

  EXPECT_EQ(older.sink->AwaitClosed().code(), absl::StatusCode::kAborted);
  EXPECT_FALSE(newer.sink->closed());
  EXPECT_EQ(store_.LiveRow(lease.task_id)->phase, Phase::kLeased);
  EXPECT_EQ(served_, 1);
}

TEST_F(SessionTest, ANewerIncarnationSupersedesTheOlder) {
  Executor older = Welcomed(Hello({}, "i1"));
  Executor newer = Welcomed(Hello({}, "i2"));

  const absl::Status status = older.sink->AwaitClosed();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("do not reconnect"));
}

TEST_F(SessionTest, AnOlderIncarnationThatComesBackIsRefused) {
  Welcomed(Hello({}, "i1"));
  Executor newer = Welcomed(Hello({}, "i2"));

  Executor older = Connect();
  older.session->OnMessage(Hello({}, "i1"));

  EXPECT_EQ(older.sink->AwaitClosed().code(), absl::StatusCode::kAborted);
  EXPECT_FALSE(newer.sink->closed());
  EXPECT_NE(Ready(newer), nullptr);
}

// ---- Drain ----

TEST_F(SessionTest, DrainTellsClosesAndRefuses) {
  Executor executor = Welcomed();

  registry_.Drain(absl::ZeroDuration());

  EXPECT_TRUE(executor.sink->Await<DrainMessage>().reconnect);
  EXPECT_EQ(executor.sink->AwaitClosed().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(registry_.OpenSession(std::make_shared<FakeSink>()).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(served_, 0);
}

TEST_F(SessionTest, DrainWaitsForExecutorsToLeave) {
  Executor executor = Welcomed();
  std::thread leaver([&] {
    executor.sink->Await<DrainMessage>();
    executor.session->OnStreamEnded();
  });

  registry_.Drain(absl::Seconds(60));
  leaver.join();

  EXPECT_FALSE(executor.sink->closed());
}

TEST_F(SessionTest, ACloseThatMeetsTheHelloWins) {
  for (int i = 0; i < 200; ++i) {
    Executor executor = Connect();
    auto& session = dynamic_cast<ExecutorSession&>(*executor.session);
    std::thread closer([&] { session.Close(absl::UnavailableError("drain")); });
    executor.session->OnMessage(Hello());
    closer.join();
    ASSERT_TRUE(WaitFor([&] { return registry_.session_count() == 0; }));
  }
  EXPECT_TRUE(WaitFor([&] { return registry_.ReadySessions().empty(); }));
  EXPECT_EQ(served_, 0);
}

}  // namespace
}  // namespace leasehold::scheduler
