#include "train/seconds_left.h"

#include "gtest/gtest.h"

namespace syncopate::train {
namespace {

// Iterations of 10 ms; after every 20 comes an evaluation of 2 s, which a mean of the last few
// iterations would take for the pace of all that follow (or for none of them).
TEST(SecondsLeftTest, PausesDoNotMakeItJump) {
  constexpr int64_t kIterations = 1000, kIterationNs = 10'000'000, kPauseNs = 2'000'000'000;
  int64_t elapsed_ns = 0;
  double before = 0;
  for (int64_t i = 1; i <= kIterations; ++i) {
    elapsed_ns += kIterationNs;
    const double left = SecondsLeft({elapsed_ns, i, kIterations - i});
    if (i > 200) {
      EXPECT_NEAR(left, before, 0.1 * before + 0.1) << i;
    }
    before = left;
    if (i % 20 == 0) elapsed_ns += kPauseNs;
  }
  EXPECT_EQ(before, 0);
  EXPECT_EQ(SecondsLeft({5, 0, 10}), 0);
}

}  // namespace
}  // namespace syncopate::train
