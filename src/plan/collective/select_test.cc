#include "plan/collective/select.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/program_validator.h"
#include "model/topology_makers.h"
#include "plan/collective/planners.h"
#include "plan/collective/quick_select.h"
#include "plan/collective/shared_memory.h"
#include "plan/forest/forest_planner.h"

namespace syncopate::plan {
namespace {

using ::testing::HasSubstr;

CollectiveRequest AllReduce(int workers, uint64_t elements) {
  CollectiveRequest request;
  request.workers = workers;
  for (int i = 0; i < workers; ++i) request.active.push_back(i);
  request.elements = elements;
  return request;
}

Selection Select(const CollectiveRequest& request, const Topology& topology,
                 const SelectOptions& options = {}) {
  const absl::StatusOr<std::vector<int>> placement = PlaceInOrder(topology, request.workers);
  EXPECT_TRUE(placement.ok());
  absl::StatusOr<Selection> selection = SelectProgram(request, 4, topology, *placement, options);
  EXPECT_EQ(std::string(selection.status().message()), "");
  return selection.ok() ? *std::move(selection) : Selection();
}

const Candidate* Find(const Selection& selection, absl::string_view description) {
  for (const Candidate& candidate : selection.candidates) {
    if (Describe(candidate) == description) return &candidate;
  }
  ADD_FAILURE() << "no candidate " << description;
  return nullptr;
}

TEST(SelectTest, TheWinnerIsFirstAndTheOthersFollowByTime) {
  const Selection selection = Select(AllReduce(8, 1 << 18), StarTopology(8, 1e9, 1e-5));
  ASSERT_FALSE(selection.candidates.empty());
  EXPECT_EQ(selection.program.algorithm, selection.candidates[0].algorithm);
  EXPECT_DOUBLE_EQ(selection.cost.seconds, selection.candidates[0].seconds);
  EXPECT_TRUE(ProveProgram(selection.program).ok());
  bool skipped = false;
  double last = 0;
  for (size_t i = 1; i < selection.candidates.size(); ++i) {
    const Candidate& candidate = selection.candidates[i];
    EXPECT_LE(skipped, !candidate.skipped.empty()) << Describe(candidate);
    skipped = !candidate.skipped.empty();
    if (skipped) continue;
    EXPECT_LE(last, candidate.seconds);
    EXPECT_LE(selection.candidates[0].seconds, candidate.seconds * 1.0011);
    last = candidate.seconds;
  }
}

// For the same size it is the same program; for others it is right too.
TEST(SelectTest, PlansAlikeForOtherSizes) {
  Random random(11);
  for (int i = 0; i < 30; ++i) {
    const Topology topology = RandomTopology(static_cast<int>(random.Between(2, 9)), random.Next());
    const int workers = static_cast<int>(Devices(topology).size());
    const CollectiveRequest request = AllReduce(workers, 1 + random.Below(200'000));
    const Selection selection = Select(request, topology);
    const absl::StatusOr<Program> same = PlanAlike(selection, request);
    ASSERT_TRUE(same.ok()) << same.status();
    EXPECT_EQ(DigestOf(*same), DigestOf(selection.program)) << selection.why;
    const CollectiveRequest other = AllReduce(workers, 1 + random.Below(200'000));
    const absl::StatusOr<Program> alike = PlanAlike(selection, other);
    ASSERT_TRUE(alike.ok()) << alike.status();
    EXPECT_EQ(alike->elements(), other.elements);
    EXPECT_TRUE(ProveProgram(*alike).ok()) << selection.why;
  }
}

// A worker without data can add as well as the others; with a fast NIC it is the best place.
TEST(SelectTest, InactiveWorkersMayServe) {
  CollectiveRequest request = AllReduce(5, 1 << 20);
  request.active = {0, 1, 4};
  const Selection selection =
      Select(request, StarTopology(5, 1e9, 1e-5), {.algorithm = "parameter-server"});
  EXPECT_TRUE(ProveProgram(selection.program).ok());
  EXPECT_FALSE(selection.program.steps[2].empty());
  EXPECT_FALSE(selection.program.steps[3].empty());
  EXPECT_THAT(selection.candidates[0].variant, HasSubstr("all 5 workers"));
  EXPECT_TRUE(std::any_of(selection.candidates.begin(), selection.candidates.end(),
                          [](const Candidate& c) { return c.variant == "inactive servers 2-3"; }));
}

TEST(SelectTest, EveryPlannerIsConsidered) {
  const Selection selection = Select(AllReduce(4, 1000), StarTopology(4, 1e9, 1e-5));
  for (const PlannerInfo* planner : AllPlanners()) {
    if (planner->collective != Collective::kAllReduce) continue;
    EXPECT_TRUE(std::any_of(selection.candidates.begin(), selection.candidates.end(),
                            [&](const Candidate& c) { return c.algorithm == planner->name; }))
        << planner->name;
  }
}

// A tiny buffer on a slow-starting network: rounds are all that counts. A large one: traffic is.
TEST(SelectTest, SmallBuffersWantFewRoundsLargeOnesLittleTraffic) {
  const Topology star = StarTopology(8, 1e9, 1e-4);
  const Selection tiny = Select(AllReduce(8, 8), star);
  EXPECT_EQ(ProveProgram(tiny.program)->rounds, 1);
  const Selection large = Select(AllReduce(8, 1 << 24), star);
  const double bound = 2.0 * 7 / 8 * (1 << 26);
  EXPECT_LE(large.candidates[0].bytes_sent_max, 1.01 * bound);
  EXPECT_LE(large.candidates[0].seconds, 1.05 * bound / 1e9);
}

// Racks of four with an uplink as fast as one NIC: what crosses it counts.
TEST(SelectTest, HierarchicalIsTriedWhereGroupsAreNamed) {
  const Topology racks = TwoRackTopology(4, 1e9, 1e9, 1e-5);
  const Selection selection = Select(AllReduce(8, 1 << 20), racks);
  const Candidate* hierarchical = Find(selection, "hierarchical");
  const Candidate* direct = Find(selection, "direct");
  ASSERT_TRUE(hierarchical != nullptr && direct != nullptr);
  EXPECT_LT(hierarchical->seconds, direct->seconds);
}

TEST(SelectTest, PlannersOfGroupsAreSkippedWhereNoneAreNamed) {
  const Selection none = Select(AllReduce(8, 1 << 20), StarTopology(8, 1e9, 1e-5));
  const Selection racks = Select(AllReduce(8, 1 << 20), TwoRackTopology(4, 1e9, 1e9, 1e-5));
  for (const char* algorithm : {"hierarchical", "hierarchical-ring", "blink", "plink"}) {
    EXPECT_EQ(Find(none, algorithm)->skipped, "the topology names no groups of workers");
    EXPECT_GT(Find(racks, algorithm)->seconds, 0);
  }
}

// One link of the ring in the order of ranks is slow; no name of a place tells it.
TEST(SelectTest, RingsTakeTheBestOrder) {
  Topology mesh = MeshTopology(6, 1e9, 1e-5);
  const std::vector<int> devices = Devices(mesh);
  for (Topology::Link& link : mesh.links) {
    if (link.from == devices[1] && link.to == devices[2]) link.bandwidth = 1e8;
  }
  const Selection selection = Select(AllReduce(6, 6 << 16), mesh);
  const Candidate* plain = Find(selection, "ring");
  const Candidate* best = Find(selection, "ring, best order");
  ASSERT_TRUE(plain != nullptr && best != nullptr);
  EXPECT_LT(best->seconds, 0.2 * plain->seconds);
}

TEST(SelectTest, TheBestOrderIsNotListedWhereItIsNoBetter) {
  const Selection selection = Select(AllReduce(6, 6 << 16), StarTopology(6, 1e9, 1e-5));
  for (const Candidate& candidate : selection.candidates)
    EXPECT_EQ(candidate.variant.find("best"), std::string::npos);
}

// Ranks dealt to the racks in turn: a ring in the order of ranks crosses the uplink at every hop.
TEST(SelectTest, RingsFollowThePlace) {
  const Topology racks = TwoRackTopology(3, 1e9, 1e9, 1e-5);
  const std::vector<int> d = Devices(racks);
  const std::vector<int> placement = {d[0], d[3], d[1], d[4], d[2], d[5]};
  const absl::StatusOr<Selection> selection =
      SelectProgram(AllReduce(6, 6 << 16), 4, racks, placement, {});
  ASSERT_TRUE(selection.ok());
  const Candidate* plain = Find(*selection, "ring");
  const Candidate* by_place = Find(*selection, "ring, by place");
  ASSERT_TRUE(plain != nullptr && by_place != nullptr);
  EXPECT_LT(2.5 * by_place->seconds, plain->seconds);
}

TEST(SelectTest, OnOneHostItAgreesWithQuickSelect) {
  for (const int workers : {2, 4, 8}) {
    const Topology host = SingleHostTopology(workers, HostCosts());
    const QuickSelect quick(workers, HostCosts());
    for (const uint64_t bytes : {1 << 10, 4 << 10, 64 << 10, 1 << 20, 16 << 20}) {
      const Selection selection = Select(AllReduce(workers, bytes / 4), host);
      const Candidate& winner = selection.candidates[0];
      EXPECT_EQ(winner.algorithm, quick.Algorithm(Collective::kAllReduce, bytes))
          << workers << " workers, " << bytes << " bytes: " << selection.why;
      EXPECT_TRUE(winner.in_place);
      const SharedMemory memory = MemoryOfHost(HostCosts(), workers);
      const auto seconds = [&](absl::string_view name) {
        const PlannerInfo* planner = *FindPlanner(Collective::kAllReduce, name);
        return InPlaceTime(memory, planner->in_place(workers), workers, static_cast<double>(bytes))
            .seconds();
      };
      EXPECT_NEAR(winner.seconds, std::min(seconds("one-shot"), seconds("direct")),
                  1e-3 * winner.seconds);
    }
  }
}

// What a prediction consists of adds up to it, and its steps take as long as their critical chain.
TEST(SelectTest, PredictionsAreTheSumOfTheirParts) {
  const Topology host = SingleHostTopology(4, HostCosts());
  const Topology racks = TwoRackTopology(2, 1e9, 1e8, 1e-5);
  for (const Topology* topology : {&host, &racks}) {
    for (const PlannerInfo* planner : AllPlanners()) {
      CollectiveRequest request = AllReduce(4, 1 << 16);
      request.collective = planner->collective;
      if (HasBlocks(request.collective)) request.block_elements.assign(4, 1 << 14);
      if (request.collective == Collective::kBarrier) request.elements = 0;
      request.root = 1;
      request.target = 2;
      SelectOptions options;
      options.algorithm = planner->name;
      const absl::StatusOr<Selection> selection =
          SelectProgram(request, 4, *topology, *PlaceInOrder(*topology, 4), options);
      if (!selection.ok()) continue;  // a planner for machines, or for networks
      const Candidate& winner = selection->candidates[0];
      SCOPED_TRACE(::testing::Message() << Name(request.collective) << " by " << planner->name);
      EXPECT_DOUBLE_EQ(winner.seconds,
                       winner.steps_seconds * winner.slower + winner.on_host.seconds());
      if (winner.in_place) {
        EXPECT_EQ(winner.steps_seconds, 0);
      } else {
        ASSERT_FALSE(selection->cost.critical_chain.empty());
        EXPECT_DOUBLE_EQ(winner.steps_seconds, selection->cost.critical_chain.back().end);
      }
      EXPECT_EQ(winner.on_host.meetings > 0, topology == &host);
    }
  }
}

TEST(SelectTest, ProgramsThatAreTooLargeAreSkippedWithTheReason) {
  SelectOptions options;
  options.steps_max = 1000;
  const Selection selection = Select(AllReduce(64, 1 << 20), StarTopology(64, 1e9, 1e-5), options);
  EXPECT_TRUE(selection.candidates[0].skipped.empty());
  const Candidate* ring = Find(selection, "ring");
  ASSERT_NE(ring, nullptr);
  EXPECT_THAT(ring->skipped, HasSubstr("steps, more than the 1000 that are played"));
  uint64_t steps = 0;
  for (const auto& list : selection.program.steps) steps += list.size();
  EXPECT_LE(steps, 1000u);

  options.algorithm = "ring";
  const Topology star = StarTopology(64, 1e9, 1e-5);
  const absl::Status status =
      SelectProgram(AllReduce(64, 1 << 20), 4, star, *PlaceInOrder(star, 64), options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("more than the 1000"));
}

// A planner that makes millions of steps must not even be called.
TEST(SelectTest, ThousandsOfWorkers) {
  const Selection selection = Select(AllReduce(2048, 1 << 20), StarTopology(2048, 1e9, 1e-5));
  EXPECT_THAT(Find(selection, "one-shot")->skipped, HasSubstr("about"));
  EXPECT_TRUE(selection.candidates[0].skipped.empty());
}

TEST(SelectTest, OnlyWhatIsAskedFor) {
  SelectOptions options;
  options.algorithm = "ring";
  options.pieces = 3;
  const Selection selection = Select(AllReduce(4, 1 << 20), StarTopology(4, 1e9, 1e-5), options);
  ASSERT_EQ(selection.candidates.size(), 1u);
  EXPECT_EQ(Describe(selection.candidates[0]), "ring, 3 pieces");
}

TEST(SelectTest, OneNumberOfPiecesIsTheBestOfEachAlgorithm) {
  const Selection selection = Select(AllReduce(4, 1 << 20), StarTopology(4, 1e9, 1e-5));
  EXPECT_TRUE(selection.candidates[0].best_pieces);
  double best_ring = 0;
  for (const Candidate& candidate : selection.candidates) {
    if (candidate.algorithm == "ring" && candidate.best_pieces) {
      EXPECT_EQ(best_ring, 0) << "two are marked";
      best_ring = candidate.seconds;
    }
  }
  ASSERT_GT(best_ring, 0);
  for (const Candidate& candidate : selection.candidates) {
    if (candidate.algorithm != "ring") continue;
    EXPECT_LE(best_ring, candidate.seconds * 1.0011) << Describe(candidate);
  }
}

TEST(SelectTest, PlannersThatDoNotCutAreNotListedTwice) {
  const Selection selection = Select(AllReduce(4, 1 << 20), StarTopology(4, 1e9, 1e-5));
  const auto listed = [&](absl::string_view algorithm) {
    return std::count_if(selection.candidates.begin(), selection.candidates.end(),
                         [&](const Candidate& c) { return c.algorithm == algorithm; });
  };
  EXPECT_EQ(listed("direct"), 1);
  EXPECT_GT(listed("ring"), 3);
}

TEST(SelectTest, WhySaysByHowMuchAndWhatLimits) {
  const Selection large = Select(AllReduce(8, 1 << 24), TwoRackTopology(4, 1e9, 1e8, 1e-5));
  EXPECT_THAT(large.why, HasSubstr("as long"));
  EXPECT_THAT(large.why, HasSubstr("it is limited by capacity \"uplink"));
  const Selection tiny = Select(AllReduce(8, 1), StarTopology(8, 1e9, 1e-3));
  EXPECT_THAT(tiny.why, HasSubstr("most of that is waiting"));
  const Selection alone = Select(AllReduce(1, 100), StarTopology(1, 1e9, 1e-3));
  EXPECT_THAT(alone.why, HasSubstr("there is nothing to wait for"));
}

TEST(SelectTest, TakesAForestWhereNicsDiffer) {
  Topology topology = StarTopology(8, 1e8, 1e-5);
  for (const int slow : {3}) {
    for (Topology::Link& link : topology.links) {
      if (link.from == Devices(topology)[slow] || link.to == Devices(topology)[slow]) {
        link.bandwidth = 0.45e8;
      }
    }
  }
  const Selection large = Select(AllReduce(8, 1 << 22), topology);
  EXPECT_EQ(large.candidates[0].algorithm, "forest");
  const ForestPlan* forest = ForestOf(large.candidates[0]);
  ASSERT_NE(forest, nullptr);
  EXPECT_LT(large.candidates[0].seconds, 1.1 * forest->seconds_per_byte * (1 << 24));
  // A few bytes go another way, and it is said which.
  const Selection small = Select(AllReduce(8, 16), topology);
  EXPECT_NE(small.candidates[0].algorithm, "forest");
  SelectOptions options;
  options.algorithm = "forest";
  const absl::StatusOr<Selection> asked =
      SelectProgram(AllReduce(8, 1 << 22), 4, topology, *PlaceInOrder(topology, 8), options);
  ASSERT_TRUE(asked.ok()) << asked.status();
  EXPECT_EQ(asked->program.algorithm, "forest");
}

// Whoever asks for a forest gets what the certificate promises, not the one that is easiest to run.
TEST(SelectTest, AForestThatIsAskedForIsNearItsBound) {
  Topology topology = StarTopology(8, 1e8, 1e-5);
  for (Topology::Link& link : topology.links) {
    if (link.from % 3 == 1) link.bandwidth = 0.6e8;
    if (link.to % 3 == 2) link.bandwidth = 0.7e8;
  }
  SelectOptions options;
  options.algorithm = "forest";
  const absl::StatusOr<Selection> asked =
      SelectProgram(AllReduce(8, 1 << 22), 4, topology, *PlaceInOrder(topology, 8), options);
  ASSERT_TRUE(asked.ok()) << asked.status();
  EXPECT_LE(ForestOf(asked->candidates[0])->certificate.gap(), 0.0101);
  EXPECT_EQ(asked->candidates[0].slower, 1);
}

// A candidate that was skipped has no time, and none was marked when it came first.
TEST(SelectTest, TheBestCutIsMarkedThoughTheFirstWasTooLarge) {
  const Topology star = StarTopology(8, 1e9, 1e-5);
  int mixed = 0;
  for (uint64_t steps_max = 32; steps_max <= 8192; steps_max *= 2) {
    SelectOptions options;
    options.algorithm = "forest";
    options.steps_max = steps_max;
    const absl::StatusOr<Selection> selection =
        SelectProgram(AllReduce(8, 1 << 16), 4, star, *PlaceInOrder(star, 8), options);
    if (!selection.ok()) continue;
    mixed += !selection->candidates.back().skipped.empty();
    EXPECT_TRUE(selection->candidates.front().best_pieces) << steps_max;
  }
  EXPECT_GT(mixed, 0);
}

TEST(SelectTest, RefusesBadRequests) {
  const Topology star = StarTopology(4, 1e9, 1e-5);
  const std::vector<int> placement = *PlaceInOrder(star, 4);
  CollectiveRequest request = AllReduce(4, 10);
  SelectOptions options;
  options.algorithm = "pentagram";
  EXPECT_EQ(SelectProgram(request, 4, star, placement, options).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(SelectProgram(request, 4, star, {1, 2}, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(SelectProgram(request, 4, star, {1, 2, 3, 99}, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  request.active = {0, 7};
  EXPECT_EQ(SelectProgram(request, 4, star, placement, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// Any collective on any topology: the winner is proved, and the same inputs give the same answer.
TEST(SelectTest, RandomRequestsAndTopologies) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random(seed);
    CollectiveRequest request;
    request.collective = kCollectives[random.Below(std::size(kCollectives))];
    request.workers = static_cast<int>(random.Between(1, 9));
    for (int i = 0; i < request.workers; ++i) {
      if (random.Below(4) != 0) request.active.push_back(i);
    }
    if (request.active.empty()) request.active.push_back(0);
    request.elements = random.Below(3) == 0 ? random.Below(20) : random.Below(1 << 18);
    if (request.collective == Collective::kBarrier) request.elements = 0;
    if (HasBlocks(request.collective)) {
      const uint64_t block = request.elements / request.active.size();
      request.block_elements.assign(request.active.size(), block);
      request.elements = block * request.active.size();
    }
    if (HasRoot(request.collective)) request.root = request.active.front();
    if (request.collective == Collective::kSendReceive) {
      request.root = request.active.front();
      request.target = request.active.back();
    }
    const Topology topology = RandomTopology(request.workers, seed);
    const Selection selection = Select(request, topology);
    ASSERT_FALSE(selection.candidates.empty());
    EXPECT_EQ(std::string(ProveProgram(selection.program).status().message()), "");
    const Selection again = Select(request, topology);
    EXPECT_EQ(again.program, selection.program);
    EXPECT_EQ(again.why, selection.why);
  }
}

}  // namespace
}  // namespace syncopate::plan
