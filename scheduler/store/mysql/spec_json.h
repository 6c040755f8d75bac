// Labels and retry policies as the JSON that their columns hold: short, and
// readable with SQL. Empty when nothing is set.
//
//   {"team":"ocr","tier":"2"}
//   {"max_attempts":3,"backoff_schedule_us":[1000000],
//    "non_retryable_codes":["bad_input"]}
#ifndef SCHEDULER_STORE_MYSQL_SPEC_JSON_H_
#define SCHEDULER_STORE_MYSQL_SPEC_JSON_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scheduler/domain/task.h"

namespace leasehold::scheduler {

using Labels = std::vector<std::pair<std::string, std::string>>;

std::string LabelsToJson(const Labels& labels);
std::string RetryPolicyToJson(const RetryPolicySpec& policy);

// Members that are not known are left out: a later version may have written
// them. INTERNAL when the text is not what the functions above write.
absl::StatusOr<Labels> LabelsFromJson(absl::string_view json);
absl::StatusOr<RetryPolicySpec> RetryPolicyFromJson(absl::string_view json);

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_STORE_MYSQL_SPEC_JSON_H_
