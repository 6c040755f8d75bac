#include "scheduler/config/byte_size.h"

#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace leasehold::scheduler {
namespace {

struct Unit {
  const char* suffix;
  int shift;
};
constexpr Unit kUnits[] = {{"GiB", 30}, {"MiB", 20}, {"KiB", 10}};

}  // namespace

bool AbslParseFlag(absl::string_view text, ByteSize* size, std::string* error) {
  int shift = 0;
  for (const Unit& unit : kUnits) {
    if (absl::ConsumeSuffix(&text, unit.suffix)) {
      shift = unit.shift;
      break;
    }
  }
  int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number) || number < 0 ||
      number > std::numeric_limits<int64_t>::max() >> shift) {
    *error = "want a number of bytes such as 65536, 64KiB or 16MiB";
    return false;
  }
  size->bytes = number << shift;
  return true;
}

std::string AbslUnparseFlag(ByteSize size) {
  for (const Unit& unit : kUnits) {
    const int64_t one = int64_t{1} << unit.shift;
    if (size.bytes != 0 && size.bytes % one == 0) {
      return absl::StrCat(size.bytes / one, unit.suffix);
    }
  }
  return absl::StrCat(size.bytes);
}

}  // namespace leasehold::scheduler
