// A flag's number of bytes: 16777216, 16384KiB, 16MiB or 1GiB.
#ifndef SCHEDULER_CONFIG_BYTE_SIZE_H_
#define SCHEDULER_CONFIG_BYTE_SIZE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace leasehold::scheduler {

struct ByteSize {
  int64_t bytes = 0;
};

// What Abseil's flags call.
bool AbslParseFlag(absl::string_view text, ByteSize* size, std::string* error);
std::string AbslUnparseFlag(ByteSize size);

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_CONFIG_BYTE_SIZE_H_
