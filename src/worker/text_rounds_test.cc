#include "worker/text_rounds.h"

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RoundMail Text(uint64_t round, const std::string& text, int root = -1,
               const std::string& what = "x") {
  return {.round = round, .root = root, .what = what, .text = text};
}

absl::Status Lost(int rank) {
  return WithBlast(absl::UnavailableError("it died"), BlastRadius::kGroup, rank);
}

TEST(TextRoundsTest, ARoundOfEverybodyNeedsTheTextsOfAll) {
  TextRounds rounds(1, 3);
  EXPECT_EQ(rounds.Begin({.what = "x", .text = "b"}), 0u);
  EXPECT_THAT(rounds.Receivers(0), ElementsAre(0, 2));
  EXPECT_THAT(rounds.Missing(0), ElementsAre(0, 2));
  rounds.Arrived(2, Text(0, "c"));
  EXPECT_FALSE(rounds.Done(0));
  EXPECT_FALSE(rounds.AnyDone());
  rounds.Arrived(0, Text(0, ""));
  EXPECT_TRUE(rounds.Done(0));
  EXPECT_TRUE(rounds.AnyDone());
  EXPECT_THAT(*rounds.Take(0), ElementsAre("", "b", "c"));
}

TEST(TextRoundsTest, WithARootOnlyTheRootNeedsAll) {
  TextRounds root(0, 3), other(2, 3);
  root.Begin({.what = "x", .text = "a", .root = 0});
  other.Begin({.what = "x", .text = "c", .root = 0});
  EXPECT_THAT(root.Receivers(0), ElementsAre(1, 2));
  EXPECT_THAT(other.Receivers(0), ElementsAre(0));
  other.Arrived(0, Text(0, "a", 0));
  EXPECT_THAT(*other.Take(0), ElementsAre("a", "", "c"));
  root.Arrived(1, Text(0, "b", 0));
  EXPECT_THAT(root.Missing(0), ElementsAre(2));
  root.Arrived(2, Text(0, "c", 0));
  EXPECT_THAT(*root.Take(0), ElementsAre("a", "b", "c"));
}

TEST(TextRoundsTest, OneWorkerAloneIsDoneAtOnce) {
  TextRounds rounds(0, 1);
  rounds.Begin({.what = "x", .text = "a"});
  rounds.Begin({.what = "x", .text = "b", .root = 0});
  EXPECT_THAT(*rounds.Take(0), ElementsAre("a"));
  EXPECT_THAT(*rounds.Take(1), ElementsAre("b"));
}

TEST(TextRoundsTest, AWorkerMayBeRoundsAheadAndOutOfOrder) {
  TextRounds rounds(0, 2);
  for (uint64_t round = 20; round-- > 0;) rounds.Arrived(1, Text(round, std::to_string(round)));
  for (uint64_t round = 0; round < 20; ++round) {
    ASSERT_EQ(rounds.Begin({.what = "x", .text = "mine"}), round);
    ASSERT_TRUE(rounds.Done(round));
    EXPECT_THAT(*rounds.Take(round), ElementsAre("mine", std::to_string(round)));
  }
}

TEST(TextRoundsTest, RoundsMayBeUnderWayTogetherAndForgotten) {
  TextRounds rounds(0, 2);
  for (int i = 0; i < 3; ++i) rounds.Begin({.what = "x", .text = "mine"});
  rounds.Arrived(1, Text(2, "c"));
  EXPECT_TRUE(rounds.Done(2));
  EXPECT_FALSE(rounds.Done(0));
  rounds.Forget(1);
  rounds.Arrived(1, Text(1, "late"));
  rounds.Arrived(1, Text(0, "a"));
  EXPECT_THAT(*rounds.Take(0), ElementsAre("mine", "a"));
  EXPECT_THAT(*rounds.Take(2), ElementsAre("mine", "c"));
}

