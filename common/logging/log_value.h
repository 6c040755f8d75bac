// How a value reads in a log line.
#ifndef COMMON_LOGGING_LOG_VALUE_H_
#define COMMON_LOGGING_LOG_VALUE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace leasehold {

// Appends `value` bare when it is made of plain characters, else quoted and
// escaped; cut after 1 KiB.
void AppendLogValue(std::string* line, absl::string_view value);

// Appends `event` with control characters and invalid bytes replaced by '?'.
void AppendLogEvent(std::string* line, absl::string_view event);

}  // namespace leasehold

#endif  // COMMON_LOGGING_LOG_VALUE_H_
