#include <algorithm>
#include <map>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/collective/planner_testing.h"
#include "plan/collective/shares.h"

namespace syncopate::plan::testing {
namespace {

// Every block has elements, so that no message is left out.
bool AllBlocksFull(const Plan& plan) {
  if (!HasBlocks(plan.request.collective)) {
    return plan.request.elements >= static_cast<uint64_t>(plan.size());
  }
  return std::count(plan.request.block_elements.begin(), plan.request.block_elements.end(), 0) == 0;
}

// In each of `phases` everybody sends all blocks but one, in one message a round. A run of blocks
// that goes past the last one is two messages, which there are at most `size` of in a phase.
void ExpectFewestRoundsAndLeastTraffic(const Plan& plan, int phases) {
  const uint64_t others = static_cast<uint64_t>(plan.size()) - 1;
  EXPECT_EQ(plan.proof.sent_elements_total,
            static_cast<uint64_t>(phases) * others * plan.request.elements);
  if (!AllBlocksFull(plan)) return;
  const int rounds = phases * CeilLog2(plan.size());
  // Where a skip is rounded up, not every block waits for the message before it.
  EXPECT_LE(plan.proof.rounds, rounds);
  if (FloorPowerOfTwo(plan.size()) == plan.size()) {
    EXPECT_EQ(plan.proof.rounds, rounds);
  }
  EXPECT_GE(plan.Messages(), rounds * plan.size());
  EXPECT_LE(plan.Messages(), (rounds + phases) * plan.size());
  for (size_t i = 0; i < plan.request.active.size(); ++i) {
    EXPECT_LE(plan.MessagesFrom(i), phases == 2 ? rounds / 2 * 3 : rounds * 2);
  }
}

TEST(CirculantTest, AllReduce) {
  ProveRandomPlans(Collective::kAllReduce, PlannerOf(Collective::kAllReduce, "circulant"),
                   [](const Plan& plan) { ExpectFewestRoundsAndLeastTraffic(plan, 2); });
}

TEST(CirculantTest, ReduceScatter) {
  ProveRandomPlans(Collective::kReduceScatter, PlannerOf(Collective::kReduceScatter, "circulant"),
                   [](const Plan& plan) { ExpectFewestRoundsAndLeastTraffic(plan, 1); });
}

TEST(CirculantTest, AllGather) {
  ProveRandomPlans(Collective::kAllGather, PlannerOf(Collective::kAllGather, "circulant"),
                   [](const Plan& plan) { ExpectFewestRoundsAndLeastTraffic(plan, 1); });
}

TEST(CirculantTest, EveryNumberOfWorkersSendsTheLeastThereIs) {
  for (int workers = 2; workers <= 33; ++workers) {
    const uint64_t block = kCutAlignment;
    const uint64_t elements = block * static_cast<uint64_t>(workers);
    const Plan plan = PlanAndProve(PlannerOf(Collective::kAllReduce, "circulant"),
                                   FullRequest(Collective::kAllReduce, workers, elements));
    EXPECT_EQ(plan.proof.sent_elements_max, 2 * (elements - block)) << workers << " workers";
  }
}

// How many blocks rank 0 sends to each of its peers, in both phases.
std::map<int, uint32_t> BlocksFromRankZero(const Plan& plan) {
  std::map<int, uint32_t> blocks;
  for (const Step& step : plan.program.steps[0]) {
    if (step.kind == StepKind::kSend) blocks[step.peer] += step.count;
  }
  return blocks;
}

TEST(CirculantTest, NeighboursExchangeTheMost) {
  const CollectiveRequest request = FullRequest(Collective::kAllReduce, 8, 800);
  const Planner planner = PlannerOf(Collective::kAllReduce, "circulant");
  // With skips 4, 2 and 1, rank 0 sends to positions 4, 2 and 1 to add, and to 4, 6 and 7 to copy.
  EXPECT_THAT(BlocksFromRankZero(PlanAndProve(planner, request)),
              ::testing::UnorderedElementsAre(::testing::Pair(1, 8u), ::testing::Pair(2, 2u),
                                              ::testing::Pair(3, 2u), ::testing::Pair(4, 1u),
                                              ::testing::Pair(7, 1u)));
  PlannerOptions options;
  options.order = {0, 5, 1, 2, 3, 4, 6, 7};
  EXPECT_EQ(BlocksFromRankZero(PlanAndProve(planner, request, options))[5], 8u);
}

}  // namespace
}  // namespace syncopate::plan::testing
