// The quick choice between hosts: by size, the same for all, and always a program that is right.
#include "plan/collective/quick_choice.h"

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

}  // namespace
}  // namespace syncopate::plan
