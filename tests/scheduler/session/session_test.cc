// The rules of OpenSession, message by message, without gRPC: a real registry,
// opener and batchers over the store in memory, and a sink that remembers.
#include "scheduler/session/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/session/session_opener.h"
#include "scheduler/session/session_registry.h"
#include "tests/scheduler/engine/core_fixture.h"

namespace leasehold::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FakeSink : public SessionSink {
 public:
  void Send(SchedulerMessage message) override {
    sent_.Add(std::move(message));
  }
  void Close(absl::Status status) override { closed_.Add(std::move(status)); }

  // Waits for the `n`-th message of its kind.
  template <typename T>
  T Await(size_t n = 1) const {
    EXPECT_TRUE(WaitFor([&] { return Of<T>().size() >= n; }))
        << "a message did not come";
    const auto all = Of<T>();
    return all.size() < n ? T() : all[n - 1];
  }
  template <typename T>
  std::vector<T> Of() const {
    std::vector<T> found;
    for (const SchedulerMessage& message : sent_.All()) {
      if (const T* of_kind = std::get_if<T>(&message))
        found.push_back(*of_kind);
    }
    return found;
  }
  absl::Status AwaitClosed() const {
    EXPECT_TRUE(closed_.Await(1));
    return closed_.size() == 0 ? absl::OkStatus() : closed_.All()[0];
  }
  bool closed() const { return closed_.size() > 0; }

 private:
  Inbox<SchedulerMessage> sent_;
  Inbox<absl::Status> closed_;
};

class SessionTest : public CoreFixture {
 protected:
  struct Executor {
    std::shared_ptr<FakeSink> sink = std::make_shared<FakeSink>();
    std::shared_ptr<Session> session;
  };

  SessionTest() {
    registry_.SetServices(&services_);
    changer_.AddListener(&registry_);
  }
  ~SessionTest() override {
    store_.SetReachable(true);
    for (Role role : {Role::kFinish, Role::kRenew, Role::kControl}) {
      store_.OpenGate(role);
    }
    registry_.Drain(absl::ZeroDuration());
    opener_.Stop();
    finisher_.Stop();
    renewer_.Stop();
    updates_.Stop();
  }

  static HelloMessage Hello(std::vector<LeaseRef> held = {},
                            std::string incarnation = "i1") {
    HelloMessage hello;
    hello.executor_id = "e";
    hello.incarnation = std::move(incarnation);
    hello.lanes = {{"q", "t"}};
    hello.slots = 2;
    hello.max_leases = 4;
    hello.held_leases = std::move(held);
    return hello;
  }
  Executor Connect() {
    Executor executor;
    executor.session = *registry_.OpenSession(executor.sink);
    return executor;
  }
  // A session that is ready.
  Executor Welcomed(HelloMessage hello = Hello()) {
    Executor executor = Connect();
    executor.session->OnMessage(std::move(hello));
    executor.sink->Await<WelcomeMessage>();
    EXPECT_TRUE(WaitFor([&] { return Ready(executor) != nullptr; }));
    return executor;
  }
  std::shared_ptr<ExecutorSession> Ready(const Executor& executor) const {
    for (const auto& ready : registry_.ReadySessions()) {
      if (ready == executor.session) return ready;
    }
    return nullptr;
  }
  DispatchTarget::Room RoomOf(const Executor& executor) const {
    return dynamic_cast<ExecutorSession&>(*executor.session).GetRoom();
  }
  HolderId HolderOf(const Executor& executor) const {
    return dynamic_cast<ExecutorSession&>(*executor.session).holder();
  }
  // Stores a task, leases it to the executor and sends it, as the dispatcher.
  LeaseRef Give(const Executor& executor) {
    const LeaseRef lease = Lease(StoreOne(), HolderOf(executor));
    LeaseMessage message;
    message.lease = lease;
    message.lease_duration_us = 15'000'000;
    message.attempt_timeout_us = kDefaultAttemptTimeoutUs;
    EXPECT_EQ(Ready(executor)->Reserve(1), 1);
    EXPECT_TRUE(Ready(executor)->Deliver({message}, 0));
    return lease;
  }
  static HeartbeatMessage Heartbeat(int64_t sequence,
                                    std::vector<LeaseRef> leases,
                                    bool started = false) {
    HeartbeatMessage message;
    message.sequence = sequence;
    for (const LeaseRef& lease : leases) {
      message.leases.emplace_back();
      message.leases.back().lease = lease;
      message.leases.back().started = started;
    }
    return message;
  }
  static OutcomesMessage Outcome(
      const LeaseRef& lease,
      std::variant<Payload, TaskError, Release> outcome) {
    OutcomesMessage message;
    message.outcomes.emplace_back();
    message.outcomes.back().lease = lease;
    message.outcomes.back().outcome = std::move(outcome);
    return message;
  }
  static OutcomesMessage Success(const LeaseRef& lease) {
    return Outcome(lease, Payload{PayloadKind::kJson, "42"});
  }
  static OutcomesMessage Released(const LeaseRef& lease, ReleaseReason reason) {
    return Outcome(lease, Release{reason, std::nullopt});
  }
  // The reaper of this replica takes the lease back.
  void TakeBack(const LeaseRef& lease) {
    ASSERT_TRUE(changer_
                    .ChangeTasks({lease.task_id}, false,
                                 [&](size_t, const TaskView& task) {
                                   return DecideExpiry(task, lease, true, 0.5);
                                 })
                    .ok());
  }