TEST(TextRoundsTest, ALostWorkerIsNamedByEveryRoundThatNeedsIt) {
  TextRounds rounds(0, 3);
  rounds.Begin({.what = "x"});             // has its text already
  rounds.Begin({.what = "x"});             // has not
  rounds.Begin({.what = "x", .root = 1});  // does not need it
  rounds.Arrived(2, Text(0, "c"));
  rounds.Gone(2, Lost(2));
  EXPECT_FALSE(rounds.Done(0));
  EXPECT_FALSE(rounds.Done(2));
  ASSERT_TRUE(rounds.Done(1));
  const absl::Status lost = rounds.Take(1).status();
  EXPECT_TRUE(absl::IsUnavailable(lost)) << lost;
  EXPECT_EQ(GetSuspect(lost), std::optional<int>(2));
  rounds.Arrived(1, Text(0, "b"));
  rounds.Arrived(1, Text(2, "b", 1));
  EXPECT_TRUE(rounds.Take(0).ok());
  EXPECT_TRUE(rounds.Take(2).ok());
  // What is begun later fails at once. Its text goes to all: the mail of the lost one is dropped by the
  // mailbox, while one that is only held for gone here must not wait.
  rounds.Begin({.what = "x"});
  EXPECT_THAT(rounds.Receivers(3), ElementsAre(1, 2));
  EXPECT_TRUE(absl::IsUnavailable(rounds.Take(3).status()));
}

// The root has ended because of the loss, and the others said that it had left.
TEST(TextRoundsTest, ALossBeforeTheRootLeftIsNamed) {
  TextRounds rounds(2, 4);
  rounds.Begin({.what = "x", .root = 0});
  rounds.Gone(1, Lost(1));
  EXPECT_FALSE(rounds.Done(0));
  rounds.Gone(0, absl::UnavailableError("worker 0 left the job"), /*left=*/true);
  ASSERT_TRUE(rounds.Done(0));
  const absl::Status lost = rounds.Take(0).status();
  EXPECT_TRUE(absl::IsUnavailable(lost)) << lost;
  EXPECT_EQ(GetSuspect(lost), std::optional<int>(1));
  EXPECT_THAT(std::string(lost.message()), ::testing::HasSubstr("after that worker 0 left"));
  // A loss that comes later explains nothing.
  TextRounds others(2, 4);
  others.Begin({.what = "x", .root = 0});
  others.Gone(0, absl::UnavailableError("worker 0 left the job"), /*left=*/true);
  others.Gone(1, Lost(1));
  EXPECT_EQ(others.Take(0).status().message(), "worker 0 left the job");
}

TEST(TextRoundsTest, WhatALostWorkerBroughtAheadStillCounts) {
  TextRounds rounds(0, 2);
  rounds.Arrived(1, Text(0, "b"));
  rounds.Gone(1, Lost(1));
  rounds.Begin({.what = "x"});
  EXPECT_TRUE(rounds.Take(0).ok());
}

TEST(TextRoundsTest, AParcelIsAwaitedUntilItIsTakenOrItsReceiverIsGone) {
  TextRounds rounds(0, 3);
  rounds.Begin({.what = "x"});
  rounds.AwaitTaken(0, 1);
  rounds.AwaitTaken(0, 2);
  rounds.Arrived(1, Text(0, "b"));
  rounds.Arrived(2, Text(0, "c"));
  EXPECT_THAT(rounds.Missing(0), ElementsAre(1, 2));
  rounds.Arrived(1, {.kind = RoundMail::Kind::kTaken, .round = 0});
  EXPECT_FALSE(rounds.Done(0));
  rounds.Gone(2, Lost(2));
  EXPECT_TRUE(rounds.Done(0));
  EXPECT_TRUE(rounds.Take(0).ok());
}

TEST(TextRoundsTest, WorkersThatBringDifferentThingsFail) {
  for (const bool ahead : {false, true}) {
    SCOPED_TRACE(ahead);
    TextRounds rounds(0, 2);
    if (ahead) rounds.Arrived(1, Text(0, "b", 0, "schedule"));
    rounds.Begin({.what = "sums"});
    if (!ahead) rounds.Arrived(1, Text(0, "b", 0, "schedule"));
    ASSERT_TRUE(rounds.Done(0));
    const absl::Status status = rounds.Take(0).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(status.message(),
                HasSubstr("worker 0 brings \"sums\", worker 1 \"schedule\" with root 0"));
  }
}

