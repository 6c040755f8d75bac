// The rules of OpenSession, message by message, without gRPC: a real registry,
// opener and batchers over the store in memory, and a sink that remembers.
#ifndef TESTS_SCHEDULER_SESSION_SESSION_FIXTURE_H_
#define TESTS_SCHEDULER_SESSION_SESSION_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "scheduler/session/session.h"
#include "scheduler/session/session_opener.h"
#include "scheduler/session/session_registry.h"
#include "tests/scheduler/engine/core_fixture.h"

namespace leasehold::scheduler {

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

}  // namespace leasehold::scheduler

#endif  // TESTS_SCHEDULER_SESSION_SESSION_FIXTURE_H_