  std::atomic<int> wakes_ = 0;
  std::atomic<int> served_ = 0;
  SessionRegistry registry_{10,
                            {.serve = [this](const auto&) { ++served_; },
                             .unserve = [this](const auto&) { --served_; }}};
  FinishBatcher finisher_{changer_, bounds_, metrics_, clock_};
  LeaseRenewer renewer_{store_, absl::Milliseconds(20),
                        [this] {
                          const auto ready = registry_.ReadySessions();
                          return std::vector<std::shared_ptr<RenewalSource>>(
                              ready.begin(), ready.end());
                        },
                        metrics_, clock_};
  UpdateWriter updates_{store_, [](auto) {}, clock_};
  SessionOpener opener_{store_, changer_, lanes_, registry_, 100};
  SessionServices services_{
      .times = times_,
      .clock = db_clock_,
      .finisher = finisher_,
      .renewer = renewer_,
      .updates = updates_,
      .open = [this](auto session) { opener_.Open(std::move(session)); },
      .wake_dispatcher = [this] { ++wakes_; },
      .ended = [this](auto& session) { registry_.OnSessionEnded(session); }};
};

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

// ---- Heartbeats ----

TEST_F(SessionTest, AHeartbeatIsAcknowledgedOnlyAfterTheRenewal) {
  Executor executor = Welcomed();
  const LeaseRef lease = Give(executor);
  store_.CloseGate(Role::kRenew);
  Advance(absl::Seconds(5));
  executor.session->OnMessage(Heartbeat(7, {lease}));
  store_.AwaitBlocked(Role::kRenew, 1);
  EXPECT_THAT(executor.sink->Of<HeartbeatAckMessage>(), IsEmpty());

  store_.OpenGate(Role::kRenew);

  EXPECT_EQ(executor.sink->Await<HeartbeatAckMessage>().sequence, 7);
  EXPECT_EQ(store_.LiveRow(lease.task_id)->lease_expire_us,
            NowUs() + 15'000'000);
}

TEST_F(SessionTest, ARenewalThatFailedIsNotAcknowledged) {
  Executor executor = Welcomed();
  const LeaseRef lease = Give(executor);
  store_.FailNext(StoreMethod::kRenewLeases, 1, absl::UnavailableError("away"));
  executor.session->OnMessage(Heartbeat(1, {lease}));
  ASSERT_TRUE(
      WaitFor([&] { return store_.CallsOf(StoreMethod::kRenewLeases) >= 1; }));

  executor.session->OnMessage(Heartbeat(2, {lease}));

  EXPECT_EQ(executor.sink->Await<HeartbeatAckMessage>().sequence, 2);
}

TEST_F(SessionTest, AnEmptyHeartbeatIsAcknowledgedAtOnce) {
  Executor executor = Welcomed();
  executor.session->OnMessage(Heartbeat(3, {}));
  EXPECT_EQ(executor.sink->Await<HeartbeatAckMessage>().sequence, 3);
  EXPECT_EQ(RoomOf(executor).heartbeat_sequence, 3);
}

