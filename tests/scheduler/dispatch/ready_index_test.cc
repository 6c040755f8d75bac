#include "scheduler/dispatch/ready_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scheduler/dispatch/ready_index_fixture.h"

namespace leasehold::scheduler {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAreArray;

TEST_F(ReadyIndexTest, TakesByPriorityThenDueTimeThenIdOverLanes) {
  const LaneId other = lanes_.Intern({LaneName("q", "u")}).value()[0];
  room_ = Room(100, {lane_, other});
  auto index = NewIndex();
  index->Serve({other});
  const int64_t now = NowUs();
  OfferedTask urgent = Offered(9, now, other);
  urgent.task.priority = 0;
  Offer(*index, Offered(4, now - 5));
  Offer(*index, Offered(3, now - 5, other));
  Offer(*index, Offered(2, now - 9));
  Offer(*index, std::move(urgent));

  EXPECT_THAT(TakeIds(*index), ElementsAre(9, 2, 3, 4));
}

TEST_F(ReadyIndexTest, TakesNoMoreThanThereIsRoomFor) {
  auto index = NewIndex();
  for (TaskId id = 1; id <= 5; ++id) Offer(*index, Offered(id, NowUs()));

  room_ = Room(2);
  EXPECT_THAT(TakeIds(*index), ElementsAre(1, 2));
  EXPECT_EQ(index->size(), 3u);
}

TEST_F(ReadyIndexTest, TakesNoMoreThanTheLimit) {
  auto index = NewIndex();
  for (TaskId id = 1; id <= 5; ++id) Offer(*index, Offered(id, NowUs()));

  EXPECT_THAT(TakeIds(*index, 3), ElementsAre(1, 2, 3));
}

TEST_F(ReadyIndexTest, AFullLaneDoesNotHoldBackAnother) {
  const LaneId other = lanes_.Intern({LaneName("q", "u")}).value()[0];
  auto index = NewIndex();
  index->Serve({other});
  Placement placement;
  placement.AddSession(1, 1, {lane_});
  placement.AddSession(5, 5, {other});
  for (TaskId id = 1; id <= 3; ++id) Offer(*index, Offered(id, NowUs()));
  Offer(*index, Offered(7, NowUs(), other));

  EXPECT_THAT(index->Take(placement, 100), SizeIs(2));
}

TEST_F(ReadyIndexTest, ATaskThatIsNotDueWaits) {
  auto index = NewIndex();
  Offer(*index, Offered(1, NowUs() + 1'000'000));
  EXPECT_THAT(TakeIds(*index), IsEmpty());
  EXPECT_EQ(index->NextDueUs(room_), NowUs() + 1'000'000);

  Advance(absl::Seconds(1));

  EXPECT_THAT(TakeIds(*index), ElementsAre(1));
}

TEST_F(ReadyIndexTest, AnOfferWakesTheDispatcher) {
  auto index = NewIndex();
  index->TakePollRequest();
  wakes_ = 0;

  Offer(*index, Offered(1, NowUs()));

  EXPECT_EQ(wakes_, 1);
}

TEST_F(ReadyIndexTest, ServingALaneAsksForAPollOnce) {
  auto index = NewIndex();

  EXPECT_TRUE(index->TakePollRequest());
  EXPECT_FALSE(index->TakePollRequest());
}

TEST_F(ReadyIndexTest, OffersOfLanesThatNobodyServesAreDropped) {
  auto index = NewIndex();
  Offer(*index, Offered(1, NowUs(), lane_ + 1));
  EXPECT_EQ(index->size(), 0u);
}

TEST_F(ReadyIndexTest, ALaneIsForgottenWithItsLastSession) {
  auto index = NewIndex();
  index->Serve({lane_});
  OfferedTask offer = Offered(1, NowUs());
  offer.spec = std::make_unique<TaskSpec>(MakeSpec("12345"));
  Offer(*index, std::move(offer));

  index->Unserve({lane_});
  EXPECT_EQ(index->size(), 1u);
  index->Unserve({lane_});

  EXPECT_EQ(index->size(), 0u);
  EXPECT_EQ(index->spec_bytes(), 0u);
}

TEST_F(ReadyIndexTest, ReadsWhatOthersStored) {
  auto index = NewIndex();
  const std::vector<TaskId> ids = Store({MakeSpec(), MakeSpec(), MakeSpec()});

  Poll(*index);

  EXPECT_THAT(TakeIds(*index), UnorderedElementsAreArray(ids));
}

TEST_F(ReadyIndexTest, ReadsABacklogPageByPage) {
  auto index = NewIndex();
  const auto ids = Store(std::vector<TaskSpec>(25, MakeSpec()));
  index->NoteHeads(store_.ListReadyHeads().value(), room_, NowUs());

  int pages = 0;
  while (ReadOnce(*index, 10)) ++pages;

  EXPECT_EQ(pages, 3);
  EXPECT_EQ(TakeIds(*index), ids);
}

TEST_F(ReadyIndexTest, ReadsOnOnlyWhenTheShelfIsLow) {
  auto index = NewIndex();
  Store(std::vector<TaskSpec>(5'000, MakeSpec()));
  index->NoteHeads(store_.ListReadyHeads().value(), room_, NowUs());
  while (ReadOnce(*index)) {
  }

  EXPECT_EQ(index->size(), 2'000u);
  EXPECT_THAT(index->PlanScans(room_), IsEmpty());
}

// Failure case 62.
TEST_F(ReadyIndexTest, ATaskThatCommitsLateWithAnEarlierDueTimeIsFound) {
  auto index = NewIndex();
  StoreOne();
  Poll(*index);
  TakeIds(*index);
  Advance(absl::Seconds(9));
  Poll(*index);
  TakeIds(*index);

  const TaskId late = CommitLate(NowUs() - 8'000'000);
  Advance(absl::Seconds(1));
  Poll(*index);

  EXPECT_THAT(TakeIds(*index), ::testing::Contains(late));
}

TEST_F(ReadyIndexTest, AWriteThatTookLongerStillIsFoundWithinAMinute) {
  auto index = NewIndex();
  Poll(*index);
  const TaskId late = CommitLate(NowUs() - 50'000'000);
  Poll(*index);
  EXPECT_THAT(TakeIds(*index), IsEmpty());

  Advance(absl::Seconds(61));
  Poll(*index);

  EXPECT_THAT(TakeIds(*index), ElementsAre(late));
}

TEST_F(ReadyIndexTest, ATaskDueSoonIsReadAheadOfItsTime) {
  auto index = NewIndex();
  TaskSpec spec = MakeSpec();
  spec.schedule_us = NowUs() + 1'500'000;
  const TaskId id = StoreOne(spec);

  Poll(*index);
  EXPECT_THAT(TakeIds(*index), IsEmpty());
  Advance(absl::Milliseconds(1'500));

  EXPECT_THAT(TakeIds(*index), ElementsAre(id));
}

TEST_F(ReadyIndexTest, ATaskDueLaterIsFoundInTimeByPolls) {
  auto index = NewIndex();
  TaskSpec spec = MakeSpec();
  spec.schedule_us = NowUs() + 90'000'000;
  const TaskId id = StoreOne(spec);
  Offer(*index, Offered(id, spec.schedule_us));
  EXPECT_EQ(index->size(), 0u);  // Too far away to be kept.

  for (int second = 0; second < 90; ++second) {
    Poll(*index);
    EXPECT_THAT(TakeIds(*index), IsEmpty());
    Advance(absl::Seconds(1));
  }

  EXPECT_THAT(TakeIds(*index), ElementsAre(id));
}

TEST_F(ReadyIndexTest, AnOfferWhileAPassIsUnderWayEntersALowShelfAtOnce) {
  auto index = NewIndex();
  Store(std::vector<TaskSpec>(25, MakeSpec()));
  ReadOnce(*index, 10);

  Offer(*index, Offered(1'000'000, NowUs()));

  EXPECT_EQ(index->size(), 11u);
}

TEST_F(ReadyIndexTest, AnOfferTurnedAwayDuringAPassIsReadInItsTurn) {
  auto index = NewIndex();
  Store(std::vector<TaskSpec>(2'500, MakeSpec()));
  ReadOnce(*index);
  ReadOnce(*index);  // 2,000 at hand, the pass goes on.
  const TaskId id = StoreOne();
  Offer(*index, Offered(id, NowUs()));
  EXPECT_EQ(index->size(), 2'000u);
  TakeIds(*index);

  while (ReadOnce(*index)) {
  }

  EXPECT_THAT(TakeIds(*index), ::testing::Contains(id));
}

TEST_F(ReadyIndexTest, OffersBeyondTheBoundAreReadOnceThereIsRoom) {
  auto index = NewIndex(/*max_tasks=*/3);
  Poll(*index);
  const auto ids = Store(std::vector<TaskSpec>(5, MakeSpec()));
  for (const TaskId id : ids) Offer(*index, Offered(id, NowUs()));
  EXPECT_EQ(index->size(), 3u);

  std::vector<TaskId> got = TakeIds(*index);
  Poll(*index);
  for (const TaskId id : TakeIds(*index)) got.push_back(id);
  Poll(*index);
  for (const TaskId id : TakeIds(*index)) got.push_back(id);

  EXPECT_THAT(got, ::testing::IsSupersetOf(ids));
}

TEST_F(ReadyIndexTest, PagesKeepTheBoundToo) {
  auto index = NewIndex(/*max_tasks=*/100);
  Store(std::vector<TaskSpec>(500, MakeSpec()));

  Poll(*index);

  EXPECT_EQ(index->size(), 100u);
}

TEST_F(ReadyIndexTest, ABoundedIndexGetsThroughABacklogInOrder) {
  auto index = NewIndex(/*max_tasks=*/100);
  const auto ids = Store(std::vector<TaskSpec>(450, MakeSpec()));
  index->NoteHeads(store_.ListReadyHeads().value(), room_, NowUs());

  std::vector<TaskId> got;
  while (ReadOnce(*index)) {
    for (const TaskId id : TakeIds(*index)) got.push_back(id);
  }

  EXPECT_EQ(got, ids);
}

TEST_F(ReadyIndexTest, TheFullestShelfMakesRoomForAnEmptyOne) {
  const LaneId other = lanes_.Intern({LaneName("q", "u")}).value()[0];
  auto index = NewIndex(/*max_tasks=*/10);
  index->Serve({other});
  for (TaskId id = 1; id <= 10; ++id) Offer(*index, Offered(id, NowUs() + id));

  Offer(*index, Offered(11, NowUs(), other));

  EXPECT_EQ(index->size(), 6u);  // Its later half is gone.
  Advance(absl::Seconds(1));
  room_ = Room(100, {lane_, other});
  EXPECT_THAT(TakeIds(*index), ElementsAre(11, 1, 2, 3, 4, 5));
}

TEST_F(ReadyIndexTest, PayloadsBeyondTheBoundAreLeftOut) {
  auto index = NewIndex(100, /*max_bytes=*/2'000);
  for (TaskId id = 1; id <= 3; ++id) {
    OfferedTask offer = Offered(id, NowUs());
    offer.spec = std::make_unique<TaskSpec>(MakeSpec(std::string(400, 'x')));
    Offer(*index, std::move(offer));
  }

  EXPECT_LE(index->spec_bytes(), 2'000u);
  Placement placement = room_;
  const auto taken = index->Take(placement, 10);
  ASSERT_THAT(taken, SizeIs(3));
  EXPECT_NE(taken[0].spec, nullptr);
  EXPECT_EQ(taken[2].spec, nullptr);
  EXPECT_EQ(index->spec_bytes(), 0u);
}

TEST_F(ReadyIndexTest, RetriesThatWaitDoNotHideABacklogThatIsDue) {
  auto index = NewIndex();
  const auto ids = Store(std::vector<TaskSpec>(3'000, MakeSpec()));
  index->NoteHeads(store_.ListReadyHeads().value(), room_, NowUs());
  for (TaskId id = 0; id < 2'000; ++id) {
    Offer(*index, Offered(1'000'000 + id, NowUs() + 30'000'000));
  }

  EXPECT_TRUE(ReadOnce(*index));

  EXPECT_EQ(TakeIds(*index).size(), 1'000u);
}

TEST_F(ReadyIndexTest, RetriesThatWaitDoNotHideWhatOthersStore) {
  auto index = NewIndex();
  Poll(*index);
  for (TaskId id = 0; id < 2'500; ++id) {
    Offer(*index, Offered(1'000'000 + id, NowUs() + 30'000'000));
  }
  const TaskId id = StoreOne();

  Poll(*index);

  EXPECT_THAT(TakeIds(*index), ElementsAre(id));
}

TEST_F(ReadyIndexTest, TasksThatWaitAgainAreTakenWithTheirCounts) {
  auto index = NewIndex();
  CommittedChange change;
  change.id = 4;
  change.after = LiveTask();
  change.after->id = 4;
  change.after->lane_id = lane_;
  change.after->run_us = NowUs();
  change.after->lease_number = 6;
  change.after->attempt = 2;

  index->OnChanged({change});

  Placement placement = room_;
  const auto taken = index->Take(placement, 1);
  ASSERT_THAT(taken, SizeIs(1));
  EXPECT_EQ(taken[0].task.lease_number, 6);
  EXPECT_EQ(taken[0].task.attempt, 2);
}

TEST_F(ReadyIndexTest, LeasedAndPausedTasksStayOutside) {
  auto index = NewIndex();
  CommittedChange change;
  change.after = LiveTask();
  change.after->lane_id = lane_;
  change.after->run_us = NowUs();
  change.after->phase = Phase::kPaused;
  index->OnChanged({change});
  change.after->phase = Phase::kLeased;
  index->OnChanged({change});

  EXPECT_EQ(index->size(), 0u);
}

TEST_F(ReadyIndexTest, TwoIndexesOverOneStoreFindEverything) {
  auto one = NewIndex();
  auto two = NewIndex();
  const auto ids = Store(std::vector<TaskSpec>(50, MakeSpec()));

  Poll(*one);
  Poll(*two);

  EXPECT_EQ(TakeIds(*one), ids);
  EXPECT_EQ(TakeIds(*two), ids);
}

}  // namespace
}  // namespace leasehold::scheduler
