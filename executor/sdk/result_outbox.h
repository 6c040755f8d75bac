// Reports that the scheduler has not acknowledged yet: results, errors and
// releases. Each is sent again, on whichever stream, until it is acknowledged.
//
// Pure: no I/O, no threads, no clock reads. Not thread-safe.
#ifndef EXECUTOR_SDK_RESULT_OUTBOX_H_
#define EXECUTOR_SDK_RESULT_OUTBOX_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "common/backoff/backoff.h"
#include "common/time/clock.h"
#include "executor/sdk/limits.h"
#include "executor/sdk/task_run.h"
#include "leasehold/v1/executor_service.pb.h"

namespace leasehold::executor {

using Report = std::variant<v1::TaskResult, v1::LeaseRelease>;

class ResultOutbox {
 public:
  // Small numbers in tests.
  struct Limits {
    size_t unacknowledged_bytes = kMaxUnacknowledgedBytes;
    size_t message_bytes = kMaxSentMessageBytes;
    size_t message_reports = kMaxReportsPerMessage;
  };

  ResultOutbox() : ResultOutbox(Limits()) {}
  explicit ResultOutbox(Limits limits) : limits_(limits) {}

  // A lease has one report; a second one is ignored.
  void Add(const LeaseKey& key, Report report);

  // True while more than the bound waits: no new work should start.
  bool full() const { return bytes_ >= limits_.unacknowledged_bytes; }
  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }

  // Fills `message` with a Results or Released of the oldest unsent reports of
  // one kind. No more than the bound is ever under way unacknowledged. False
  // when there is nothing to send.
  bool NextMessage(SteadyTime now, v1::ExecutorMessage* message);

  // True when the report is settled and the lease can be forgotten. TRY_AGAIN
  // sends it again, `jitter` in [0, 1) within its wait.
  bool OnAck(const LeaseKey& key, v1::ReportDisposition disposition,
             SteadyTime now, double jitter);

  // What was under way on the older stream may be lost: everything is unsent.
  void OnNewStream();

  // When reports that were answered TRY_AGAIN are due.
  std::optional<SteadyTime> NextRetry() const;

 private:
  enum class State { kUnsent, kSent, kRetrying };
  struct Entry {
    Report report;
    size_t bytes = 0;
    State state = State::kUnsent;
  };

  void MoveDueRetries(SteadyTime now);
  void AppendTo(Entry& entry, v1::ExecutorMessage* message);
  void LeaveFlight(const Entry& entry);

  const Limits limits_;
  absl::flat_hash_map<LeaseKey, Entry> entries_;
  // May name reports that are settled by now; those are skipped.
  std::deque<LeaseKey> unsent_;
  std::deque<LeaseKey> retrying_;
  SteadyTime retry_at_;
  Backoff backoff_{absl::Milliseconds(200), absl::Seconds(5)};
  size_t bytes_ = 0;
  size_t in_flight_bytes_ = 0;
};

}  // namespace leasehold::executor

#endif  // EXECUTOR_SDK_RESULT_OUTBOX_H_