// Failure case 10.
TEST_F(SessionTest, TheAcknowledgementNamesExactlyTheLeasesThatAreLost) {
  Executor executor = Welcomed();
  const LeaseRef kept = Give(executor);
  const LeaseRef lost = Give(executor);
  Advance(absl::Seconds(5));
  executor.session->OnMessage(Heartbeat(1, {kept}));
  executor.sink->Await<HeartbeatAckMessage>();
  Advance(absl::Seconds(6));
  TakeBack(lost);
  Lease(lost.task_id, 77);  // It is somebody else's by now.

  executor.session->OnMessage(Heartbeat(2, {kept, lost}));

  const auto ack = executor.sink->Await<HeartbeatAckMessage>(2);
  EXPECT_THAT(ack.lost, ElementsAre(lost));
  EXPECT_THAT(ack.cancelled, IsEmpty());
}

TEST_F(SessionTest, TheAcknowledgementNamesCancelledLeases) {
  Executor executor = Welcomed();
  const LeaseRef lease = Give(executor);
  ASSERT_TRUE(
      changer_
          .ChangeTasks({lease.task_id}, false,
                       [](size_t, const TaskView& task) {
                         return DecideCancel(task, 15'000'000, "").change;
                       })
          .ok());
  EXPECT_THAT(executor.sink->Await<CancelLeasesMessage>().leases,
              ElementsAre(lease));

  executor.session->OnMessage(Heartbeat(1, {lease}));

  const auto ack = executor.sink->Await<HeartbeatAckMessage>();
  EXPECT_THAT(ack.cancelled, ElementsAre(lease));
  EXPECT_THAT(ack.lost, IsEmpty());
}

// Failure case 11.
TEST_F(SessionTest, AHeartbeatAfterTheResultRevivesNothing) {
  Executor executor = Welcomed();
  const LeaseRef lease = Give(executor);
  executor.session->OnMessage(Success(lease));
  executor.sink->Await<ReportAcksMessage>();
  HeartbeatMessage heartbeat = Heartbeat(1, {lease}, /*started=*/true);
  heartbeat.leases[0].progress = Progress{1, 2, "late"};

  executor.session->OnMessage(heartbeat);

  EXPECT_THAT(executor.sink->Await<HeartbeatAckMessage>().lost,
              ElementsAre(lease));
  EXPECT_EQ(store_.EndedRow(lease.task_id)->state, TaskState::kSucceeded);
  EXPECT_FALSE(store_.LiveRow(lease.task_id).has_value());
  EXPECT_EQ(RoomOf(executor).free_leases, 4);
}

TEST_F(SessionTest, AnOlderLeaseInAHeartbeatDoesNotReplaceTheNewerOne) {
  Executor executor = Welcomed();
  const LeaseRef lease = Give(executor);
  const LeaseRef older{lease.task_id, lease.lease_number - 1};

  executor.session->OnMessage(Heartbeat(1, {older}));

  EXPECT_THAT(executor.sink->Await<HeartbeatAckMessage>().lost,
              ElementsAre(older));
  EXPECT_EQ(RoomOf(executor).free_leases, 3);
}

// ---- Accepted and started, written lazily ----

TEST_F(SessionTest, AStartIsWrittenHalfASecondLater) {
  Executor executor = Welcomed();
  const LeaseRef lease = Give(executor);
  StartedMessage started;
  started.leases = {lease};
  executor.session->OnMessage(started);
  const int64_t start_us = NowUs();
  Advance(absl::Milliseconds(499));
  executor.session->OnMessage(Heartbeat(1, {}));
  EXPECT_EQ(store_.LiveRow(lease.task_id)->state, TaskState::kDispatched);

  Advance(absl::Milliseconds(1));

  ASSERT_TRUE(WaitFor([&] {
    return store_.LiveRow(lease.task_id)->state == TaskState::kRunning;
  }));
  EXPECT_EQ(store_.LiveRow(lease.task_id)->start_us, start_us);
}

TEST_F(SessionTest, ATaskThatEndsSoonerIsNeverWrittenAsStarted) {
  Executor executor = Welcomed();
  const LeaseRef lease = Give(executor);
  StartedMessage started;
  started.leases = {lease};
  executor.session->OnMessage(started);
  Advance(absl::Milliseconds(100));
  executor.session->OnMessage(Success(lease));
  executor.sink->Await<ReportAcksMessage>();
  Advance(absl::Seconds(5));
  executor.session->OnMessage(Heartbeat(1, {}));

  EXPECT_EQ(store_.CallsOf(StoreMethod::kRenewLeases), 0);
  EXPECT_EQ(store_.EndedRow(lease.task_id)->start_us, NowUs() - 5'100'000);
}

