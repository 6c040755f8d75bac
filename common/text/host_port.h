// Where a server is reached: "127.0.0.1:7070", "scheduler:7070", "[::1]:7070".
#ifndef COMMON_TEXT_HOST_PORT_H_
#define COMMON_TEXT_HOST_PORT_H_

#include "absl/strings/string_view.h"

namespace leasehold {

// A host, a colon and a port from 1 to 65535. No scheme, path, user or blank;
// an IPv6 address stands in brackets.
bool IsHostPort(absl::string_view text);

}  // namespace leasehold

#endif  // COMMON_TEXT_HOST_PORT_H_
