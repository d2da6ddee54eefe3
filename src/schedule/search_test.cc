#include "schedule/search.h"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "schedule/models/model_tables.h"
#include "schedule/random_instances.h"
#include "schedule/search_problem.h"
#include "schedule/timeline.h"

namespace syncopate::schedule {
namespace {

using testing::Instance;
using testing::RandomInstance;

double Seconds(const Instance& instance, const Schedule& schedule,
               const TimelineOptions& options = {}) {
  return *PredictIteration(instance.table, instance.costs, schedule, options);
}

double Planned(absl::string_view planner, const Instance& instance) {
  return Seconds(instance, *MakeSchedule(planner, instance.table, instance.costs));
}

// The least time of all schedules with up to `ways` at once: every way to cut the tensors into
// runs, every `beside`.
double BruteForce(const Instance& instance, int ways) {
  const int tensors = instance.table.size();
  double best = std::numeric_limits<double>::infinity();
  Schedule schedule{"brute-force", {}};
  const auto go_on = [&](const auto& self, int left) -> void {
    if (left == 0) {
      best = std::min(best, Seconds(instance, schedule));
      return;
    }
    for (int first = 0; first < left; ++first) {
      for (int beside = 0; beside < (left == tensors ? 1 : ways); ++beside) {
        schedule.transfers.push_back({first, left - 1, beside});
        self(self, first);
        schedule.transfers.pop_back();
      }
    }
  };
  go_on(go_on, tensors);
  return best;
}

TEST(SearchTest, Within2PercentOfBruteForceOn200SmallInstances) {
  double worst = 1;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const int ways = 2 + static_cast<int>(seed % 2);
    const int tensors = ways == 2 ? 7 : 6;
    const Instance instance = RandomInstance(seed, tensors, ways);
    const double best = BruteForce(instance, ways);
    const double ratio = Planned("search", instance) / best;
    worst = std::max(worst, ratio);
    EXPECT_LE(ratio, 1.02) << "seed " << seed;
    EXPECT_GE(ratio, 1 - 1e-9) << "better than everything, seed " << seed;
  }
  RecordProperty("worst_ratio", std::to_string(worst));
}

// The parts that larger models rely on, where the complete search can still judge them.
TEST(SearchTest, BeamAndLocalSearchComeNearTheBestWithoutTheCompleteSearch) {
  std::vector<double> ratios;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Instance instance = RandomInstance(seed, 12, 2);
    const SearchProblem problem(instance.table, instance.costs, {});
    Transfers found = BeamSearch(problem, 8);
    int64_t steps = 1'000'000;
    ImproveLocally(problem, steps, found);
    Transfers best = found;
    ASSERT_TRUE(SearchCompletely(problem, 10'000'000, best)) << "seed " << seed;
    ratios.push_back(problem.Evaluate(found) / problem.Evaluate(best));
    EXPECT_GE(problem.Evaluate(best), problem.Bound() * (1 - 1e-12)) << "seed " << seed;
  }
  std::sort(ratios.begin(), ratios.end());
  EXPECT_LE(ratios[90], 1.01);
  EXPECT_LE(ratios.back(), 1.1);
}

TEST(SearchTest, TheProblemAndTheTimelineAgree) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Instance instance = RandomInstance(seed, 60, 3);
    for (const bool overlap : {false, true}) {
      const SearchProblem problem(instance.table, instance.costs, {.overlap_forward = overlap});
      for (const SchedulePlanner& planner : SchedulePlanners()) {
        const Schedule schedule = *MakeSchedule(planner.name, instance.table, instance.costs);
        const double seconds = Seconds(instance, schedule, {.overlap_forward = overlap});
        const double forward = overlap ? 0 : instance.table.forward_seconds();
        EXPECT_NEAR(problem.Evaluate(schedule.transfers) + forward, seconds, seconds * 1e-12)
            << planner.name << ", seed " << seed;
      }
    }
  }
}