TEST_F(SessionTest, AnAcceptedLeaseIsExtendedWithoutAHeartbeat) {
  Executor executor = Welcomed();
  const LeaseRef lease = Give(executor);
  AcceptedMessage accepted;
  accepted.leases = {lease};
  executor.session->OnMessage(accepted);

  Advance(absl::Milliseconds(500));

  EXPECT_TRUE(WaitFor([&] {
    return store_.LiveRow(lease.task_id)->lease_expire_us ==
           NowUs() + 15'000'000;
  }));
  EXPECT_EQ(store_.LiveRow(lease.task_id)->state, TaskState::kDispatched);
}

TEST_F(SessionTest, AStartThatCouldNotBeWrittenIsWrittenLater) {
  Executor executor = Welcomed();
  const LeaseRef lease = Give(executor);
  StartedMessage started;
  started.leases = {lease};
  executor.session->OnMessage(started);
  store_.FailNext(StoreMethod::kRenewLeases, 1, absl::UnavailableError("away"));

  Advance(absl::Seconds(1));

  EXPECT_TRUE(WaitFor([&] {
    return store_.LiveRow(lease.task_id)->state == TaskState::kRunning;
  }));
}

// ---- Outcomes ----

TEST_F(SessionTest, AResultIsAcknowledgedOnceItIsCommitted) {
  Executor executor = Welcomed();
  const LeaseRef lease = Give(executor);
  store_.CloseGate(Role::kFinish);
  executor.session->OnMessage(Success(lease));
  store_.AwaitBlocked(Role::kFinish, 1);
  EXPECT_THAT(executor.sink->Of<ReportAcksMessage>(), IsEmpty());

  store_.OpenGate(Role::kFinish);

  EXPECT_EQ(executor.sink->Await<ReportAcksMessage>().acks[0].disposition,
            ReportDisposition::kRecorded);
}

// Failure case 12.
TEST_F(SessionTest, AReportOfAnOlderLeaseIsStaleAndChangesNothing) {
  Executor executor = Welcomed();
  const LeaseRef older = Give(executor);
  Advance(absl::Seconds(11));
  TakeBack(older);
  const LeaseRef newer = Lease(older.task_id, 77);
  const LiveTask before = *store_.LiveRow(older.task_id);

  executor.session->OnMessage(Success(older));

  EXPECT_EQ(executor.sink->Await<ReportAcksMessage>().acks[0].disposition,
            ReportDisposition::kStale);
  EXPECT_EQ(*store_.LiveRow(newer.task_id), before);
}

TEST_F(SessionTest, AReportMakesRoomAtOnceAndWakesTheDispatcher) {
  Executor executor = Welcomed();
  const LeaseRef lease = Give(executor);
  store_.CloseGate(Role::kFinish);
  wakes_ = 0;

  executor.session->OnMessage(Success(lease));

  EXPECT_EQ(RoomOf(executor).free_leases, 4);
  EXPECT_GE(wakes_, 1);
}

TEST_F(SessionTest, AHeartbeatThatNamesAReportedLeaseLeaksNoRoom) {
  Executor executor = Welcomed();
  const LeaseRef lease = Give(executor);
  store_.CloseGate(Role::kFinish);
  executor.session->OnMessage(Success(lease));
  executor.session->OnMessage(Heartbeat(1, {lease}));
  EXPECT_EQ(RoomOf(executor).free_leases, 3);

  store_.OpenGate(Role::kFinish);
  executor.sink->Await<ReportAcksMessage>();

  EXPECT_EQ(RoomOf(executor).free_leases, 4);
}

TEST_F(SessionTest, ALeaseThatAnotherReplicaTookBackLeaksNoRoom) {
  Executor executor = Welcomed();
  Give(executor);  // Never accepted, and nobody here hears of its end.
  Advance(absl::Seconds(16));

  executor.session->OnMessage(Heartbeat(1, {}));
  Advance(absl::Seconds(16));

  EXPECT_EQ(RoomOf(executor).free_leases, 4);
}

