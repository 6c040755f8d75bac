#include "common/text/json.h"

#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <cstddef>

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

}  // namespace

absl::Status ValidateJson(absl::string_view text) {
  constexpr unsigned kFlags =
      rapidjson::kParseIterativeFlag | rapidjson::kParseNumbersAsStringsFlag |
      rapidjson::kParseValidateEncodingFlag | rapidjson::kParseStopWhenDoneFlag;
  rapidjson::MemoryStream stream(text.data(), text.size());
  rapidjson::Reader reader;
  Ignore ignore;
  const rapidjson::ParseResult result = reader.Parse<kFlags>(stream, ignore);
  if (result.IsError()) {
    return InvalidAt(result.Offset(),
                     rapidjson::GetParseError_En(result.Code()));
  }
  const size_t end = SkipBlanks(text, stream.Tell());
  if (end < text.size()) {
    return InvalidAt(end,
                     "The document root must not be followed by other "
                     "values");
  }
  return absl::OkStatus();
}

}  // namespace leasehold
