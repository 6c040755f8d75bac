// What the index knows of other replicas, and whether nothing waits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scheduler/dispatch/ready_index_fixture.h"

namespace leasehold::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(ReadyIndexTest, NothingWaitsInALaneThatWasReadWhole) {
  auto index = NewIndex();
  EXPECT_FALSE(index->NothingWaits(lane_)) << "not read yet";

  Poll(*index);

  EXPECT_TRUE(index->NothingWaits(lane_));
  EXPECT_FALSE(index->NothingWaits(lane_ + 1)) << "nobody serves it";
}

TEST_F(ReadyIndexTest, OnlyWhatIsDueWaits) {
  auto index = NewIndex();
  Poll(*index);
  Offer(*index, Offered(1, NowUs() + 1'000'000));
  EXPECT_TRUE(index->NothingWaits(lane_));

  Advance(absl::Seconds(1));

  EXPECT_FALSE(index->NothingWaits(lane_));
}

TEST_F(ReadyIndexTest, ReadsItsShareAndLeavesTheOthers) {
  const auto ids = Store(std::vector<TaskSpec>(10, MakeSpec()));
  auto index = NewIndex();
  index->SetShare({1, 2});

  Poll(*index);

  for (const TaskId id : TakeIds(*index)) EXPECT_EQ(id % 2, 1);
  EXPECT_THAT(index->TakeForeignScans(), IsEmpty());
}

TEST_F(ReadyIndexTest, HelpsItselfToWhatNobodyTakes) {
  const TaskId id = StoreOne();
  auto index = NewIndex();
  index->SetShare({static_cast<int>((id + 1) % 2), 2});
  Poll(*index);
  Poll(*index);
  EXPECT_THAT(TakeIds(*index), IsEmpty());

  Advance(absl::Microseconds(kForeignWaitUs));
  Poll(*index);

  const auto scans = index->TakeForeignScans();
  ASSERT_THAT(scans, SizeIs(1));
  EXPECT_EQ(scans[0].share, IdShare{});
  index->AddForeign(scans[0],
                    store_
                        .ScanReady(lane_, 5, 0, 0, NowUs() - kForeignWaitUs, 10,
                                   scans[0].share)
                        .value());
  EXPECT_THAT(TakeIds(*index), ElementsAre(id));
}

TEST_F(ReadyIndexTest, HelpsThoughItsOwnTasksNeverEnd) {
  const TaskId foreign = StoreOne();
  auto index = NewIndex();
  index->SetShare({static_cast<int>((foreign + 1) % 2), 2});
  Poll(*index);
  Poll(*index);
  const auto keep_busy = [&] { Offer(*index, Offered(foreign + 1, NowUs())); };
  keep_busy();
  Poll(*index);
  EXPECT_THAT(index->TakeForeignScans(), IsEmpty()) << "not long enough";
  TakeIds(*index);

  Advance(absl::Microseconds(kForeignWaitUs));
  keep_busy();
  Poll(*index);

  EXPECT_THAT(index->TakeForeignScans(), SizeIs(1));
}

TEST_F(ReadyIndexTest, AnotherShareStartsOver) {
  const auto ids = Store(std::vector<TaskSpec>(10, MakeSpec()));
  auto index = NewIndex();
  index->SetShare({0, 2});
  Poll(*index);
  const size_t own = TakeIds(*index).size();

  index->SetShare({0, 1});
  Poll(*index);

  EXPECT_THAT(TakeIds(*index), SizeIs(10)) << own << " were taken before";
}

}  // namespace
}  // namespace leasehold::scheduler
