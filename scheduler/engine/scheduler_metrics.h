// What the scheduler counts, all in one place, with the help texts that tell an
// operator how to read it.
#ifndef SCHEDULER_ENGINE_SCHEDULER_METRICS_H_
#define SCHEDULER_ENGINE_SCHEDULER_METRICS_H_

#include "common/metrics/metrics.h"

namespace leasehold::scheduler {

// A default-constructed one counts nothing: for tests.
struct SchedulerMetrics {
  SchedulerMetrics() = default;
  explicit SchedulerMetrics(MetricRegistry& registry);

  Counter tasks_submitted;
  Counter submits_refused;
  Histogram submit_wait;
  Histogram submit_batch_tasks;

  Counter leases_made;
  Counter leases_direct;
  Counter claims_lost;
  Histogram claim_batch_tasks;
  Histogram queue_wait;
  Counter leases_returned_unsent;

  Counter reports_recorded;
  Counter reports_duplicate;
  Counter reports_stale;
  Counter reports_refused;
  Counter reports_try_again;
  Histogram finish_batch_reports;
  Histogram finish_wait;

  Counter tasks_succeeded;
  Counter tasks_failed;
  Counter tasks_cancelled;
  Counter tasks_retried;

  Counter leases_renewed;
  Counter leases_lost;
  Counter leases_expired;
  Histogram renew_batch_leases;

  Counter reads_refused;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_ENGINE_SCHEDULER_METRICS_H_
