#include "common/ids/ids.h"

#include <cstdint>
#include <set>

#include "gtest/gtest.h"

namespace leasehold {
namespace {

TEST(TaskIds, ReadBackAsTheyWereWritten) {
  for (const int64_t id :
       {int64_t{1}, int64_t{42}, int64_t{1} << 40, INT64_MAX - 1, INT64_MAX}) {
    EXPECT_EQ(ParseTaskId(FormatTaskId(id)), id);
  }
}

TEST(TaskIds, HaveOneSpellingOnly) {
  for (const absl::string_view text :
       {"", "0", "-1", "+1", "01", "007", " 1", "1 ", "1\n", "1a", "0x1", "1.0",
        "1e3", "9223372036854775808", "99999999999999999999999999", "abc",
        "\xff", "١"}) {
    EXPECT_EQ(ParseTaskId(text), std::nullopt) << text;
  }
  EXPECT_EQ(ParseTaskId(absl::string_view("1\0", 2)), std::nullopt);
}

TEST(RandomHex, GivesAsManyDigitsAsAskedForAndNeverTheSame) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string text = RandomHex(16);
    EXPECT_EQ(text.size(), 32u);
    EXPECT_EQ(text.find_first_not_of("0123456789abcdef"), std::string::npos);
    seen.insert(text);
  }
  EXPECT_EQ(seen.size(), 1000u);
  EXPECT_EQ(RandomHex(5).size(), 10u);
  EXPECT_EQ(RandomHex(0), "");
}

}  // namespace
}  // namespace leasehold
