#include "plan/groups/ds_sync.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/groups/consensus.h"
#include "plan/groups/groups_testing.h"

namespace syncopate::plan {
namespace {

using ::testing::HasSubstr;

struct Planned {
  Pattern pattern;
  Consensus consensus;
  double lambda_of_period() const { return std::pow(consensus.lambda, pattern.period()); }
};

Planned PlanIt(const Place& root) {
  absl::StatusOr<DsSyncPlan> plan = PlanDsSync(root);
  EXPECT_EQ(std::string(plan.status().message()), "");
  if (!plan.ok()) return {};
  EXPECT_EQ(std::string(Validate(plan->pattern).message()), "");
  const absl::StatusOr<Consensus> consensus = ConsensusOf(plan->pattern);
  EXPECT_EQ(std::string(consensus.status().message()), "");
  if (!consensus.ok()) return {};
  return {std::move(plan->pattern), *consensus};
}

TEST(DsSyncTest, RepresentativesTakeTurns) {
  const Planned plan = PlanIt(Racks({{4}, {4}}));
  EXPECT_EQ(ToText(plan.pattern),
            "syncopate pattern 1\nplanner ds-sync\nworkers 8\nround 0,4 1-3 5-7\n"
            "round 0,2-3 1,5 4,6-7\nround 0-1,3 2,6 4-5,7\nround 0-2 3,7 4-6\nend\n");
  EXPECT_NEAR(plan.consensus.sigma2, 0.2963, 5e-5);
  EXPECT_NEAR(plan.lambda_of_period(), 0.1975, 5e-5);
  EXPECT_NEAR(plan.consensus.variance, 0.418, 5e-4);
}

// (G - 2) / (G - 1), whatever the number of racks.
TEST(DsSyncTest, EqualRacksShrinkDifferencesAsTheirSizeSays) {
  for (int size = 3; size <= 9; ++size) {
    for (size_t racks = 2; racks <= 6; ++racks) {
      const Planned plan = PlanIt(Racks(std::vector<RackOf>(racks, {size})));
      EXPECT_EQ(plan.pattern.period(), size);
      EXPECT_NEAR(plan.consensus.lambda, (size - 2.) / (size - 1), 1e-3) << racks;
    }
  }
}

TEST(DsSyncTest, RacksOfDifferentSizes) {
  EXPECT_NEAR(PlanIt(Racks({{5}, {3}})).consensus.lambda, 0.640, 1e-3);
  EXPECT_EQ(PlanIt(Racks({{5}, {3}})).pattern.period(), 15);
  EXPECT_EQ(PlanIt(Racks({{3}, {5}, {8}})).pattern.period(), 64);
  EXPECT_EQ(PlanIt(Racks({{3}, {5}, {80}})).pattern.period(), 80);
  EXPECT_EQ(PlanIt(Racks({{1}, {1}, {1}})).consensus.variance, 0);
  EXPECT_EQ(PlanIt(Racks({{2}, {1}})).pattern.period(), 2);
  EXPECT_EQ(PlanIt(Racks({{1}})).pattern.rounds, (std::vector<Pattern::Round>{{{0}}}));
}

// Without a shift 0 would meet 2 and 1 would meet 3, and nobody else.
TEST(DsSyncTest, RacksOfTwoAreShiftedAgainstEachOther) {
  const Planned plan = PlanIt(Racks({{2}, {2}}));
  EXPECT_EQ(plan.pattern.period(), 4);
  EXPECT_EQ(plan.consensus.lambda, 0);
  EXPECT_EQ(plan.pattern.rounds[3], (Pattern::Round{{0}, {1, 2}, {3}}));
}

TEST(DsSyncTest, ASlowUplinkIsInAPair) {
  EXPECT_LE(PlanIt(Racks({{4, true}, {4}, {4}, {4}})).consensus.lambda, 0.771);
  EXPECT_LE(PlanIt(Racks({{4, true}, {4, true}, {4, true}, {4, true}, {4}, {4}, {4}, {4}}))
                .consensus.lambda,
            0.829);
  const Planned three = PlanIt(Racks({{4, true}, {4}, {4}}));
  EXPECT_NEAR(three.consensus.lambda, 0.917, 5e-4);
  EXPECT_NEAR(three.consensus.variance, 1.06, 5e-3);
  const Planned whole = PlanIt(Racks({{4, true}, {4}, {4}}, true));
  EXPECT_NEAR(whole.consensus.lambda, 0.667, 5e-4);
  EXPECT_NEAR(whole.consensus.variance, 0.43, 5e-3);
  EXPECT_EQ(PlanIt(Racks({{4, true}, {4}})).pattern, PlanIt(Racks({{4}, {4}})).pattern);
}

TEST(DsSyncTest, ASlowHostIsInAPair) {
  const Planned plan = PlanIt(Racks({{4, false, {3}}, {4}}));
  EXPECT_EQ(plan.pattern.rounds[0], (Pattern::Round{{0, 4}, {1, 3}, {2}, {5, 6, 7}}));
  EXPECT_NEAR(plan.consensus.lambda, 0.612, 5e-4);
  EXPECT_NEAR(plan.consensus.variance, 0.694, 5e-4);
  const Planned whole = PlanIt(Racks({{4, false, {3}, true}, {4}}));
  EXPECT_NEAR(whole.consensus.lambda, 0.667, 5e-4);
  EXPECT_NEAR(whole.consensus.variance, 0.418, 5e-4);
  EXPECT_NEAR(PlanIt(Racks({{5, false, {4}}, {3}})).consensus.lambda, 0.5, 5e-4);
}

TEST(DsSyncTest, ARackOfTwoWithASlowHostTakesTurns) {
  const Planned plan = PlanIt(Racks({{2, false, {1}}, {4}}));
  for (size_t t = 0; t < plan.pattern.rounds.size(); ++t) {
    const Pattern::Round& round = plan.pattern.rounds[t];
    EXPECT_EQ(std::count(round.begin(), round.end(), Pattern::Group({0, 1})), t % 2 == 0 ? 1 : 0);
  }
}

TEST(DsSyncTest, SlowOnesThatAreLeftOverPlayATournament) {
  const Planned plan = PlanIt(Racks({{1, true}, {1, true}, {1, true}, {1, true}, {1}}));
  for (const Pattern::Round& round : plan.pattern.rounds) {
    for (const Pattern::Group& group : round) EXPECT_LE(group.size(), 2u);
  }
  std::vector<int> met(5, 0);
  for (const Pattern::Round& round : plan.pattern.rounds) {
    const Pattern::Group& last = *std::find_if(
        round.begin(), round.end(), [](const Pattern::Group& g) { return g.back() == 4; });
    ++met[static_cast<size_t>(last.front())];
  }
  for (int slow = 0; slow < 4; ++slow) EXPECT_EQ(met[static_cast<size_t>(slow)], met[0]);
  EXPECT_GT(met[0], 0);
}

TEST(DsSyncTest, RefusesWorkersThatAreNotNumberedOnce) {
  Place root = Racks({{2}, {2}});
  root.children[1].children[0].worker = 1;
  EXPECT_THAT(std::string(PlanDsSync(root).status().message()), HasSubstr("two places"));
  root.children[1].children[0].worker = 9;
  EXPECT_THAT(std::string(PlanDsSync(root).status().message()), HasSubstr("worker 9"));
  EXPECT_FALSE(PlanDsSync(Place()).ok());
}

// The workers below each place that is left once single ones are, and what it must hold to.
class PlaceRules {
 public:
  PlaceRules(const Place& root, const Pattern& pattern) : pattern_(pattern), root_(root) {}

