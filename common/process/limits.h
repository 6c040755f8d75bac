// Limits that the system sets to this process, and what it starts with.
#ifndef COMMON_PROCESS_LIMITS_H_
#define COMMON_PROCESS_LIMITS_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace leasehold {

// Raises the number of files that may be open to the hard limit, but not past
// 65,536, since some libraries loop over all of them. Returns the limit that
// now holds; never lowers it.
absl::StatusOr<int64_t> RaiseFileLimit();

// Opens /dev/null as those of the descriptors 0-2 that are closed, so that no
// socket gets their number and log lines into it. First thing in main.
void OpenStandardDescriptors();

}  // namespace leasehold

#endif  // COMMON_PROCESS_LIMITS_H_
