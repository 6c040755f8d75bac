#include "common/text/json.h"

#include <string>

#include "gtest/gtest.h"

namespace leasehold {
namespace {

std::string MessageOf(absl::string_view text) {
  return std::string(ValidateJson(text).message());
}

TEST(ValidateJson, TakesEveryKindOfValue) {
  for (const absl::string_view text :
       {"{}", "[]", "null", "true", "false", "0", "-1", "1.5e-3", "\"\"",
        " {\"a\": [1, \"b\", null]}\r\n\t", "\"\\u00e9\\ud83d\\ude00\"",
        "\"\xF0\x9F\x98\x80\"", "{\"a\":1,\"a\":2}", "\"\\u0000\""}) {
    EXPECT_TRUE(ValidateJson(text).ok()) << text << ": " << MessageOf(text);
  }
}

TEST(ValidateJson, TakesNumbersThatNoMachineTypeHolds) {
  for (const absl::string_view text :
       {"9007199254740993", "123456789012345678901234567890", "1e999",
        "-1e-999", "0.1234567890123456789012345678901234567890"}) {
    EXPECT_TRUE(ValidateJson(text).ok()) << text << ": " << MessageOf(text);
  }
}

TEST(ValidateJson, LooksPastAHugeNumberAtTheRest) {
  EXPECT_TRUE(
      ValidateJson("{\"1e999\": [-1e999, 0, 2E+400 , \"\\\"1e9\"]}").ok());
  std::string long_number(5'000, '7');
  long_number.append(".5");
  EXPECT_TRUE(ValidateJson(long_number).ok());
  for (const absl::string_view text :
       {"[1e999", "1e999x", "01e999", "5-1e999", "1e999-5", "1e999 1",
        "[1e999,]", "1e999.5", "1e9e999", "[1e999, 1.]", "[1e999, 01]",
        "[1e999, -]", "[1e999, \"\\", "--1e999", "[1e999, 1e]"}) {
    EXPECT_FALSE(ValidateJson(text).ok()) << text;
  }
  EXPECT_EQ(MessageOf("[1e999, tru]"),
            "invalid JSON at byte 11: Invalid value");
  std::string many = "[0";
  for (int i = 0; i < 200'000; ++i) many += ",1e999";
  EXPECT_TRUE(ValidateJson(many + "]").ok());
}

TEST(ValidateJson, RefusesWhatIsNoJson) {
  for (const absl::string_view text : {"",
                                       " ",
                                       "{",
                                       "[1,]",
                                       "{\"a\":1,}",
                                       "{a:1}",
                                       "'a'",
                                       "01",
                                       "+1",
                                       "1.",
                                       ".5",
                                       "NaN",
                                       "Infinity",
                                       "tru",
                                       "nulll",
                                       "[1] [2]",
                                       "1 2",
                                       "{}x",
                                       "\"a",
                                       "\"\n\"",
                                       "\"\\x\"",
                                       "\"\\ud83d\"",
                                       "// c\n1",
                                       "[1 2]",
                                       "\"\xFF\"",
                                       "\"\xED\xA0\x80\"",
                                       "\"\xC0\x80\"",
                                       "\xEF\xBB\xBF{}"}) {
    EXPECT_EQ(ValidateJson(text).code(), absl::StatusCode::kInvalidArgument)
        << text;
  }
}

TEST(ValidateJson, SaysWhereAndWhy) {
  EXPECT_EQ(MessageOf("{\"a\": 1, \"b\": 2 3}"),
            "invalid JSON at byte 16: Missing a comma or '}' after an object "
            "member");
  EXPECT_EQ(MessageOf("[1] 2"),
            "invalid JSON at byte 4: The document root must not be followed "
            "by other values");
  EXPECT_EQ(MessageOf(""), "invalid JSON at byte 0: The document is empty");
}

TEST(ValidateJson, DoesNotTakeANulForTheEnd) {
  EXPECT_FALSE(ValidateJson(absl::string_view("1\0", 2)).ok());
  EXPECT_FALSE(ValidateJson(absl::string_view("{}\0{}", 5)).ok());
  EXPECT_FALSE(ValidateJson(absl::string_view("\"a\0b\"", 5)).ok());
  EXPECT_FALSE(ValidateJson(absl::string_view("\0", 1)).ok());
  EXPECT_FALSE(ValidateJson(absl::string_view("[1,\0]", 5)).ok());
}

TEST(ValidateJson, StandsAnyDepth) {
  constexpr size_t kDepth = 500'000;
  EXPECT_TRUE(
      ValidateJson(std::string(kDepth, '[') + std::string(kDepth, ']')).ok());
  EXPECT_FALSE(ValidateJson(std::string(2 * kDepth, '[')).ok());
  std::string objects;
  for (size_t i = 0; i < kDepth / 5; ++i) objects += "{\"a\":";
  EXPECT_FALSE(ValidateJson(objects).ok());
}

}  // namespace
}  // namespace leasehold