// `search` <= all others, on the model.
TEST(SearchTest, NeverWorseThanTheOthersOn1000RandomInstances) {
  double gain = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const int tensors = 5 + static_cast<int>(seed % 50);
    const Instance instance = RandomInstance(seed, tensors, 2 + static_cast<int>(seed % 3));
    const double search = Planned("search", instance);
    for (const absl::string_view other : {"none", "wfbp", "mg-wfbp", "bucket", "asc-wfbp"}) {
      EXPECT_LE(search, Planned(other, instance) * (1 + 1e-12)) << other << ", seed " << seed;
    }
    gain += Planned("asc-wfbp", instance) / search / 1000;
  }
  std::printf("search is on average %.3f times as fast as asc-wfbp\n", gain);
  EXPECT_GT(gain, 1.02);
}

// In how many of 1000 instances `asc-wfbp` <= min(`wfbp`, `mg-wfbp`) breaks, with the contention of
// two raised by `more`.
int CountGreedyBreaks(double more) {
  int breaks = 0;
  double worst = 1;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Instance instance = RandomInstance(seed, 5 + static_cast<int>(seed % 90), 2);
    instance.costs.gamma[1] += more;
    const double asc = Planned("asc-wfbp", instance);
    const double others = std::min(Planned("wfbp", instance), Planned("mg-wfbp", instance));
    if (asc <= others * (1 + 1e-12)) continue;
    ++breaks;
    worst = std::max(worst, asc / others);
  }
  std::printf(
      "gamma(2) in [%g, %g]: asc-wfbp takes longer than the better of wfbp and mg-wfbp in %d of "
      "1000 instances, at worst %.2f times as long\n",
      1 + more, 2 + more, breaks, worst);
  return breaks;
}

TEST(SearchTest, TheGreedyRuleIsNoWorseThanWfbpAndMgWfbpWhileGammaIsAtMost2) {
  EXPECT_EQ(CountGreedyBreaks(0), 0);
  EXPECT_GT(CountGreedyBreaks(1), 100) << "it does not ask whether two at once are worth it";
}

TEST(SearchTest, PlansForTheNextForwardToo) {
  double gain = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Instance instance = RandomInstance(seed, 30, 3);
    const auto period = [&](const ScheduleOptions& options) {
      return Seconds(instance, *MakeSchedule("search", instance.table, instance.costs, options),
                     {.overlap_forward = true});
    };
    gain += period({}) / period({.overlap_forward = true}) / 50;
  }
  EXPECT_GT(gain, 1.002) << "planned for it, it is better at it";
}

TEST(SearchTest, MoreWaysAreNeverWorseForSmallModels) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Instance instance = RandomInstance(seed, 6, 4);
    double before = std::numeric_limits<double>::infinity();
    for (int ways = 1; ways <= 4; ++ways) {
      const Schedule schedule =
          *MakeSchedule("search", instance.table, instance.costs, {.ways_max = ways});
      const double seconds = Seconds(instance, schedule);
      EXPECT_LE(seconds, before * (1 + 1e-12)) << "seed " << seed;
      before = seconds;
    }
  }
}

double ThreadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// 100 ms are promised for a release build on a machine of its own; neither is given here.
TEST(SearchTest, Plans604TensorsInAFractionOfASecond) {
  const TensorTable table = *MakeModelTable("densenet-201");
  ASSERT_EQ(table.size(), 604);
  const cost::CommunicationCosts costs{1.4e-3, 1.7e-9, {1, 1.5, 2, 2.5}, ""};
  const double before = ThreadSeconds();
  ASSERT_TRUE(MakeSchedule("search", table, costs).ok());
  const double seconds = ThreadSeconds() - before;
  RecordProperty("milliseconds", std::to_string(seconds * 1e3));
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(seconds, 0.3);
#else
  EXPECT_LT(seconds, 10);
#endif
}

}  // namespace
}  // namespace syncopate::schedule
