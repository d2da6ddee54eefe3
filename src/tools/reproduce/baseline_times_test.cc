// The times of the baselines against formulas, on clusters small enough to write them down.
#include "tools/reproduce/baseline_times.h"

#include <numeric>

#include "gtest/gtest.h"
#include "plan/forest/paper_topologies.h"

namespace syncopate::tools::reproduce {
namespace {

constexpr double kGigabit = 1e9 / 8;
// A multiple of 64 elements for each of the largest number of chunks here.
constexpr uint64_t kBytes = uint64_t{4} * 64 * 16 * 4 * 100;

class BaselineTimesTest : public ::testing::Test {
 protected:
  // Four machines of four, 100 Gb/s inside, 10 Gb/s between.
  void Find(plan::BetweenNetwork between, const std::vector<std::string>& codes) {
    const plan::PaperCluster cluster = plan::MakePaperCluster(4, 4, between, 10);
    const Topology topology = *plan::PaperTopology(cluster);
    const absl::StatusOr<std::vector<BaselineTime>> times =
        TimesOfBaselines(topology, *PlaceInOrder(topology, 16),
                         plan::MakeActiveSet(cluster, codes)->workers, kBytes);
    ASSERT_TRUE(times.ok()) << times.status();
    times_ = *times;
  }
  const plan::FluidTime& Of(const std::string& name) const {
    for (const BaselineTime& baseline : times_) {
      if (baseline.name == name) return baseline.time;
    }
    ADD_FAILURE() << "no baseline " << name;
    return times_[0].time;
  }
  // Seconds of a part of the data at a rate.
  static double At(double part, double gigabits) {
    return part * static_cast<double>(kBytes) / (gigabits * kGigabit);
  }

  std::vector<BaselineTime> times_;
};

TEST_F(BaselineTimesTest, AllActiveWithALinkForEachGpuPair) {
  Find(plan::BetweenNetwork::kGpuPairs, {"4", "4", "4", "4"});
  EXPECT_EQ(times_.size(), 8u);
  // Every share crosses every pair once on its way to the server and once back.
  EXPECT_NEAR(Of("PS").staged, At(2.0 / 16, 10), 1e-9);
  EXPECT_NEAR(Of("PS on all").staged, Of("PS").staged, 1e-9);
  EXPECT_NEAR(Of("ring").staged, At(2.0 * 15 / 16, 10), 1e-9);
  EXPECT_NEAR(Of("best ring").staged, Of("ring").staged, 1e-9);
  // Inside: a quarter of the data on every link, twice. Between: rings of quarters.
  EXPECT_NEAR(Of("blink").staged, At(0.5, 100) + At(0.25 * 2 * 3 / 4, 10), 1e-9);
  EXPECT_NEAR(Of("blink").pipelined, At(0.25 * 2 * 3 / 4, 10), 1e-9);
  EXPECT_NEAR(Of("plink").staged, At(2, 100) + At(2, 10), 1e-9);
  EXPECT_NEAR(Of("hier. ring").staged, At(1.5, 100) + At(0.25 * 2 * 3 / 4, 10), 1e-9);
}

TEST_F(BaselineTimesTest, MachinePairsAreShared) {
  Find(plan::BetweenNetwork::kMachinePairs, {"4", "4", "4", "4"});
  EXPECT_NEAR(Of("PS").staged, At(2, 10), 1e-9);
  EXPECT_NEAR(Of("blink").staged, At(0.5, 100) + At(1.5, 10), 1e-9);
  EXPECT_EQ(Of("blink").limit.substr(0, 8), "capacity");
}

TEST_F(BaselineTimesTest, OneActiveWorkerInEachMachine) {
  Find(plan::BetweenNetwork::kGpuPairs, {"1", "1", "1", "1"});
  EXPECT_NEAR(Of("PS").staged, At(0.5, 10), 1e-9);
  EXPECT_NEAR(Of("PS on all").staged, At(2.0 / 16, 10), 1e-9);
  EXPECT_NEAR(Of("blink").staged, At(1.5, 10), 1e-9);
  EXPECT_NEAR(Of("ring").staged, At(1.5, 10), 1e-9);
}

// The machine with one worker needs four times as long for its part of the rings.
TEST_F(BaselineTimesTest, BlinkSuffersFromUnequalMachines) {
  Find(plan::BetweenNetwork::kGpuPairs, {"4", "4", "4", "4"});
  const double equal = Of("blink").pipelined;
  Find(plan::BetweenNetwork::kGpuPairs, {"4", "4", "1", "1"});
  EXPECT_NEAR(Of("blink").pipelined, 4 * equal, 1e-9);
}

TEST_F(BaselineTimesTest, FiveAreInThePaper) {
  Find(plan::BetweenNetwork::kSharedNics, {"2", "2", "0", "1"});
  int in_paper = 0;
  for (const BaselineTime& baseline : times_) {
    in_paper += baseline.in_paper;
    EXPECT_GT(baseline.time.pipelined, 0) << baseline.name;
    EXPECT_LE(baseline.time.pipelined, baseline.time.staged * (1 + 1e-9)) << baseline.name;
  }
  EXPECT_EQ(in_paper, 5);
}

}  // namespace
}  // namespace syncopate::tools::reproduce
