#include "tools/bench/estimate.h"

#include "gtest/gtest.h"

namespace syncopate::tools::bench {
namespace {

// Two sizes, two rounds, unchecked calls of which a round has 10 and one before them.
BenchOptions Options() {
  BenchOptions options;
  options.sizes = {1000, 2000};
  options.rounds = 2;
  options.iterations = 10;
  options.warmup = 1;
  options.check = 0;
  return options;
}

double OneSecondAThousandBytes(uint64_t bytes) { return static_cast<double>(bytes) / 1000; }

// A trial has 1 call and a round 11, so a contestant makes 23 calls at each size.
TEST(EstimateTest, IsSizesTimesContestantsTimesRounds) {
  const BenchOptions options = Options();
  EXPECT_DOUBLE_EQ(Estimate(options, OneSecondAThousandBytes, 1).SecondsLeft(), 23 + 46);
  EXPECT_DOUBLE_EQ(Estimate(options, OneSecondAThousandBytes, 3).SecondsLeft(), 3 * (23 + 46));
}

TEST(EstimateTest, IsRefinedByWhatContestantsTake) {
  const BenchOptions options = Options();
  Estimate estimate(options, OneSecondAThousandBytes, 2);
  EXPECT_EQ(estimate.Part(), 0);
  estimate.Ran(0, 0.5);  // half of the guess, so it will need half at all sizes
  estimate.Ran(1, 1);
  EXPECT_DOUBLE_EQ(estimate.SecondsLeft(), 0.5 * (22 + 46) + 1 * (22 + 46));
  EXPECT_DOUBLE_EQ(estimate.Part(), 1.5 / (1.5 + estimate.SecondsLeft()));
}

TEST(EstimateTest, EndsWithEverythingDone) {
  const BenchOptions options = Options();
  Estimate estimate(options, OneSecondAThousandBytes, 2);
  double before = 0;
  for (int size = 0; size < 2; ++size) {
    for (int run = 0; run < 3; ++run) {
      estimate.Ran(0, 1 + size);
      if (size == 0 && run == 1) estimate.Left(1);
      if (size == 0 && run == 0) estimate.Ran(1, 50);  // much slower than was thought
      EXPECT_GE(estimate.Part(), before);
      before = estimate.Part();
    }
    estimate.NextSize();
  }
  EXPECT_DOUBLE_EQ(estimate.Part(), 1);
  EXPECT_EQ(estimate.SecondsLeft(), 0);
}

TEST(EstimateTest, ATrialIsOneCallWhereTheirNumberIsGiven) {
  BenchOptions options;
  EXPECT_EQ(PlanTrial(options).iterations, 5);
  options.iterations = 2;
  EXPECT_EQ(PlanTrial(options).iterations, 1);
  EXPECT_EQ(PlanTrial(options).warmup, 0);
}

TEST(EstimateTest, ChecksCostTimeToo) {
  BenchOptions options = Options();
  options.workers = 4;
  const auto instant = [](uint64_t) { return 0.0; };
  EXPECT_EQ(Estimate(options, instant, 1).SecondsLeft(), 0);
  options.check = 1;
  EXPECT_GT(Estimate(options, instant, 1).SecondsLeft(), 0);
}

TEST(EstimateTest, LargerBuffersTakeLongerOnAHost) {
  const CallGuess guess = GuessOnHost(4);
  EXPECT_GT(guess(0), 0);
  EXPECT_GT(guess(1 << 20), guess(1 << 10));
}

}  // namespace
}  // namespace syncopate::tools::bench
