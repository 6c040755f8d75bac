// What a session does with its leases: heartbeats, starts, outcomes, health.
#include "tests/scheduler/session/session_fixture.h"

namespace leasehold::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

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

}  // namespace
}  // namespace leasehold::scheduler
