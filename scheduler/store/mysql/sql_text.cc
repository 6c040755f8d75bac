#include "scheduler/store/mysql/sql_text.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace leasehold::scheduler {
namespace {

bool IsAscii(absl::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x80;
  });
}

}  // namespace

SqlText& SqlText::Raw(absl::string_view sql) {
  text_.append(sql.data(), sql.size());
  return *this;
}

SqlText& SqlText::Int(int64_t value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  text_.append(digits, end);
  return *this;
}

SqlText& SqlText::Text(absl::string_view bytes) {
  if (!IsAscii(bytes)) text_.append("_binary");
  text_.push_back('\'');
  const char* run = bytes.data();
  const char* const end = bytes.data() + bytes.size();
  for (const char* c = run; c != end; ++c) {
    const char* escaped = nullptr;
    switch (*c) {
      case '\'':
        escaped = "''";
        break;
      case '\\':
        escaped = "\\\\";
        break;
      case '\0':
        escaped = "\\0";
        break;
      default:
        continue;
    }
    text_.append(run, c);
    text_.append(escaped, 2);
    run = c + 1;
  }
  text_.append(run, end);
  text_.push_back('\'');
  return *this;
}

SqlText& SqlText::IdList(absl::Span<const int64_t> ids) {
  char separator = '(';
  for (const int64_t id : ids) {
    text_.push_back(separator);
    Int(id);
    separator = ',';
  }
  text_.push_back(')');
  return *this;
}

}  // namespace leasehold::scheduler
