#include "common/ids/ids.h"

#include <cstdint>
#include <random>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace leasehold {

std::string FormatTaskId(int64_t id) { return absl::StrCat(id); }

std::optional<int64_t> ParseTaskId(absl::string_view text) {
  int64_t id = 0;
  if (!absl::SimpleAtoi(text, &id) || id <= 0) return std::nullopt;
  // SimpleAtoi takes blanks, signs and leading zeros too; one task has one
  // name.
  if (text != absl::StrCat(id)) return std::nullopt;
  return id;
}

std::string RandomHex(size_t bytes) {
  std::random_device source;
  std::string raw;
  raw.reserve(bytes);
  while (raw.size() < bytes) {
    const unsigned int word = source();
    for (size_t i = 0; i < sizeof(word) && raw.size() < bytes; ++i) {
      raw.push_back(static_cast<char>((word >> (8 * i)) & 0xff));
    }
  }
  return absl::BytesToHexString(raw);
}

uint64_t RandomSeed() {
  std::random_device source;
  return (static_cast<uint64_t>(source()) << 32) | source();
}

}  // namespace leasehold
