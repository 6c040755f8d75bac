// Shared by the sources of this folder only.
#ifndef COMMON_LOGGING_LOG_INTERNAL_H_
#define COMMON_LOGGING_LOG_INTERNAL_H_

#include <cstdint>

#include "common/logging/log.h"

namespace leasehold {

// As Log, with ` suppressed=n` at the end unless it is 0.
void LogWithSuppressed(LogLevel level, absl::string_view event,
                       LogFields fields, int64_t suppressed);

}  // namespace leasehold

#endif  // COMMON_LOGGING_LOG_INTERNAL_H_
