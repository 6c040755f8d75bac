#include "common/text/utf8.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace leasehold {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";

uint8_t Byte(absl::string_view text, size_t pos) {
  return static_cast<uint8_t>(text[pos]);
}

// What stands at one position: a character of `length` bytes, or, if not valid,
// `length` bytes that began one, at least 1.
struct Unit {
  size_t length = 1;
  bool valid = false;
};

// The range of the second byte says all about overlong forms and surrogates.
struct Lead {
  size_t length = 0;  // 0: no character starts with this byte.
  uint8_t second_min = 0x80;
  uint8_t second_max = 0xBF;
};

Lead LeadOf(uint8_t byte) {
  if (byte < 0x80) return {.length = 1};
  if (byte < 0xC2) return {};
  if (byte < 0xE0) return {.length = 2};
  if (byte == 0xE0) return {.length = 3, .second_min = 0xA0};
  if (byte == 0xED) return {.length = 3, .second_max = 0x9F};
  if (byte < 0xF0) return {.length = 3};
  if (byte == 0xF0) return {.length = 4, .second_min = 0x90};
  if (byte == 0xF4) return {.length = 4, .second_max = 0x8F};
  if (byte < 0xF4) return {.length = 4};
  return {};
}

Unit UnitAt(absl::string_view text, size_t pos) {
  const Lead lead = LeadOf(Byte(text, pos));
  if (lead.length == 0) return {};
  for (size_t i = 1; i < lead.length; ++i) {
    const uint8_t min = i == 1 ? lead.second_min : 0x80;
    const uint8_t max = i == 1 ? lead.second_max : 0xBF;
    if (pos + i >= text.size() || Byte(text, pos + i) < min ||
        Byte(text, pos + i) > max) {
      return {.length = i, .valid = false};
    }
  }
  return {.length = lead.length, .valid = true};
}

void AppendHexEscape(std::string* out, uint8_t byte) {
  constexpr char kDigits[] = "0123456789abcdef";
  absl::StrAppend(out, "\\x");
  out->push_back(kDigits[byte >> 4]);
  out->push_back(kDigits[byte & 15]);
}

// U+0080 to U+009F: control characters that terminals obey.
bool IsC1Control(absl::string_view text, size_t pos, const Unit& unit) {
  return unit.length == 2 && Byte(text, pos) == 0xC2 &&
         Byte(text, pos + 1) < 0xA0;
}

void AppendEscaped(std::string* out, absl::string_view text, size_t pos,
                   const Unit& unit) {
  const uint8_t first = Byte(text, pos);
  if (!unit.valid || first < 0x20 || first == 0x7F ||
      IsC1Control(text, pos, unit)) {
    for (size_t i = 0; i < unit.length; ++i) {
      AppendHexEscape(out, Byte(text, pos + i));
    }
    return;
  }
  if (first == '"' || first == '\\') out->push_back('\\');
  out->append(text.data() + pos, unit.length);
}

}  // namespace

bool IsValidUtf8(absl::string_view text) {
  for (size_t pos = 0; pos < text.size();) {
    if (Byte(text, pos) < 0x80) {
      ++pos;
      continue;
    }
    const Unit unit = UnitAt(text, pos);
    if (!unit.valid) return false;
    pos += unit.length;
  }
  return true;
}

std::string SanitizeUtf8(absl::string_view text) {
  if (IsValidUtf8(text)) return std::string(text);
  std::string out;
  out.reserve(text.size() + 16);
  for (size_t pos = 0; pos < text.size();) {
    const Unit unit = UnitAt(text, pos);
    if (unit.valid) {
      out.append(text.data() + pos, unit.length);
    } else {
      out += kReplacement;
    }
    pos += unit.length;
  }
  return out;
}

std::string TruncateUtf8(absl::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  // Back to where the character that the cut would split begins: at most three
  // bytes, and not at all where no character is.
  size_t cut = max_bytes;
  for (size_t back = 1; back <= 3 && back <= max_bytes; ++back) {
    const Unit unit = UnitAt(text, max_bytes - back);
    if (unit.valid && unit.length > back) {
      cut = max_bytes - back;
      break;
    }
  }
  return std::string(text.substr(0, cut));
}

std::string QuoteForMessage(absl::string_view value, size_t max_bytes) {
  std::string out = "\"";
  size_t pos = 0;
  while (pos < value.size()) {
    const Unit unit = UnitAt(value, pos);
    if (pos + unit.length > max_bytes) break;
    AppendEscaped(&out, value, pos, unit);
    pos += unit.length;
  }
  absl::StrAppend(&out, "\"", pos < value.size() ? "..." : "");
  return out;
}

}  // namespace leasehold