  void Check() { Walk(WithoutSingles(root_), true); }

 private:
  std::vector<int> Walk(const Place& place, bool top) {
    if (place.is_worker()) return {place.worker};
    std::vector<int> below;
    std::vector<std::vector<int>> of_children;
    for (const Place& child : place.children) {
      of_children.push_back(Walk(child, false));
      below.insert(below.end(), of_children.back().begin(), of_children.back().end());
    }
    if (!top) CheckPlace(place, below);
    return below;
  }

  void CheckPlace(const Place& place, const std::vector<int>& below) {
    const auto inside = [&](int rank) {
      return std::find(below.begin(), below.end(), rank) != below.end();
    };
    bool regular = false;
    std::vector<int> regular_workers, slow_workers;
    for (const Place& child : place.children) {
      regular = regular || !child.slow;
      if (child.is_worker()) (child.slow ? slow_workers : regular_workers).push_back(child.worker);
    }
    std::vector<int> went_up;
    for (const Pattern::Round& round : pattern_.rounds) {
      int leaving = 0;
      for (const Pattern::Group& group : round) {
        const auto members = std::count_if(group.begin(), group.end(), inside);
        if (members == 0 || members == static_cast<int64_t>(group.size())) continue;
        // A group that leaves a place has one worker of it, and there is one such group.
        EXPECT_EQ(members, 1);
        ++leaving;
        went_up.push_back(*std::find_if(group.begin(), group.end(), inside));
      }
      EXPECT_LE(leaving, 1);
    }
    if (!regular) return;
    for (const int slow : slow_workers) {
      EXPECT_EQ(std::count(went_up.begin(), went_up.end(), slow), 0) << "a slow host went up";
    }
  }

