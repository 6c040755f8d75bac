#include "scheduler/store/mysql/rows.h"

#include <utility>

#include "common/status/status_macros.h"
#include "scheduler/store/mysql/spec_json.h"
#include "scheduler/store/mysql/statements.h"

namespace leasehold::scheduler {

// spec 14, create_us, payload, live 18, ended 9, error 4, result, executor_id.
const char* const kTaskTypes =
    "ittiiiiiittttt"
    "it"
    "iiiiiiiiiiiiiiiiii"
    "iiiiiiiii"
    "itti"
    "tt";

absl::StatusOr<TaskSpec> SpecFromRow(const Rows& rows, size_t row) {
  TaskSpec spec;
  spec.queue = rows.Text(row, 1);
  spec.type = rows.Text(row, 2);
  spec.priority = static_cast<int>(rows.Int(row, 3));
  spec.payload.kind = static_cast<PayloadKind>(rows.Int(row, 4));
  spec.schedule_us = rows.Int(row, 5);
  spec.expire_us = rows.Int(row, 6);
  spec.attempt_timeout_us = rows.Int(row, 7);
  spec.batch_id = rows.Int(row, 8);
  spec.partition_key = rows.Text(row, 9);
  spec.idempotency_key = rows.Text(row, 10);
  spec.traceparent = rows.Text(row, 11);
  LEASEHOLD_ASSIGN_OR_RETURN(spec.labels, LabelsFromJson(rows.Text(row, 12)));
  LEASEHOLD_ASSIGN_OR_RETURN(spec.retry_policy,
                             RetryPolicyFromJson(rows.Text(row, 13)));
  return spec;
}

LiveTask LiveFromRow(const Rows& rows, size_t row, size_t first) {
  const auto next = [&] { return rows.Int(row, first++); };
  LiveTask task;
  task.id = next();
  task.lane_id = static_cast<LaneId>(next());
  task.phase = static_cast<Phase>(next());
  task.state = static_cast<TaskState>(next());
  task.priority = static_cast<int>(next());
  task.run_us = next();
  task.attempt = static_cast<int>(next());
  task.rate_limited_count = static_cast<int>(next());
  task.expiry_count = static_cast<int>(next());
  task.lease_number = next();
  task.holder = static_cast<HolderId>(next());
  task.lease_end = static_cast<LeaseEnd>(next());
  task.lease_expire_us = next();
  task.attempt_expire_us = next();
  task.cancel_expire_us = next();
  task.state_us = next();
  task.start_us = next();
  task.first_start_us = next();
  return task;
}

namespace {

EndedTask EndedFromRow(Rows& rows, size_t row, size_t first) {
  const auto next = [&] { return rows.Int(row, first++); };
  EndedTask task;
  task.state = static_cast<TaskState>(next());
  task.reason = static_cast<FailureReason>(next());
  task.lease_number = next();
  task.lease_expire_us = next();
  task.holder = static_cast<HolderId>(next());
  task.attempt = static_cast<int>(next());
  task.start_us = next();
  task.finish_us = next();
  task.result.kind = static_cast<PayloadKind>(next());
  const int64_t error_class = next();
  if (error_class >= 0) {
    task.error.emplace();
    task.error->error_class = static_cast<ErrorClass>(error_class);
    task.error->code = rows.TakeText(row, first);
    task.error->message = rows.TakeText(row, first + 1);
    task.error->retry_after_us = rows.Int(row, first + 2);
  }
  task.result.bytes = rows.TakeText(row, first + 3);
  return task;
}

}  // namespace

absl::StatusOr<TaskRecord> RecordFromRow(Rows& rows, size_t row) {
  constexpr size_t kLive = kSpecColumnCount + 2;
  constexpr size_t kEnded = kLive + kLiveColumnCount;
  constexpr size_t kExecutor = kEnded + 14;
  TaskRecord record;
  record.id = rows.Int(row, 0);
  LEASEHOLD_ASSIGN_OR_RETURN(record.spec, SpecFromRow(rows, row));
  record.create_us = rows.Int(row, kSpecColumnCount);
  record.spec.payload.bytes = rows.TakeText(row, kSpecColumnCount + 1);
  if (rows.Int(row, kLive) != 0) {
    record.live = LiveFromRow(rows, row, kLive);
  } else if (rows.Int(row, kEnded) != 0) {
    record.ended = EndedFromRow(rows, row, kEnded);
  }
  record.executor_id = rows.TakeText(row, kExecutor);
  return record;
}

}  // namespace leasehold::scheduler
