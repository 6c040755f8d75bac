#include "scheduler/rpc/page_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace leasehold::scheduler {
namespace {

using testing::StartsWith;

TEST(PageTokenTest, BringsTheNextPageBack) {
  ListFilter filter;
  filter.queue = "q";
  filter.states = {TaskState::kFailed};

  const std::string token = MakePageToken(9007199254740993, filter);

  EXPECT_EQ(*ReadPageToken(token, filter), 9007199254740993);
}

TEST(PageTokenTest, EmptyStartsAtTheNewestAndEndsTheList) {
  EXPECT_EQ(*ReadPageToken("", {}), std::numeric_limits<TaskId>::max());
  EXPECT_EQ(MakePageToken(0, {}), "");
}

TEST(PageTokenTest, BelongsToItsFilters) {
  const ListFilter filter;
  const std::string token = MakePageToken(42, filter);
  ListFilter others[8];
  others[0].queue = "q";
  others[1].type = "t";
  others[2].partition_key = "p";
  others[3].states = {TaskState::kPending};
  others[4].batch_id = 1;
  others[5].create_from_us = 1;
  others[6].create_until_us = 1;
  others[7].queue = "1:q";

  for (const ListFilter& other : others) {
    const auto read = ReadPageToken(token, other);
    EXPECT_TRUE(absl::IsInvalidArgument(read.status()));
    EXPECT_THAT(std::string(read.status().message()),
                StartsWith("page_token: "));
  }
}

TEST(PageTokenTest, RefusesGarbage) {
  const std::string token = MakePageToken(42, {});
  std::string flipped = token;
  flipped[0] = flipped[0] == 'A' ? 'B' : 'A';
  for (const std::string& bad :
       {std::string("x"), std::string("!!"), std::string(10'000, 'A'), flipped,
        token + "A", token.substr(1), std::string("\0\0", 2)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ReadPageToken(bad, {}).status()));
  }
}

}  // namespace
}  // namespace leasehold::scheduler
