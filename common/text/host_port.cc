#include "common/text/host_port.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace leasehold {
namespace {

bool IsPort(absl::string_view text) {
  int port = 0;
  // SimpleAtoi alone would take blanks and a sign.
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(text, &port) && port >= 1 && port <= 65535;
}

bool IsIpv6Character(char c) {
  return absl::ascii_isxdigit(c) || c == ':' || c == '.';
}

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '_';
}

}  // namespace

bool IsHostPort(absl::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos || !IsPort(text.substr(colon + 1))) {
    return false;
  }
  absl::string_view host = text.substr(0, colon);
  if (!host.empty() && host.front() == '[') {
    if (host.size() < 4 || host.back() != ']') return false;
    host = host.substr(1, host.size() - 2);
    const size_t percent = std::min(host.find('%'), host.size());
    const absl::string_view zone = host.substr(percent);  // "%eth0"
    return percent > 0 && zone.size() != 1 &&
           std::all_of(host.begin(), host.begin() + percent, IsIpv6Character) &&
           (zone.empty() ||
            std::all_of(zone.begin() + 1, zone.end(), IsNameCharacter));
  }
  return !host.empty() &&
         std::all_of(host.begin(), host.end(), IsNameCharacter);
}

}  // namespace leasehold
