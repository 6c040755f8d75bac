#include "scheduler/dispatch/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leasehold::scheduler {
namespace {

using ::testing::Each;
using ::testing::UnorderedElementsAre;

TEST(PlacementTest, MostFreeSlotsGoFirst) {
  Placement placement;
  placement.AddSession(4, 1, {1});
  placement.AddSession(4, 3, {1});

  EXPECT_EQ(placement.Place(1), 1u);
  EXPECT_EQ(placement.Place(1), 1u);
}

TEST(PlacementTest, EqualSlotsGoToTheRoomierQueue) {
  Placement placement;
  placement.AddSession(2, 1, {1});
  placement.AddSession(9, 1, {1});

  EXPECT_EQ(placement.Place(1), 1u);
}

TEST(PlacementTest, AlternatesBetweenEqualSessions) {
  Placement placement;
  placement.AddSession(2, 2, {1});
  placement.AddSession(2, 2, {1});

  std::vector<int> got(2);
  for (int i = 0; i < 4; ++i) ++got[*placement.Place(1)];

  EXPECT_THAT(got, Each(2));
}

TEST(PlacementTest, ALaneThatNobodyServesHasNoRoom) {
  Placement placement;
  placement.AddSession(4, 4, {1});

  EXPECT_EQ(placement.Place(2), std::nullopt);
  EXPECT_THAT(placement.Lanes(), UnorderedElementsAre(1));
}

TEST(PlacementTest, RoomIsSharedByTheLanesOfASession) {
  Placement placement;
  placement.AddSession(2, 2, {1, 2});

  EXPECT_TRUE(placement.Place(1).has_value());
  EXPECT_TRUE(placement.Place(2).has_value());

  EXPECT_EQ(placement.Place(1), std::nullopt);
  EXPECT_EQ(placement.Place(2), std::nullopt);
  EXPECT_FALSE(placement.has_room());
}

TEST(PlacementTest, AnOutdatedRankIsPutWhereItBelongs) {
  Placement placement;
  placement.AddSession(5, 5, {1, 2});
  placement.AddSession(3, 3, {2});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(placement.Place(1), 0u);

  EXPECT_EQ(placement.Place(2), 1u);
}

TEST(PlacementTest, ASessionWithoutRoomGetsNothing) {
  Placement placement;
  EXPECT_EQ(placement.AddSession(0, 5, {1}), 0u);

  EXPECT_FALSE(placement.has_room());
  EXPECT_EQ(placement.Place(1), std::nullopt);
}

TEST(PlacementTest, ManySessionsAreFilledExactly) {
  Placement placement;
  constexpr int kSessions = 500;
  for (int s = 0; s < kSessions; ++s) {
    placement.AddSession(1 + s % 7, s % 5, {1, 2, 2});
  }

  std::vector<int> got(kSessions);
  while (const auto session = placement.Place(1)) ++got[*session];

  for (int s = 0; s < kSessions; ++s) EXPECT_EQ(got[s], 1 + s % 7) << s;
}

}  // namespace
}  // namespace leasehold::scheduler
