// Checks JSON without changing it.
#ifndef COMMON_TEXT_JSON_H_
#define COMMON_TEXT_JSON_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace leasehold {

// OK when `text` is exactly one JSON value (RFC 8259) in valid UTF-8, with
// blanks around it at most. Numbers are checked as text: 9007199254740993 and
// 1e999 are fine. Any depth of nesting is fine and takes no stack. Otherwise
// INVALID_ARGUMENT:
//   invalid JSON at byte 17: Missing a comma or '}' after an object member
absl::Status ValidateJson(absl::string_view text);

}  // namespace leasehold

#endif  // COMMON_TEXT_JSON_H_
