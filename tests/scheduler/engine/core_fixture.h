// What the tests of the core share: a clock and a store that move together,
// tasks to put into it, and waiting for threads with a deadline.
#ifndef TESTS_SCHEDULER_ENGINE_CORE_FIXTURE_H_
#define TESTS_SCHEDULER_ENGINE_CORE_FIXTURE_H_

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/time/clock.h"
#include "scheduler/engine/db_clock.h"
#include "scheduler/engine/lane_directory.h"
#include "scheduler/engine/scheduler_metrics.h"
#include "scheduler/engine/task_changer.h"
#include "tests/support/memory_task_store.h"

namespace leasehold::scheduler {

// Whether `condition` became true; the patience is for machines under load and
// is used up only by a test that fails.
inline bool WaitFor(const std::function<bool()>& condition,
                    std::chrono::seconds patience = std::chrono::seconds(30)) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// Collects what threads hand over.
template <typename T>
class Inbox {
 public:
  void Add(T item) {
    std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
  }
  std::vector<T> All() const {
    std::lock_guard lock(mutex_);
    return items_;
  }
  size_t size() const {
    std::lock_guard lock(mutex_);
    return items_.size();
  }
  bool Await(size_t count) const {
    return WaitFor([&] { return size() >= count; });
  }

 private:
  mutable std::mutex mutex_;
  std::vector<T> items_;
};

inline TaskSpec MakeSpec(std::string payload = "1", int priority = 5) {
  TaskSpec spec;
  spec.queue = "q";
  spec.type = "t";
  spec.payload = {PayloadKind::kJson, std::move(payload)};
  spec.priority = priority;
  return spec;
}

// The store and the steady clock are both driven by `clock`.
class CoreFixture : public ::testing::Test {
 protected:
  CoreFixture() { lane_ = lanes_.Intern({LaneName("q", "t")}).value()[0]; }

  void Advance(absl::Duration by) { clock_.Advance(by); }
  int64_t NowUs() const { return db_clock_.NowUs(); }

  // Stores tasks as another replica would: nobody here hears of it.
  std::vector<TaskId> Store(std::vector<TaskSpec> specs) {
    std::vector<NewTask> call(specs.size());
    TaskId id = store_.ReserveIds(static_cast<int64_t>(specs.size())).value();
    std::vector<TaskId> ids;
    for (size_t i = 0; i < specs.size(); ++i) {
      call[i].id = id++;
      call[i].lane_id =
          lanes_.Intern({LaneName(specs[i].queue, specs[i].type)}).value()[0];
      call[i].spec = std::move(specs[i]);
      ids.push_back(call[i].id);
    }
    EXPECT_TRUE(store_.SubmitTasks({call}).value()[0].ok());
    return ids;
  }
  TaskId StoreOne(TaskSpec spec = MakeSpec()) {
    return Store({std::move(spec)})[0];
  }

  // Leases a stored task to `holder`, as a dispatcher would.
  LeaseRef Lease(TaskId id, HolderId holder,
                 absl::Duration lease = absl::Seconds(10)) {
    const int64_t number = store_.LiveRow(id)->lease_number;
    Claim claim;
    claim.id = id;
    claim.lease_number = number;
    claim.holder = holder;
    claim.lease_us = absl::ToInt64Microseconds(lease);
    EXPECT_TRUE(store_.ClaimLeases({claim}).value().won[0]);
    return {id, number + 1};
  }

  // Writes the lease's start, so that its task is RUNNING.
  void Run(const LeaseRef& lease, HolderId holder,
           absl::Duration duration = absl::Seconds(15)) {
    Renewal renewal;
    renewal.lease = lease;
    renewal.holder = holder;
    renewal.lease_us = absl::ToInt64Microseconds(duration);
    renewal.start_us = NowUs();
    renewal.attempt_timeout_us = kDefaultAttemptTimeoutUs;
    EXPECT_EQ(store_.RenewLeases({renewal}).value()[0], RenewOutcome::kRenewed);
  }

  FakeClock clock_{absl::FromUnixMicros(MemoryTaskStore::kStartUs)};
  MemoryTaskStore store_{&clock_};
  DbClock db_clock_{clock_, MemoryTaskStore::kStartUs};
  LeaseTimes times_;
  LaneDirectory lanes_{store_, times_};
  TaskChanger changer_{store_};
  SchedulerMetrics metrics_;
  EngineBounds bounds_;
  LaneId lane_ = 0;
};

}  // namespace leasehold::scheduler

#endif  // TESTS_SCHEDULER_ENGINE_CORE_FIXTURE_H_
