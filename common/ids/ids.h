// Identifiers: how a task id reads, and random names.
//
//   ParseTaskId("42")   -> 42
//   ParseTaskId("042")  -> nullopt: the services answer NOT_FOUND
//   RandomHex(16)       -> "9f86d081884c7d65..." (32 digits)
#ifndef COMMON_IDS_IDS_H_
#define COMMON_IDS_IDS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace leasehold {

// Decimal, without sign or leading zeros.
std::string FormatTaskId(int64_t id);

// The exact inverse of FormatTaskId for ids from 1. Anything else, such as "",
// "0", "-1", "+1", "01", " 1" or a number past 2^63 - 1, names no task:
// nullopt.
std::optional<int64_t> ParseTaskId(absl::string_view text);

// 2 * `bytes` lower-case hexadecimal digits from the system's random source,
// for session ids and incarnations. Thread-safe.
std::string RandomHex(size_t bytes);

// 64 random bits from the same source, for seeding. Thread-safe.
uint64_t RandomSeed();

}  // namespace leasehold

#endif  // COMMON_IDS_IDS_H_
