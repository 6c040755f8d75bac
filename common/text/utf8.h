// Text as it may enter a Protobuf `string`, a log line or an error message.
//
// Valid means what RFC 3629 says: no overlong forms, no surrogates, nothing
// past U+10FFFF. NUL is a valid character and is kept.
#ifndef COMMON_TEXT_UTF8_H_
#define COMMON_TEXT_UTF8_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace leasehold {

bool IsValidUtf8(absl::string_view text);

// `text` with every invalid part replaced by U+FFFD, one for each longest run
// of bytes that began a character, as the Unicode standard advises. The result
// may be up to three times as long.
std::string SanitizeUtf8(absl::string_view text);

// The longest start of `text` that has at most `max_bytes` bytes and ends on a
// character boundary. Valid text stays valid; bytes that are no UTF-8 are cut
// anywhere.
std::string TruncateUtf8(absl::string_view text, size_t max_bytes);

// `value` between double quotes, for an error message: control characters,
// quotes and invalid bytes escaped, and cut with "..." after about `max_bytes`
// bytes.
std::string QuoteForMessage(absl::string_view value, size_t max_bytes = 64);

}  // namespace leasehold

#endif  // COMMON_TEXT_UTF8_H_
