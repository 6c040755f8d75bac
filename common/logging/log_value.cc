#include "common/logging/log_value.h"

#include <algorithm>

#include "common/text/utf8.h"

namespace leasehold {
namespace {

constexpr size_t kMaxValueBytes = 1024;

bool IsPlain(char c) {
  return c > ' ' && c < 0x7F && c != '"' && c != '\\' && c != '=';
}

}  // namespace

void AppendLogValue(std::string* line, absl::string_view value) {
  if (!value.empty() && value.size() <= kMaxValueBytes &&
      std::all_of(value.begin(), value.end(), IsPlain)) {
    line->append(value.data(), value.size());
    return;
  }
  line->append(QuoteForMessage(value, kMaxValueBytes));
}

void AppendLogEvent(std::string* line, absl::string_view event) {
  for (const char c : event) {
    line->push_back(c >= ' ' && c < 0x7F ? c : '?');
  }
}

}  // namespace leasehold
