// Counts and times every call of a store.
//
//   leasehold_sql_seconds{method}         how long calls take, retries included
//   leasehold_sql_errors_total{method,code}
//   leasehold_sql_batch_size{method}      items a call
//   leasehold_sql_retries_total{method,cause}
#ifndef SCHEDULER_STORE_METERED_TASK_STORE_H_
#define SCHEDULER_STORE_METERED_TASK_STORE_H_

#include <functional>
#include <memory>

#include "absl/strings/string_view.h"
#include "common/metrics/metrics.h"
#include "common/time/clock.h"
#include "scheduler/store/task_store.h"

namespace leasehold::scheduler {

// `metrics` and `clock` outlive the store.
std::unique_ptr<TaskStore> MeterTaskStore(std::unique_ptr<TaskStore> store,
                                          MetricRegistry& metrics,
                                          const Clock& clock);

// For OpenMySqlStore's `on_retry`: counts transactions that ran again.
std::function<void(absl::string_view method, absl::string_view cause)>
CountRetries(MetricRegistry& metrics);

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_STORE_METERED_TASK_STORE_H_
