// Builds one SQL statement; the only place where values are quoted.
//
//   SqlText sql("INSERT INTO lanes (id, queue) VALUES ");
//   sql.Row(7, "mail").Row(8, "it's");
//   connection.Execute("add_lanes", sql.str());
//
// Quotes are doubled, never written as \', and a backslash is written twice:
// soci scans statements for :name outside single quotes, and read like this it
// never leaves a quoted value early. Bytes beyond ASCII get the _binary
// introducer, so that no character set rejects or converts them.
#ifndef SCHEDULER_STORE_MYSQL_SQL_TEXT_H_
#define SCHEDULER_STORE_MYSQL_SQL_TEXT_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace leasehold::scheduler {

class SqlText {
 public:
  SqlText() = default;
  explicit SqlText(absl::string_view head) : text_(head.data(), head.size()) {}

  // Program text, never a value.
  SqlText& Raw(absl::string_view sql);
  SqlText& Int(int64_t value);
  // Quoted and escaped; any bytes.
  SqlText& Text(absl::string_view bytes);
  // "(1,2,3)", which must not be empty.
  SqlText& IdList(absl::Span<const int64_t> ids);

  // One row of a VALUES list, with the comma before it if there is a row
  // already. Columns are integers, enumerators, texts, or SqlNull.
  struct SqlNull {};
  template <typename... Columns>
  SqlText& Row(const Columns&... columns) {
    if (rows_++ > 0) text_.push_back(',');
    char separator = '(';
    ((text_.push_back(std::exchange(separator, ',')), Column(columns)), ...);
    text_.push_back(')');
    return *this;
  }

  size_t rows() const { return rows_; }
  size_t size() const { return text_.size(); }
  const std::string& str() const { return text_; }

 private:
  template <typename T>
  void Column(const T& value) {
    if constexpr (std::is_enum_v<T> || std::integral<T>) {
      Int(static_cast<int64_t>(value));
    } else if constexpr (std::same_as<T, SqlNull>) {
      Raw("NULL");
    } else {
      Text(value);
    }
  }

  std::string text_;
  size_t rows_ = 0;
};

}  // namespace leasehold::scheduler

#endif  // SCHEDULER_STORE_MYSQL_SQL_TEXT_H_
