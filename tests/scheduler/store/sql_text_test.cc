#include "scheduler/store/mysql/sql_text.h"

#include <gtest/gtest.h>

#include <vector>

namespace leasehold::scheduler {
namespace {

using std::string_literals::operator""s;

TEST(SqlTextTest, DoublesQuotesAndBackslashes) {
  EXPECT_EQ(SqlText().Text("it's \\ :x").str(), "'it''s \\\\ :x'");
}

TEST(SqlTextTest, WritesNulAsAnEscape) {
  EXPECT_EQ(SqlText().Text("a\0b"s).str(), "'a\\0b'");
}

TEST(SqlTextTest, MarksBytesBeyondAsciiAsBinary) {
  EXPECT_EQ(SqlText().Text("\xFF").str(), "_binary'\xFF'");
  EXPECT_EQ(SqlText().Text("plain").str(), "'plain'");
}

TEST(SqlTextTest, KeepsEveryQuoteBalanced) {
  std::string bytes;
  for (int c = 0; c < 256; ++c) bytes.push_back(static_cast<char>(c));

  const std::string sql = SqlText().Text(bytes + bytes).str();

  // As soci and the server read it: a quote ends the text unless doubled.
  bool quoted = false;
  bool escaped = false;
  for (const char c : sql) {
    if (c == '\'' && !escaped) quoted = !quoted;
    escaped = quoted && c == '\\' && !escaped;
  }
  EXPECT_FALSE(quoted);
  EXPECT_FALSE(escaped);
}

TEST(SqlTextTest, BuildsRows) {
  SqlText sql("VALUES ");
  sql.Row(1, "a", SqlText::SqlNull{}).Row(-2, "", 3);

  EXPECT_EQ(sql.str(), "VALUES (1,'a',NULL),(-2,'',3)");
  EXPECT_EQ(sql.rows(), 2);
}

TEST(SqlTextTest, ListsIds) {
  EXPECT_EQ(SqlText("IN ").IdList({1, 9007199254740993}).str(),
            "IN (1,9007199254740993)");
}

}  // namespace
}  // namespace leasehold::scheduler
