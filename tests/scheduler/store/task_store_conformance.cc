#include "tests/scheduler/store/task_store_conformance.h"

#include <utility>

namespace leasehold::scheduler {

LaneId TaskStoreTest::Lane(const std::string& queue, const std::string& type) {
  const std::vector<std::pair<std::string, std::string>> names = {
      {queue, type}};
  auto lanes = store_.InternLanes(names);
  EXPECT_TRUE(lanes.ok()) << lanes.status();
  return lanes.ok() ? lanes->front() : 0;
}

HolderId TaskStoreTest::Holder(const std::string& executor_id) {
  auto holder = store_.InternHolder(executor_id, "run-1");
  EXPECT_TRUE(holder.ok()) << holder.status();
  return holder.value_or(0);
}

TaskSpec TaskStoreTest::Spec(const std::string& payload) {
  TaskSpec spec;
  spec.queue = "q";
  spec.type = "t";
  spec.payload = {PayloadKind::kJson, payload};
  return spec;
}

NewTask TaskStoreTest::New(const TaskSpec& spec) {
  NewTask task;
  task.id = store_.ReserveIds(1).value_or(0);
  task.lane_id = Lane(spec.queue, spec.type);
  task.spec = spec;
  task.content_hash = spec.payload.bytes.substr(0, 32);
  return task;
}

std::vector<TaskId> TaskStoreTest::Submit(const std::vector<TaskSpec>& specs) {
  std::vector<std::vector<NewTask>> calls(1);
  for (const TaskSpec& spec : specs) calls[0].push_back(New(spec));
  auto results = store_.SubmitTasks(calls);
  EXPECT_TRUE(results.ok()) << results.status();
  std::vector<TaskId> ids;
  if (!results.ok()) return std::vector<TaskId>(specs.size());
  EXPECT_TRUE(results->front().ok()) << results->front().status();
  for (const SubmittedTask& task : *results->front()) ids.push_back(task.id);
  return ids;
}

bool TaskStoreTest::TryClaim(TaskId id, int64_t lease_number) {
  const scheduler::Claim claim{id, lease_number, Holder(), kLeaseUs};
  auto result = store_.ClaimLeases({&claim, 1});
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() && result->won[0];
}

LeaseRef TaskStoreTest::Claim(TaskId id, int64_t lease_us) {
  const int64_t lease_number = Live(id).lease_number;
  const scheduler::Claim claim{id, lease_number, Holder(), lease_us};
  auto result = store_.ClaimLeases({&claim, 1});
  EXPECT_TRUE(result.ok() && result->won[0]) << "task " << id;
  return {id, lease_number + 1};
}

ReportDisposition TaskStoreTest::Report(
    const LeaseRef& lease, std::variant<Payload, TaskError, Release> outcome) {
  scheduler::Report report;
  report.lease = lease;
  report.holder = Holder();
  report.outcome = std::move(outcome);
  ReportDisposition disposition = ReportDisposition::kUnspecified;
  const absl::Status status = store_.ChangeTasks(
      {&lease.task_id, 1}, [&](size_t, const TaskView& view) {
        ReportDecision decision = DecideReport(view, report, 0);
        disposition = decision.disposition;
        return decision.change;
      });
  EXPECT_TRUE(status.ok()) << status;
  return disposition;
}

ControlOutcome TaskStoreTest::Cancel(TaskId id, const std::string& reason) {
  ControlOutcome outcome = ControlOutcome::kNotFound;
  const absl::Status status =
      store_.ChangeTasks({&id, 1}, [&](size_t, const TaskView& view) {
        ControlDecision decision = DecideCancel(view, kLeaseUs, reason);
        outcome = decision.outcome;
        return decision.change;
      });
  EXPECT_TRUE(status.ok()) << status;
  return outcome;
}

void TaskStoreTest::Expire(const LeaseRef& lease) {
  const absl::Status status = store_.ChangeTasks(
      {&lease.task_id, 1}, [&](size_t, const TaskView& view) {
        return DecideExpiry(view, lease, true, 0);
      });
  EXPECT_TRUE(status.ok()) << status;
}

TaskRecord TaskStoreTest::Get(TaskId id, const ReadOptions& options) {
  auto records = store_.GetTasks({&id, 1}, options);
  EXPECT_TRUE(records.ok()) << records.status();
  if (!records.ok() || records->size() != 1) {
    ADD_FAILURE() << "no task " << id;
    return {};
  }
  return std::move(records->front());
}

LiveTask TaskStoreTest::Live(TaskId id) {
  const TaskRecord record = Get(id);
  EXPECT_TRUE(record.live.has_value()) << "task " << id << " is not live";
  return record.live.value_or(LiveTask{});
}

EndedTask TaskStoreTest::Ended(TaskId id) {
  const TaskRecord record =
      Get(id, {.payload = false, .result = true, .attempts = false});
  EXPECT_TRUE(record.ended.has_value()) << "task " << id << " has not ended";
  return record.ended.value_or(EndedTask{});
}

int64_t TaskStoreTest::Now() {
  auto now_us = store_.NowUs();
  EXPECT_TRUE(now_us.ok()) << now_us.status();
  return now_us.value_or(0);
}

std::string OddBytes() {
  std::string bytes;
  for (int c = 0; c < 256; ++c) bytes.push_back(static_cast<char>(c));
  bytes += ":name ':a' \" : \" ` :b ` '' \\' \\\\ \\";
  bytes += "-- :c\n/* :d */ '; DROP TABLE task_live; \xF0\x9F\x98";
  return bytes;
}

}  // namespace leasehold::scheduler
