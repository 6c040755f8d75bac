#include "scheduler/dispatch/ready_shelf.h"

#include <gtest/gtest.h>

namespace leasehold::scheduler {
namespace {

constexpr int64_t kNow = 1'000'000'000'000;
using Cursor = ReadyShelf::Cursor;

ReadyTask Waiting(TaskId id, int64_t run_us) {
  ReadyTask task;
  task.id = id;
  task.run_us = run_us;
  return task;
}

ReadyPage Page(std::vector<ReadyTask> tasks, bool complete,
               int64_t now_us = kNow) {
  ReadyPage page;
  page.tasks = std::move(tasks);
  page.complete = complete;
  page.now_us = now_us;
  return page;
}

// Reads one empty page that ends the pass.
void FinishPass(ReadyShelf& shelf, int64_t now_us) {
  shelf.EndPage(*shelf.NextPage(), Page({}, true, now_us));
}

TEST(ReadyShelfTest, KeepsTasksByDueTimeThenId) {
  ReadyShelf shelf;
  shelf.Add(Waiting(3, 20), nullptr, 0);
  shelf.Add(Waiting(2, 10), nullptr, 0);
  shelf.Add(Waiting(1, 20), nullptr, 0);

  EXPECT_EQ(shelf.TakeHead().first, ReadyShelf::Key(10, 2));
  EXPECT_EQ(shelf.TakeHead().first, ReadyShelf::Key(20, 1));
  EXPECT_EQ(shelf.TakeHead().first, ReadyShelf::Key(20, 3));
  EXPECT_TRUE(shelf.empty());
}

TEST(ReadyShelfTest, ATaskStandsInItOnce) {
  ReadyShelf shelf;
  EXPECT_TRUE(shelf.Add(Waiting(1, 20), nullptr, 0));
  EXPECT_FALSE(shelf.Add(Waiting(1, 20), nullptr, 0));
  EXPECT_EQ(shelf.size(), 1u);
}

TEST(ReadyShelfTest, TheFirstPassStartsAtTheBeginning) {
  const ReadyShelf shelf;
  EXPECT_FALSE(shelf.complete());
  EXPECT_EQ(shelf.NextPage(), Cursor());
}

TEST(ReadyShelfTest, TheNextPageStartsAfterTheLastTask) {
  ReadyShelf shelf;
  shelf.EndPage({}, Page({Waiting(1, 10), Waiting(7, 12)}, false));

  EXPECT_EQ(shelf.NextPage(), (Cursor{12, 7}));
}

TEST(ReadyShelfTest, APageThatReachesThePresentCompletesIt) {
  ReadyShelf shelf;
  shelf.EndPage({}, Page({Waiting(1, 10)}, true));

  EXPECT_TRUE(shelf.complete());
  EXPECT_EQ(shelf.NextPage(), std::nullopt);
}

TEST(ReadyShelfTest, APassOverlapsTheFormerOneByTheLongestWrite) {
  ReadyShelf shelf;
  FinishPass(shelf, kNow);

  shelf.BeginPass(kNow + 1'000'000);

  EXPECT_EQ(shelf.NextPage(), (Cursor{kNow - kLongestWriteUs, 0}));
}

TEST(ReadyShelfTest, TheOverlapCountsFromTheFirstPageOfAPass) {
  ReadyShelf shelf;
  shelf.EndPage({}, Page({Waiting(1, 10)}, false, kNow));
  shelf.EndPage({10, 1}, Page({}, true, kNow + 30'000'000));

  shelf.BeginPass(kNow + 31'000'000);

  EXPECT_EQ(shelf.NextPage(), (Cursor{kNow - kLongestWriteUs, 0}));
}

TEST(ReadyShelfTest, AMinuteAfterAFullPassComesAnother) {
  ReadyShelf shelf;
  FinishPass(shelf, kNow);
  shelf.BeginPass(kNow + kFullPassUs - 1);
  EXPECT_NE(shelf.NextPage(), Cursor());
  FinishPass(shelf, kNow + kFullPassUs - 1);

  shelf.BeginPass(kNow + kFullPassUs);

  EXPECT_EQ(shelf.NextPage(), Cursor());
}

TEST(ReadyShelfTest, AFullPassStartsTheMinuteAnew) {
  ReadyShelf shelf;
  FinishPass(shelf, kNow);
  shelf.BeginPass(kNow + kFullPassUs);
  FinishPass(shelf, kNow + kFullPassUs);

  shelf.BeginPass(kNow + kFullPassUs + 1'000'000);

  EXPECT_NE(shelf.NextPage(), Cursor());
}

TEST(ReadyShelfTest, APassUnderWayIsNotBegunAnew) {
  ReadyShelf shelf;
  shelf.EndPage({}, Page({Waiting(1, 10)}, false));

  shelf.BeginPass(kNow + 1);

  EXPECT_EQ(shelf.NextPage(), (Cursor{10, 1}));
}

TEST(ReadyShelfTest, WhatWasTurnedAwayWhileCompleteIsReadAgain) {
  ReadyShelf shelf;
  FinishPass(shelf, kNow);

  shelf.Reread(kNow - 50'000'000);

  EXPECT_EQ(shelf.NextPage(), (Cursor{kNow - 50'000'000, 0}));
}

TEST(ReadyShelfTest, RereadingNeverMovesForward) {
  ReadyShelf shelf;
  FinishPass(shelf, kNow);

  shelf.Reread(kNow + 5);

  EXPECT_EQ(shelf.NextPage(), (Cursor{kNow - kLongestWriteUs, 0}));
}

TEST(ReadyShelfTest, WhatWasTurnedAwayBehindThePassMovesItBack) {
  ReadyShelf shelf;
  shelf.EndPage({}, Page({Waiting(9, 100)}, false));

  shelf.Reread(40);

  EXPECT_EQ(shelf.NextPage(), (Cursor{40, 0}));
}

TEST(ReadyShelfTest, APageReadBeforeATurnAwayDoesNotCompleteThePass) {
  ReadyShelf shelf;
  const Cursor before = *shelf.NextPage();
  shelf.Reread(kNow);  // Committed after the page was read.

  shelf.EndPage(before, Page({}, true));

  EXPECT_FALSE(shelf.complete());
}

TEST(ReadyShelfTest, APageFromElsewhereCountsForNothing) {
  ReadyShelf shelf;
  shelf.EndPage({}, Page({Waiting(9, 100)}, false));
  shelf.Reread(40);

  shelf.EndPage({100, 9}, Page({}, true));

  EXPECT_EQ(shelf.NextPage(), (Cursor{40, 0}));
}

TEST(ReadyShelfTest, NothingWaitingIsAsGoodAsAPass) {
  ReadyShelf shelf;
  shelf.MarkNothingWaiting(kNow);
  EXPECT_TRUE(shelf.complete());

  shelf.BeginPass(kNow + 1);
  EXPECT_EQ(shelf.NextPage(), (Cursor{kNow - kLongestWriteUs, 0}));
}

TEST(ReadyShelfTest, DropsItsLaterHalfAndReadsItAgain) {
  ReadyShelf shelf;
  for (TaskId id = 1; id <= 4; ++id) {
    shelf.Add(Waiting(id, kNow - 100'000'000 + id), nullptr, 8);
  }
  FinishPass(shelf, kNow);
  size_t dropped_bytes = 0;

  shelf.DropLaterHalf([&](const auto& e) { dropped_bytes += e.spec_bytes; });

  EXPECT_EQ(shelf.size(), 2u);
  EXPECT_EQ(dropped_bytes, 16u);
  EXPECT_EQ(shelf.NextPage(), (Cursor{kNow - 100'000'000 + 3, 0}));
}

}  // namespace
}  // namespace leasehold::scheduler
