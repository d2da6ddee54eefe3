// The quick choice between hosts: by size, the same for all, and always a program that is right.
#include "plan/collective/quick_choice.h"

#include <bit>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "model/program_validator.h"
#include "model/topology_makers.h"

namespace syncopate::plan {
namespace {

CollectiveRequest RequestFor(Collective collective, int workers, uint64_t elements) {
  CollectiveRequest request = {
      .collective = collective, .workers = workers, .active = {}, .block_elements = {}};
  request.active.resize(static_cast<size_t>(workers));
  std::iota(request.active.begin(), request.active.end(), 0);
  request.elements = collective == Collective::kBarrier ? 0 : elements;
  if (HasRoot(collective)) request.root = workers - 1;
  if (collective == Collective::kSendReceive) request.target = 0;
  if (HasBlocks(collective)) {
    request.elements = elements * static_cast<uint64_t>(workers);
    request.block_elements.assign(static_cast<size_t>(workers), elements);
  }
  return request;
}

TEST(QuickChoiceTest, FewRoundsForSmallDataAndLittleTrafficForLarge) {
  const NetworkFigures network = FiguresOf(StarTopology(8, 1e9, 50e-6));
  const std::vector<int> hosts = {0, 1, 2, 3, 4, 5, 6, 7};
  const auto choice = [&](uint64_t elements) {
    return PlanQuickly(RequestFor(Collective::kAllReduce, 8, elements), 4, network, hosts)
        ->algorithm;
  };
  EXPECT_EQ(choice(16), "recursive-doubling");
  EXPECT_EQ(choice(1 << 16), "halving-doubling");
  EXPECT_EQ(choice(1 << 26), "ring");
}

TEST(QuickChoiceTest, EveryCollectiveHasARightProgram) {
  const NetworkFigures network = FiguresOf(TwoRackTopology(4, 1e9, 1e8, 50e-6));
  for (const Collective collective : kCollectives) {
    for (const int workers : {2, 3, 5, 8}) {
      for (const uint64_t elements : {uint64_t{1}, uint64_t{1000}, uint64_t{1'000'000}}) {
        std::vector<int> hosts;
        for (int worker = 0; worker < workers; ++worker) hosts.push_back(worker % 2);
        const absl::StatusOr<Program> program =
            PlanQuickly(RequestFor(collective, workers, elements), 4, network, hosts);
        ASSERT_TRUE(program.ok()) << Name(collective) << ": " << program.status();
        EXPECT_TRUE(ProveProgram(*program).ok()) << Name(collective) << ", " << workers;
      }
    }
  }
}

uint64_t StepsOf(const Program& program) {
  uint64_t steps = 0;
  for (const std::vector<Step>& list : program.steps) steps += list.size();
  return steps;
}

// What a choice takes is what writing and compiling its program takes: a time for each step. A ring among
// 64 workers had 16,128 of them and took four milliseconds; an all-to-all that copied each block by itself
// 12,096 and took two.
TEST(QuickChoiceTest, ProgramsAreShort) {
  for (const Collective collective : kCollectives) {
    for (const int workers : {16, 45, 46, 48, 63, 64}) {
      const NetworkFigures network = FiguresOf(StarTopology(workers, 1e9, 50e-6));
      std::vector<int> hosts(static_cast<size_t>(workers));
      std::iota(hosts.begin(), hosts.end(), 0);
      for (const uint64_t elements : {uint64_t{64}, uint64_t{100'000}, uint64_t{1'000'000'000}}) {
        const absl::StatusOr<Program> program =
            PlanQuickly(RequestFor(collective, workers, elements), 4, network, hosts);
        ASSERT_TRUE(program.ok()) << Name(collective) << ": " << program.status();
        // Everybody has something for everybody: a message each, out of four copies.
        const uint64_t n = static_cast<uint64_t>(workers);
        const uint64_t most =
            collective == Collective::kAllToAll ? 2 * n * (n - 1) + 4 * n : uint64_t{8192};
        EXPECT_LE(StepsOf(*program), most) << Name(collective) << ", " << workers << " workers, "
                                           << elements << " elements, " << program->algorithm;
      }
    }
  }
}

// They grow by the workers and their logarithm, not by their square. For all-gathers and reduce-scatters only
// the ring told what it costs: with 512 workers half a million steps.
TEST(QuickChoiceTest, ProgramsOfVeryManyWorkersAreShortToo) {
  for (const Collective collective :
       {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter})
    for (const int workers : {100, 128, 500, 512}) {
      SCOPED_TRACE(Name(collective));
      const NetworkFigures network = FiguresOf(StarTopology(workers, 1e9, 50e-6));
      std::vector<int> hosts(static_cast<size_t>(workers));
      std::iota(hosts.begin(), hosts.end(), 0);
      const absl::StatusOr<Program> program =
          PlanQuickly(RequestFor(collective, workers, 1'000'000'000), 4, network, hosts);
      ASSERT_TRUE(program.ok()) << program.status();
      EXPECT_LE(StepsOf(*program),
                static_cast<uint64_t>(4 * workers * std::bit_width(static_cast<unsigned>(workers))))
          << workers << " workers, " << program->algorithm;
    }
}

}  // namespace
}  // namespace syncopate::plan
