#include <algorithm>
#include <map>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/program_validator.h"
#include "model/topology_makers.h"
#include "plan/forest/forest.h"

namespace syncopate::plan {
namespace {

ForestPlan TwoStars(double first_share) {
  ForestPlan plan;
  plan.workers = 3;
  plan.active = {0, 1, 2};
  const WorkerTree at_0 = {0, {0, 0, 0}}, at_1 = {1, {1, 1, 1}};
  plan.pairs = {{at_0, at_0, first_share, false}, {at_1, at_1, 1 - first_share, false}};
  return plan;
}

CollectiveRequest AllReduce(const ForestPlan& plan, uint64_t elements) {
  CollectiveRequest request;
  request.workers = plan.workers;
  request.active = plan.active;
  request.elements = elements;
  return request;
}

// By worker: how many chunks it receives from others to add.
std::map<int, int> ChunksAddedAt(const Program& program) {
  std::map<int, int> added;
  for (int worker = 0; worker < program.workers; ++worker) {
    for (const Step& step : program.steps[worker]) {
      added[worker] += step.kind == StepKind::kReceiveReduce ? 1 : 0;
    }
  }
  return added;
}

TEST(EvenForestProgramTest, ChunksHaveOneSizeAndFollowTheShares) {
  const ForestPlan plan = TwoStars(0.69);
  const absl::StatusOr<Program> program = MakeEvenForestProgram(AllReduce(plan, 1003), plan, 10);
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->data_bounds.size(), 11u);
  for (size_t i = 1; i < program->data_bounds.size(); ++i) {
    const uint64_t size = program->data_bounds[i] - program->data_bounds[i - 1];
    EXPECT_TRUE(size == 100 || size == 101) << size;
  }
  EXPECT_EQ(program->data_bounds.back(), 1003u);
  // Two others send each chunk to its root.
  const std::map<int, int> added = ChunksAddedAt(*program);
  EXPECT_EQ(added.at(0), 2 * 7);
  EXPECT_EQ(added.at(1), 2 * 3);
  const absl::StatusOr<ProgramProof> proof = ProveProgram(*program);
  EXPECT_TRUE(proof.ok()) << proof.status();
}

TEST(EvenForestProgramTest, SmallPairsAreLeftOut) {
  const ForestPlan plan = TwoStars(0.99);
  const absl::StatusOr<Program> program = MakeEvenForestProgram(AllReduce(plan, 1000), plan, 10);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(ChunksAddedAt(*program).at(0), 20);
  EXPECT_EQ(ChunksAddedAt(*program).at(1), 0);
  EXPECT_TRUE(ProveProgram(*program).ok());
}

TEST(EvenForestProgramTest, EveryCutOfRandomPlansIsRight) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const int workers = 2 + static_cast<int>(seed);
    const Topology topology = RandomTopology(workers, seed);
    std::vector<int> active(workers);
    std::iota(active.begin(), active.end(), 0);
    if (seed % 3 == 2) active.erase(active.begin() + 1);
    const absl::StatusOr<ForestPlan> plan =
        PlanForest(topology, *PlaceInOrder(topology, workers), active, {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    for (const uint32_t chunks : {1, 7, 64}) {
      const absl::StatusOr<Program> program =
          MakeEvenForestProgram(AllReduce(*plan, 5000), *plan, chunks);
      ASSERT_TRUE(program.ok()) << program.status();
      const absl::StatusOr<ProgramProof> proof = ProveProgram(*program);
      EXPECT_TRUE(proof.ok()) << "seed " << seed << ": " << proof.status();
    }
  }
}

// Chunks without elements are not sent, so they must not be counted as steps either.
TEST(EvenForestProgramTest, ThereMayBeMoreChunksThanElements) {
  const ForestPlan plan = TwoStars(0.5);
  const absl::StatusOr<Program> program = MakeEvenForestProgram(AllReduce(plan, 150), plan, 400);
  ASSERT_TRUE(program.ok()) << program.status();
  const absl::StatusOr<ProgramProof> proof = ProveProgram(*program);
  EXPECT_TRUE(proof.ok()) << proof.status();
}

TEST(EvenForestProgramTest, NoChunksAreRefused) {
  const ForestPlan plan = TwoStars(0.5);
  EXPECT_EQ(MakeEvenForestProgram(AllReduce(plan, 100), plan, 0).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace syncopate::plan