  const Pattern& pattern_;
  const Place root_;
};

int LargestPlace(const Place& place, bool top = true) {
  int largest = top ? 0 : static_cast<int>(place.children.size());
  for (const Place& child : place.children) largest = std::max(largest, LargestPlace(child, false));
  return largest;
}

// Makes their length 1 and returns what it was. Rounding leaves a mean, which would not shrink.
double Normalize(std::vector<double>& values) {
  double mean = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  for (double& value : values) value -= mean;
  const double length = LengthOf(values);
  for (double& value : values) value /= length;
  return length;
}

TEST(DsSyncTest, HoldsItsRulesOnRandomTrees) {
  int slopes = 0;
  for (uint64_t seed = 0; seed < 3000 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Place root = RandomPlaces(seed, 60);
    const Planned plan = PlanIt(root);
    ASSERT_GT(plan.pattern.period(), 0);
    EXPECT_LE(plan.pattern.period(),
              std::max(kDsSyncPeriodMax, LargestPlace(WithoutSingles(root))));
    PlaceRules(root, plan.pattern).Check();

    // What is left after k periods, and how quickly it shrinks late.
    Random random(seed + 1);
    std::vector<double> values = RandomValues(plan.pattern.workers, random);
    double bound = LengthOf(values);
    double left = 1;
    for (int period = 1; period <= 2; ++period) {
      for (const Pattern::Round& round : plan.pattern.rounds) Average(round, values);
      bound *= plan.consensus.sigma2;
      left = LengthOf(values);
      EXPECT_LE(left, bound * (1 + 1e-6) + 1e-12);
    }
    if (plan.consensus.lambda <= 0.05) {
      EXPECT_LE(left, 1e-9);
      continue;
    }
    Normalize(values);
    double growth = 0;
    int rounds = 0;
    for (int period = 0; period < 8 || rounds < 400; ++period) {
      for (const Pattern::Round& round : plan.pattern.rounds) {
        Average(round, values);
        const double factor = Normalize(values);
        if (period < 4) continue;
        growth += std::log(factor);
        ++rounds;
      }
    }
    EXPECT_NEAR(std::exp(growth / rounds), plan.consensus.lambda, 0.05 * plan.consensus.lambda);
    ++slopes;
  }
  EXPECT_GT(slopes, 1000);
}

// Racks of any sizes around one switch: who goes up, and how large the groups of slow ones are.
TEST(DsSyncTest, HoldsItsRulesOnRandomRacks) {
  int kept_apart = 0;
  for (uint64_t seed = 0; seed < 2000 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    std::vector<RackOf> racks(random.Below(6) + 2);
    for (RackOf& rack : racks) {
      rack.size = static_cast<int>(random.Between(2, 9));
      rack.slow = random.Below(4) == 0;
      for (int i = 0; i < rack.size; ++i) {
        if (random.Below(8) == 0) rack.slow_members.push_back(i);
      }
    }
    const Place root = Racks(racks);
    const Planned plan = PlanIt(root);
    std::vector<int> rack_of, up(static_cast<size_t>(plan.pattern.workers), 0);
    std::vector<bool> slow_host;
    for (size_t r = 0; r < racks.size(); ++r) {
      for (const Place& worker : root.children[r].children) {
        rack_of.push_back(static_cast<int>(r));
        slow_host.push_back(worker.slow);
      }
    }
    const auto rack = [&](int rank) { return rack_of[static_cast<size_t>(rank)]; };
    const auto all_slow = [&](const RackOf& one) {
      return static_cast<int>(one.slow_members.size()) == one.size;
    };
    for (const Pattern::Round& round : plan.pattern.rounds) {
      for (const Pattern::Group& group : round) {
        const bool leaves = rack(group.front()) != rack(group.back());
        for (const int rank : group) {
          const RackOf& its = racks[static_cast<size_t>(rack(rank))];
          if (leaves) ++up[static_cast<size_t>(rank)];
          const bool apart = (leaves && its.slow) ||
                             (!leaves && slow_host[static_cast<size_t>(rank)] && !all_slow(its));
          if (!apart) continue;
          EXPECT_LE(group.size(), 2u);
          ++kept_apart;
        }
      }
    }
    // Where nothing is slow at the top, and no rack takes every second turn only, each regular worker
    // meets others in its turn.
    const bool uneven = std::any_of(racks.begin(), racks.end(), [](const RackOf& one) {
      const size_t slow = one.slow_members.size();
      return one.slow || (slow > 0 && slow + 1 == static_cast<size_t>(one.size));
    });
    for (size_t rank = 0; rank < up.size() && !uneven; ++rank) {
      EXPECT_TRUE(up[rank] > 0 || slow_host[rank]) << "worker " << rank;
    }
  }
  EXPECT_GT(kept_apart, 1000);
}

TEST(DsSyncTest, VarianceIsThatOfASimulation) {
  int simulated = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const Place root = RandomPlaces(seed, 16);
    const Planned plan = PlanIt(root);
    if (plan.pattern.workers < 2) continue;
    EXPECT_NEAR(plan.consensus.variance, VarianceByCovariance(plan.pattern),
                0.01 * plan.consensus.variance + 1e-9)
        << "seed " << seed;
    ++simulated;
  }
  EXPECT_GT(simulated, 200);
}

// Workers whose parameters really move at random: 4+4 with a slow host, 200,000 iterations.
TEST(DsSyncTest, VarianceIsThatOfARandomWalk) {
  const Planned plan = PlanIt(Racks({{4, false, {3}}, {4}}));
  Random random(7);
  std::vector<double> values(8, 0);
  double sum = 0;
  constexpr int kIterations = 200'000;
  for (int t = 0; t < kIterations; ++t) {
    // Uniform between -sqrt(3) and sqrt(3): variance 1.
    for (double& value : values) value += (2 * random.Unit() - 1) * std::sqrt(3.0);
    Average(plan.pattern.RoundOf(static_cast<uint64_t>(t)), values);
    double mean = 0;
    for (const double value : values) mean += value / 8;
    for (const double value : values) sum += (value - mean) * (value - mean) / 7;
  }
  EXPECT_NEAR(sum / kIterations, plan.consensus.variance, 0.05 * plan.consensus.variance);
}

}  // namespace
}  // namespace syncopate::plan
