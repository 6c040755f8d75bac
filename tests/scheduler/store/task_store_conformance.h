// What every TaskStore must do, as one suite of tests with the store as their
// parameter.
//
//   INSTANTIATE_TEST_SUITE_P(Memory, TaskStoreTest,
//                            testing::Values(MakeMemoryHarness));
//
// The tests are in conformance_*_test.cc, which a binary lists among its
// sources.
#ifndef TESTS_SCHEDULER_STORE_TASK_STORE_CONFORMANCE_H_
#define TESTS_SCHEDULER_STORE_TASK_STORE_CONFORMANCE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "scheduler/store/task_store.h"

namespace leasehold::scheduler {

// An empty store of its own for each test.
class StoreHarness {
 public:
  virtual ~StoreHarness() = default;
  virtual TaskStore& store() = 0;
  // As another replica has it: the same tasks. May be the same object.
  virtual TaskStore& other() = 0;
  // Returns when the store's clock has moved on by this.
  virtual void Pass(absl::Duration duration) = 0;
};

using HarnessFactory = std::unique_ptr<StoreHarness> (*)();

inline constexpr int64_t kLeaseUs = 15'000'000;

class TaskStoreTest : public testing::TestWithParam<HarnessFactory> {
 protected:
  TaskStoreTest() : harness_(GetParam()()), store_(harness_->store()) {}

  LaneId Lane(const std::string& queue, const std::string& type = "t");
  HolderId Holder(const std::string& executor_id = "executor-1");

  // A task of queue "q" and type "t" with a small payload.
  static TaskSpec Spec(const std::string& payload = "{}");
  NewTask New(const TaskSpec& spec);
  // Stores tasks in one call; fails the test unless that works.
  std::vector<TaskId> Submit(const std::vector<TaskSpec>& specs);
  TaskId Submit(const TaskSpec& spec) { return Submit(std::vector{spec})[0]; }
  TaskId Submit() { return Submit(Spec()); }

  // Leases a waiting task; fails the test unless that works.
  LeaseRef Claim(TaskId id, int64_t lease_us = kLeaseUs);
  bool TryClaim(TaskId id, int64_t lease_number);

  // A success, an error, or a release, decided as the engine does.
  ReportDisposition Report(const LeaseRef& lease,
                           std::variant<Payload, TaskError, Release> outcome);
  ControlOutcome Cancel(TaskId id, const std::string& reason = "");
  // Takes an expired lease back.
  void Expire(const LeaseRef& lease);

  TaskRecord Get(TaskId id, const ReadOptions& options = {});
  LiveTask Live(TaskId id);
  EndedTask Ended(TaskId id);
  int64_t Now();

  std::unique_ptr<StoreHarness> harness_;
  TaskStore& store_;
};

// Every byte value, and the sequences that quoting and parameter parsing of SQL
// get wrong.
std::string OddBytes();

}  // namespace leasehold::scheduler

#endif  // TESTS_SCHEDULER_STORE_TASK_STORE_CONFORMANCE_H_