TEST_F(SessionTest, ARejectionPausesTheExecutorForASecond) {
  Executor executor = Welcomed();
  const LeaseRef lease = Give(executor);
  executor.session->OnMessage(Released(lease, ReleaseReason::kRejected));
  EXPECT_EQ(RoomOf(executor).free_leases, 0);

  Advance(absl::Seconds(1));

  EXPECT_EQ(RoomOf(executor).free_leases, 4);
  ASSERT_TRUE(WaitFor(
      [&] { return store_.LiveRow(lease.task_id)->phase == Phase::kWaiting; }));
  EXPECT_EQ(store_.LiveRow(lease.task_id)->attempt, 0);
}

TEST_F(SessionTest, ADrainingExecutorGetsNoMoreLeases) {
  Executor executor = Welcomed();
  const LeaseRef lease = Give(executor);
  executor.session->OnMessage(Released(lease, ReleaseReason::kDraining));
  Advance(absl::Seconds(60));

  EXPECT_EQ(RoomOf(executor).free_leases, 0);
}

TEST_F(SessionTest, GoodbyeEndsTheStreamWell) {
  Executor executor = Welcomed();
  executor.session->OnMessage(GoodbyeMessage());

  EXPECT_TRUE(executor.sink->AwaitClosed().ok());
  EXPECT_EQ(registry_.session_count(), 0u);
}

TEST_F(SessionTest, MessagesAfterTheEndChangeNothing) {
  Executor executor = Welcomed();
  const LeaseRef lease = Give(executor);
  executor.session->OnStreamEnded();

  executor.session->OnMessage(Success(lease));
  executor.session->OnMessage(Heartbeat(1, {lease}));
  executor.session->OnMessage(GoodbyeMessage());
  finisher_.Stop();

  EXPECT_TRUE(store_.LiveRow(lease.task_id).has_value());
  EXPECT_FALSE(executor.sink->closed());
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

// ---- Health ----

TEST_F(SessionTest, ALeaseNotAcceptedInTimeMakesTheExecutorUnhealthy) {
  Executor executor = Welcomed();
  const LeaseRef lease = Give(executor);
  Advance(absl::Seconds(10));
  TakeBack(lease);
  EXPECT_EQ(RoomOf(executor).free_leases, 0);

  AcceptedMessage accepted;
  accepted.leases = {lease};
  executor.session->OnMessage(accepted);

  EXPECT_EQ(RoomOf(executor).free_leases, 4);
}

TEST_F(SessionTest, AnUnhealthyExecutorThatHoldsNothingIsTriedAgain) {
  Executor executor = Welcomed();
  const LeaseRef lease = Give(executor);
  Advance(absl::Seconds(10));
  TakeBack(lease);

  Advance(absl::Seconds(15));

  EXPECT_EQ(RoomOf(executor).free_leases, 4);
}

TEST_F(SessionTest, ALeaseThatWasAcceptedAndWaitsForASlotIsNoSignOfIllness) {
  Executor executor = Welcomed();
  const LeaseRef lease = Give(executor);
  AcceptedMessage accepted;
  accepted.leases = {lease};
  executor.session->OnMessage(accepted);
  Advance(absl::Milliseconds(500));
  ASSERT_TRUE(WaitFor([&] {
    return store_.LiveRow(lease.task_id)->lease_expire_us ==
           NowUs() + 15'000'000;
  }));

  Advance(absl::Seconds(15));
  TakeBack(lease);

  EXPECT_EQ(RoomOf(executor).free_leases, 4);
}

TEST_F(SessionTest, HeardSinceKnowsSessionsThatHaveEnded) {
  Executor executor = Welcomed();
  const HolderId holder = HolderOf(executor);
  const int64_t hello_us = NowUs();
  Advance(absl::Seconds(1));
  EXPECT_FALSE(registry_.HeardSince(holder, hello_us));
  executor.session->OnMessage(Heartbeat(1, {}));
  EXPECT_TRUE(registry_.HeardSince(holder, hello_us));

  executor.session->OnStreamEnded();

  EXPECT_TRUE(registry_.HeardSince(holder, hello_us));
  EXPECT_FALSE(registry_.HeardSince(holder, NowUs()));
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
