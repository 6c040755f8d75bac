// What can be tuned, after the flags have been read and checked
// (scheduler/config). Plain values; every default is the flag's default.
#ifndef SCHEDULER_ENGINE_OPTIONS_H_
#define SCHEDULER_ENGINE_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace leasehold::scheduler {

struct LeaseTimes {
  absl::Duration lease_duration = absl::Seconds(15);
  // A third of the lease, so that two lost heartbeats still leave time for a
  // third.
  absl::Duration heartbeat_interval = absl::Seconds(5);
  absl::Duration accept_timeout = absl::Seconds(10);
};

// Bounds in memory and in size of one transaction. Beyond a queue's bound calls
// get RESOURCE_EXHAUSTED (submits) or TRY_AGAIN (reports).
struct EngineBounds {
  size_t submit_queue_tasks = 20'000;
  size_t submit_queue_bytes = 64u << 20;
  size_t submit_batch_tasks = 500;
  size_t submit_batch_bytes = 8u << 20;
  size_t claim_batch_tasks = 200;
  size_t finish_queue_reports = 50'000;
  size_t finish_queue_bytes = 64u << 20;
  size_t finish_batch_reports = 500;
  size_t finish_batch_bytes = 8u << 20;
  size_t ready_index_tasks = 100'000;
  size_t ready_index_payload_bytes = 64u << 20;
  size_t read_queue_calls = 2'000;
  int read_threads = 4;
  size_t watches = 10'000;
  size_t sessions = 2'000;
  size_t session_outbox_bytes = 16u << 20;
};

struct EngineOptions {
  std::string scheduler_id;  // Shown in logs and session ids.
  std::string address;       // As operators see it.
  LeaseTimes leases;
  EngineBounds bounds;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_ENGINE_OPTIONS_H_
