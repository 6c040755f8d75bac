#include "common/text/utf8.h"

#include <string>

#include "gtest/gtest.h"

namespace leasehold {
namespace {

constexpr char kEmoji[] = "\xF0\x9F\x98\x80";

const char* const kValid[] = {
    "",
    "plain",
    "\xC2\x80",          // U+0080
    "\xDF\xBF",          // U+07FF
    "\xE0\xA0\x80",      // U+0800
    "\xED\x9F\xBF",      // U+D7FF
    "\xEE\x80\x80",      // U+E000
    "\xEF\xBF\xBF",      // U+FFFF
    "\xF0\x90\x80\x80",  // U+10000
    "\xF4\x8F\xBF\xBF",  // U+10FFFF
    kEmoji,
};

const char* const kInvalid[] = {
    "\x80",  // A continuation alone.
    "a\xBF",
    "\xC0\x80",          // Overlong NUL.
    "\xC1\xBF",          // Overlong.
    "\xE0\x9F\xBF",      // Overlong.
    "\xF0\x8F\xBF\xBF",  // Overlong.
    "\xED\xA0\x80",      // A surrogate.
    "\xED\xBF\xBF",      // A surrogate.
    "\xF4\x90\x80\x80",  // Past U+10FFFF.
    "\xF5\x80\x80\x80",
    "\xFE",
    "\xFF",
    "\xC2",  // Cut short.
    "\xE2\x82",
    "\xF0\x9F\x98",
    "\xC2z",
};

TEST(IsValidUtf8, KnowsTheBoundsOfEveryLength) {
  for (const char* text : kValid) EXPECT_TRUE(IsValidUtf8(text)) << text;
  for (const char* text : kInvalid) EXPECT_FALSE(IsValidUtf8(text)) << text;
  EXPECT_TRUE(IsValidUtf8(absl::string_view("a\0b", 3)));
}

TEST(SanitizeUtf8, LeavesValidTextAlone) {
  for (const char* text : kValid) EXPECT_EQ(SanitizeUtf8(text), text);
  const std::string nul("a\0b", 3);
  EXPECT_EQ(SanitizeUtf8(nul), nul);
}

TEST(SanitizeUtf8, MakesEverythingValid) {
  for (const char* text : kInvalid) {
    EXPECT_TRUE(IsValidUtf8(SanitizeUtf8(text))) << text;
  }
  std::string every_byte;
  for (int i = 0; i < 256; ++i) every_byte.push_back(static_cast<char>(i));
  EXPECT_TRUE(IsValidUtf8(SanitizeUtf8(every_byte)));
}

TEST(SanitizeUtf8, ReplacesEachBrokenCharacterOnce) {
  EXPECT_EQ(SanitizeUtf8("a\xF0\x9F\x98z"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(SanitizeUtf8("\xFF\xFE"), "\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(SanitizeUtf8("\xE2\x82\xE2\x82\xAC"), "\xEF\xBF\xBD\xE2\x82\xAC");
}

TEST(TruncateUtf8, NeverSplitsACharacter) {
  const std::string text = std::string("ab") + kEmoji + "c";
  EXPECT_EQ(TruncateUtf8(text, 2), "ab");
  EXPECT_EQ(TruncateUtf8(text, 3), "ab");
  EXPECT_EQ(TruncateUtf8(text, 4), "ab");
  EXPECT_EQ(TruncateUtf8(text, 5), "ab");
  EXPECT_EQ(TruncateUtf8(text, 6), std::string("ab") + kEmoji);
  EXPECT_EQ(TruncateUtf8(text, 7), text);
  EXPECT_EQ(TruncateUtf8(text, 100), text);
  EXPECT_EQ(TruncateUtf8(text, 0), "");
  EXPECT_EQ(TruncateUtf8(kEmoji, 3), "");
}

TEST(TruncateUtf8, KeepsValidTextValidAtEveryLength) {
  std::string text;
  for (const char* part : kValid) text += part;
  for (size_t size = 0; size <= text.size(); ++size) {
    const std::string cut = TruncateUtf8(text, size);
    EXPECT_TRUE(IsValidUtf8(cut)) << size;
    EXPECT_LE(cut.size(), size);
    EXPECT_GE(cut.size() + 3, size);
  }
}

TEST(TruncateUtf8, KeepsToTheBoundWhateverTheBytes) {
  EXPECT_EQ(TruncateUtf8(std::string(100, '\x80'), 10).size(), 10u);
  EXPECT_EQ(TruncateUtf8("\xFF\xFF\xFF", 2).size(), 2u);
}

TEST(QuoteForMessage, ShowsWhatIsThere) {
  EXPECT_EQ(QuoteForMessage("Ä b"), "\"Ä b\"");
  EXPECT_EQ(QuoteForMessage(""), "\"\"");
  EXPECT_EQ(QuoteForMessage("say \"hi\" \\"), "\"say \\\"hi\\\" \\\\\"");
  EXPECT_EQ(QuoteForMessage(absl::string_view("a\0\n\x7F\xFF", 5)),
            "\"a\\x00\\x0a\\x7f\\xff\"");
  EXPECT_EQ(QuoteForMessage("\xC2\x9B[31m"), "\"\\xc2\\x9b[31m\"");
}

TEST(QuoteForMessage, CutsLongValuesBetweenCharacters) {
  EXPECT_EQ(QuoteForMessage(std::string(64, 'a')),
            "\"" + std::string(64, 'a') + "\"");
  EXPECT_EQ(QuoteForMessage(std::string(65, 'a')),
            "\"" + std::string(64, 'a') + "\"...");
  EXPECT_EQ(QuoteForMessage(std::string("abc") + kEmoji, 5), "\"abc\"...");
}

}  // namespace
}  // namespace leasehold
