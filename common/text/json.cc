#include "common/text/json.h"

#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace leasehold {
namespace {

// Takes every event and keeps nothing.
using Ignore = rapidjson::BaseReaderHandler<rapidjson::UTF8<>, void>;

absl::Status InvalidAt(size_t offset, absl::string_view reason) {
  return absl::InvalidArgumentError(absl::StrCat(
      "invalid JSON at byte ", offset, ": ", absl::StripSuffix(reason, ".")));
}

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// The parser takes a NUL for the end of its input.
size_t SkipBlanks(absl::string_view text, size_t pos) {
  while (pos < text.size() && IsBlank(text[pos])) ++pos;
  return pos;
}

bool IsDigit(absl::string_view text, size_t pos) {
  return pos < text.size() && text[pos] >= '0' && text[pos] <= '9';
}

size_t SkipDigits(absl::string_view text, size_t pos) {
  while (IsDigit(text, pos)) ++pos;
  return pos;
}

// Where the number ends whose first digit is at `pos`.
size_t EndOfNumber(absl::string_view text, size_t pos) {
  size_t end = text[pos] == '0' ? pos + 1 : SkipDigits(text, pos);
  if (end < text.size() && text[end] == '.' && IsDigit(text, end + 1)) {
    end = SkipDigits(text, end + 1);
  }
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    size_t digits = end + 1;
    if (digits < text.size() && (text[digits] == '+' || text[digits] == '-')) {
      ++digits;
    }
    if (IsDigit(text, digits)) end = SkipDigits(text, digits);
  }
  return end;
}

size_t EndOfString(absl::string_view text, size_t pos) {
  for (++pos; pos < text.size() && text[pos] != '"'; ++pos) {
    if (text[pos] == '\\') ++pos;
  }
  return std::min(pos + 1, text.size());
}

// `text` with each number outside strings made a 1 and blanks of the same
// length. As valid as before, each byte at its old place.
std::string WithoutMagnitudes(absl::string_view text) {
  std::string out(text);
  for (size_t pos = 0; pos < text.size();) {
    if (text[pos] == '"') {
      pos = EndOfString(text, pos);
    } else if (IsDigit(text, pos)) {
      const size_t end = EndOfNumber(text, pos);
      out[pos] = text[pos] == '0' ? '0' : '1';
      std::fill(out.begin() + static_cast<std::ptrdiff_t>(pos) + 1,
                out.begin() + static_cast<std::ptrdiff_t>(end), ' ');
      pos = end;
    } else {
      ++pos;
    }
  }
  return out;
}

rapidjson::ParseResult Parse(absl::string_view text, size_t* end) {
  constexpr unsigned kFlags =
      rapidjson::kParseIterativeFlag | rapidjson::kParseNumbersAsStringsFlag |
      rapidjson::kParseValidateEncodingFlag | rapidjson::kParseStopWhenDoneFlag;
  rapidjson::MemoryStream stream(text.data(), text.size());
  rapidjson::Reader reader;
  Ignore ignore;
  const rapidjson::ParseResult result = reader.Parse<kFlags>(stream, ignore);
  *end = stream.Tell();
  return result;
}

}  // namespace

absl::Status ValidateJson(absl::string_view text) {
  size_t end = 0;
  rapidjson::ParseResult result = Parse(text, &end);
  // The parser refuses numbers past the range of a double even where it takes
  // them as text. Once per text, so that many of them cost no more than one.
  std::string small;
  if (result.Code() == rapidjson::kParseErrorNumberTooBig) {
    small = WithoutMagnitudes(text);
    text = small;
    result = Parse(text, &end);
  }
  if (result.IsError()) {
    return InvalidAt(result.Offset(),
                     rapidjson::GetParseError_En(result.Code()));
  }
  end = SkipBlanks(text, end);
  if (end < text.size()) {
    return InvalidAt(end,
                     "The document root must not be followed by other values");
  }
  return absl::OkStatus();
}

}  // namespace leasehold
