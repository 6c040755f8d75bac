#include "scheduler/engine/scheduler_metrics.h"

namespace leasehold::scheduler {

SchedulerMetrics::SchedulerMetrics(MetricRegistry& registry) {
  const auto counter = [&](const char* name, const char* help,
                           MetricLabels labels = {}) {
    return registry.AddCounter(name, help, std::move(labels));
  };
  const auto seconds = [&](const char* name, const char* help) {
    return registry.AddHistogram(name, help, LatencyBuckets());
  };
  const auto sizes = [&](const char* name, const char* help) {
    return registry.AddHistogram(name, help, SizeBuckets());
  };

  tasks_submitted = counter(
      "leasehold_tasks_submitted_total",
      "Tasks stored. Its rate against leasehold_tasks_ended_total shows "
      "whether the backlog grows");
  submits_refused =
      counter("leasehold_submits_refused_total",
              "Submit calls refused because the queue in memory was full. Not "
              "zero: clients submit faster than the database stores");
  submit_wait = seconds("leasehold_submit_wait_seconds",
                        "How long a submit waited for the batch before its "
                        "own. Grows when the database is the limit");
  submit_batch_tasks =
      sizes("leasehold_submit_batch_tasks", "Tasks stored by one transaction");

  leases_made = counter("leasehold_leases_total", "Leases made");
  leases_direct = counter(
      "leasehold_leases_direct_total",
      "Leases made by the transaction that stored the task, because an "
      "executor was free. Few against leasehold_leases_total: tasks wait "
      "for slots");
  claims_lost =
      counter("leasehold_claims_lost_total",
              "Claims of tasks that had changed or that another replica got. A "
              "high share: replicas compete for the same tasks");
  claim_batch_tasks =
      sizes("leasehold_claim_batch_tasks", "Leases made by one statement");
  queue_wait = seconds("leasehold_queue_wait_seconds",
                       "From when a task was due to its lease. Grows when "
                       "executors have no free slots");
  leases_returned_unsent =
      counter("leasehold_leases_returned_unsent_total",
              "Leases given back because the session ended before they could "
              "be sent");

  const char* const reports = "leasehold_reports_total";
  const char* const reports_help =
      "Results, errors and releases, by what became of them. Stale: somebody "
      "else has leased the task since; many mean leases are too short";
  reports_recorded =
      counter(reports, reports_help, {{"disposition", "recorded"}});
  reports_duplicate =
      counter(reports, reports_help, {{"disposition", "duplicate"}});
  reports_stale = counter(reports, reports_help, {{"disposition", "stale"}});
  reports_refused =
      counter(reports, reports_help, {{"disposition", "refused"}});
  reports_try_again =
      counter(reports, reports_help, {{"disposition", "try_again"}});
  finish_batch_reports = sizes("leasehold_finish_batch_reports",
                               "Reports written by one transaction");
  finish_wait = seconds("leasehold_finish_wait_seconds",
                        "How long a report waited for the batch before its "
                        "own");

  const char* const ended = "leasehold_tasks_ended_total";
  const char* const ended_help = "Tasks that ended, by how";
  tasks_succeeded = counter(ended, ended_help, {{"state", "succeeded"}});
  tasks_failed = counter(ended, ended_help, {{"state", "failed"}});
  tasks_cancelled = counter(ended, ended_help, {{"state", "cancelled"}});
  tasks_retried = counter("leasehold_tasks_requeued_total",
                          "Times a leased task went back to waiting, for "
                          "whatever reason");

  leases_renewed =
      counter("leasehold_leases_renewed_total", "Renewals by heartbeats");
  leases_lost = counter("leasehold_leases_lost_total",
                        "Leases that a heartbeat named but its executor no "
                        "longer held");
  leases_expired = counter("leasehold_leases_expired_total",
                           "Leases taken back because they were not renewed. "
                           "Executors died, hung, or could not be reached");
  renew_batch_leases =
      sizes("leasehold_renew_batch_leases", "Leases renewed by one round");

  reads_refused = counter("leasehold_reads_refused_total",
                          "Reads refused because too many were waiting");
}

}  // namespace leasehold::scheduler
