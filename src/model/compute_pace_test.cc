#include "model/compute_pace.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncopate {
namespace {

using ::testing::HasSubstr;

ComputePace Of(const PaceOptions& options, int rank) {
  const auto pace = ComputePace::Make(options, rank, 4);
  EXPECT_TRUE(pace.ok()) << pace.status();
  return *pace;
}

TEST(ComputePaceTest, WithoutOptionsAnIterationTakesAsLongAsItIsComputed) {
  const ComputePace pace = Of({}, 0);
  EXPECT_FALSE(pace.waits());
  EXPECT_EQ(pace.Seconds(0.25, 16), 0.25);
}

TEST(ComputePaceTest, AnIterationTakesDelayAndSamplesByRateAndNeverLessThanItsComputing) {
  const ComputePace pace = Of({.pace = {"20ms,800"}}, 2);
  EXPECT_TRUE(pace.waits());
  EXPECT_DOUBLE_EQ(pace.Seconds(0.001, 16), 0.02 + 16.0 / 800);
  EXPECT_DOUBLE_EQ(pace.Seconds(0.001, 32), 0.02 + 32.0 / 800);
  EXPECT_DOUBLE_EQ(pace.Seconds(0.5, 16), 0.5);
}

TEST(ComputePaceTest, AWorkersOwnEntryGoesBeforeThatOfAllInWhateverOrder) {
  for (const PaceOptions& options : {PaceOptions{.pace = {"20ms,800", "3:0s,100"}},
                                     PaceOptions{.pace = {"3:0s,100", "20ms,800"}}}) {
    EXPECT_DOUBLE_EQ(Of(options, 3).Seconds(0, 10), 0.1);
    EXPECT_DOUBLE_EQ(Of(options, 0).Seconds(0, 8), 0.03);
  }
  EXPECT_FALSE(Of({.pace = {"3:0s,100"}}, 0).waits()) << "others are as quick as they compute";
}

// A device of its own for each worker, by a list.
TEST(ComputePaceTest, AListHasAnEntryForEachWorkerOrForSeveral) {
  const std::string list = "0:20ms,800; 1,3:0s,100;10ms,50";
  for (const PaceOptions& options :
       {PaceOptions{.pace = {list}},
        PaceOptions{.pace = {"10ms,50", "0:20ms,800", "1,3:0s,100"}}}) {
    EXPECT_DOUBLE_EQ(Of(options, 0).Seconds(0, 8), 0.03);
    EXPECT_DOUBLE_EQ(Of(options, 1).Seconds(0, 8), 0.08);
    EXPECT_DOUBLE_EQ(Of(options, 2).Seconds(0, 8), 0.17);
    EXPECT_DOUBLE_EQ(Of(options, 3).Seconds(0, 8), 0.08);
  }
  const PaceOptions slow{.slow = {"0-1:1;3:2"}};
  EXPECT_EQ(Of(slow, 0).slow(), 1);
  EXPECT_EQ(Of(slow, 1).slow(), 1);
  EXPECT_EQ(Of(slow, 2).slow(), 0);
  EXPECT_EQ(Of(slow, 3).slow(), 2);
}

// "k times slower" is k times the iteration without communication, added.
TEST(ComputePaceTest, ASlowWorkerSleepsForItsFactorInAddition) {
  EXPECT_DOUBLE_EQ(Of({.slow = {"1:2"}}, 1).Seconds(0.1, 16), 0.3);
  EXPECT_FALSE(Of({.slow = {"1:2"}}, 0).waits());
  EXPECT_DOUBLE_EQ(Of({.pace = {"0s,100"}, .slow = {"1:0.5"}}, 1).Seconds(0.01, 10), 0.15);
}

TEST(ComputePaceTest, RefusesWhatItCannotReadAndNamesIt) {
  const auto why = [](const PaceOptions& options) {
    const auto pace = ComputePace::Make(options, 0, 4);
    EXPECT_EQ(pace.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(pace.status().message());
  };
  EXPECT_THAT(why({.pace = {"20ms"}}), HasSubstr("--pace 20ms: expected DELAY,RATE"));
  EXPECT_THAT(why({.pace = {"20,800"}}), HasSubstr("--pace 20,800"));
  EXPECT_THAT(why({.pace = {"20ms,0"}}), HasSubstr("--pace 20ms,0"));
  EXPECT_THAT(why({.pace = {"2h,800"}}), HasSubstr("--pace 2h,800"));
  EXPECT_THAT(why({.pace = {"4:20ms,800"}}), HasSubstr("\"4\" names no ranks of 4 workers"));
  EXPECT_THAT(why({.pace = {"20ms,800", "10ms,900"}}), HasSubstr("another pace"));
  EXPECT_THAT(why({.pace = {"1:20ms,800", "1:10ms,900"}}), HasSubstr("another pace"));
  EXPECT_THAT(why({.pace = {"0-2:20ms,800;2:10ms,900"}}), HasSubstr("--pace 2:10ms,900: there is"));
  EXPECT_THAT(why({.pace = {"0:20ms,800;"}}), HasSubstr("expected DELAY,RATE"));
  EXPECT_THAT(why({.pace = {":20ms,800"}}), HasSubstr("names no ranks"));
  EXPECT_THAT(why({.slow = {"2"}}), HasSubstr("expected RANKS:K"));
  EXPECT_THAT(why({.slow = {"0-2:1;1:3"}}), HasSubstr("slowed twice"));
  EXPECT_THAT(why({.slow = {"9:2"}}), HasSubstr("--slow 9:2"));
  EXPECT_THAT(why({.slow = {"1:-1"}}), HasSubstr("--slow 1:-1"));
  EXPECT_THAT(why({.slow = {"1:2", "1:3"}}), HasSubstr("slowed twice"));
}

TEST(PacedIterationTest, TimeThatItWasHeldIsNotComputed) {
  PacedIteration iteration(Of({.slow = {"0:1"}}, 0));
  iteration.Begin(1'000'000'000);
  iteration.Held(400'000'000);
  // 0.1 s of computing in half a second: as much again is slept.
  EXPECT_EQ(iteration.EndNs(1'500'000'000, 16), 1'600'000'000);
  iteration.Begin(2'000'000'000);
  EXPECT_EQ(iteration.EndNs(2'100'000'000, 16), 2'200'000'000) << "each iteration by itself";
}

}  // namespace
}  // namespace syncopate