TEST(TextRoundsTest, AWorkerThatBringsNoTextSaysWhy) {
  for (const bool ahead : {false, true}) {
    SCOPED_TRACE(ahead);
    TextRounds rounds(0, 2);
    const RoundMail fault = {.kind = RoundMail::Kind::kFault, .round = 0, .text = "too long"};
    if (ahead) rounds.Arrived(1, fault);
    rounds.Begin({.what = "x"});
    if (!ahead) rounds.Arrived(1, fault);
    const absl::Status status = rounds.Take(0).status();
    EXPECT_TRUE(absl::IsAborted(status)) << status;
    EXPECT_EQ(status.message(), "worker 1: too long");
    // The next round is none the worse for it.
    rounds.Begin({.what = "x"});
    rounds.Arrived(1, Text(1, "b"));
    EXPECT_TRUE(rounds.Take(1).ok());
  }
}

// What a worker can make another one keep is bounded.
TEST(TextRoundsTest, AWorkerTooFarAheadIsNamed) {
  TextRounds rounds(0, 2);
  rounds.Arrived(1, Text(kRoundsAheadMax - 1, "b"));
  rounds.Begin({.what = "x"});
  EXPECT_FALSE(rounds.Done(0));
  rounds.Arrived(1, Text(kRoundsAheadMax + 1, "b"));
  const absl::Status status = rounds.Take(0).status();
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_EQ(GetSuspect(status), std::optional<int>(1));
}

TEST(TextRoundsTest, TooManyBytesAheadNameTheWorker) {
  TextRounds rounds(0, 3);
  const std::string large(kRoundTextBytesMax, 'x');
  for (uint64_t round = 1; round <= 2; ++round) rounds.Arrived(1, Text(round, large));
  rounds.Begin({.what = "x"});
  EXPECT_FALSE(rounds.Done(0));
  rounds.Arrived(1, Text(3, large));
  EXPECT_EQ(GetSuspect(rounds.Take(0).status()), std::optional<int>(1));
}

TEST(TextRoundsTest, TheTextsOfARoundAreBounded) {
  const int workers = static_cast<int>(kRoundBytesMax / kRoundTextBytesMax) + 2;
  TextRounds rounds(0, workers);
  rounds.Begin({.what = "x", .root = 0});
  const std::string large(kRoundTextBytesMax, 'x');
  for (int rank = 1; rank < workers; ++rank) rounds.Arrived(rank, Text(0, large, 0));
  EXPECT_TRUE(absl::IsOutOfRange(rounds.Take(0).status()));
}

TEST(TextRoundsTest, ATextThatNobodyExpectsNamesTheWorker) {
  TextRounds twice(0, 3);
  twice.Begin({.what = "x"});
  twice.Arrived(1, Text(0, "b"));
  twice.Arrived(1, Text(0, "b"));
  twice.Begin({.what = "x"});
  EXPECT_EQ(GetSuspect(twice.Take(1).status()), std::optional<int>(1));
  TextRounds no_root(0, 3);
  no_root.Begin({.what = "x", .root = 2});
  no_root.Arrived(1, Text(0, "b", 2));
  no_root.Begin({.what = "x"});
  EXPECT_EQ(GetSuspect(no_root.Take(1).status()), std::optional<int>(1));
}

TEST(TextRoundsTest, StrangersAndThisWorkerItselfAreNotHeard) {
  TextRounds rounds(0, 2);
  rounds.Begin({.what = "x"});
  for (const int from : {-1, 0, 2}) rounds.Arrived(from, Text(0, "b"));
  EXPECT_FALSE(rounds.Done(0));
  EXPECT_THAT(rounds.Missing(0), ElementsAre(1));
}

}  // namespace
}  // namespace syncopate::worker
