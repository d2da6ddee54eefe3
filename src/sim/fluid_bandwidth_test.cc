// How near the fluids come to what they stand for: two groups average at once on random networks, once as
// fluids and once as programs whose every message the cost model plays, in one network.
#include "sim/fluid_bandwidth.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "base/random.h"
#include "cost/program_cost.h"
#include "gtest/gtest.h"
#include "model/topology_makers.h"
#include "plan/collective/quick_choice.h"
#include "plan/collective/shared_memory.h"

namespace syncopate::sim {
namespace {

constexpr int kDevices = 8;
constexpr uint64_t kElementBytes = 4;
constexpr size_t kWorstShown = 5;

using RankGroups = std::vector<std::vector<int>>;  // ranks, sorted

// The programs of all groups as one, its workers in the order of the groups; nothing where a group has no
// program, because it shares memory, or where they cut their data differently.
std::optional<Program> Together(const Topology& topology, const std::vector<int>& placement,
                                const RankGroups& groups, uint64_t elements) {
  std::optional<Program> all;
  for (const std::vector<int>& group : groups) {
    plan::CollectiveRequest request;
    request.workers = static_cast<int>(group.size());
    request.elements = elements;
    request.active.resize(group.size());
    std::iota(request.active.begin(), request.active.end(), 0);
    std::vector<int> devices, hosts;
    for (const int rank : group) {
      devices.push_back(placement[static_cast<size_t>(rank)]);
      const int host = topology.nodes[static_cast<size_t>(devices.back())].host;
      hosts.push_back(host >= 0 ? host : devices.back());
    }
    if (plan::FindSharedMemory(request, topology, devices)) return std::nullopt;
    absl::StatusOr<Program> program =
        plan::PlanQuickly(request, kElementBytes, plan::FiguresOf(topology), hosts);
    EXPECT_TRUE(program.ok()) << program.status();
    if (!all) {
      all = *std::move(program);
      continue;
    }
    if (all->data_bounds != program->data_bounds ||
        all->scratch_bounds != program->scratch_bounds) {
      return std::nullopt;
    }
    for (std::vector<Step>& steps : program->steps) {
      for (Step& step : steps) step.peer += step.peer >= 0 ? all->workers : 0;
      all->steps.push_back(std::move(steps));
    }
    for (int i = 0; i < program->workers; ++i) all->active.push_back(all->workers + i);
    all->workers += program->workers;
  }
  return all;
}

// When each group's average ends, by the messages of the programs.
std::vector<double> EndsPlayed(const Program& program, const Topology& topology,
                               const std::vector<int>& placement, const RankGroups& groups) {
  std::vector<int> devices;
  for (const std::vector<int>& group : groups) {
    for (const int rank : group) devices.push_back(placement[static_cast<size_t>(rank)]);
  }
  const auto cost = cost::CostOf(program, topology, devices, kElementBytes);
  EXPECT_TRUE(cost.ok()) << cost.status();
  std::vector<double> ends;
  auto next = cost->worker_seconds.begin();
  for (const std::vector<int>& group : groups) {
    ends.push_back(*std::max_element(next, next + static_cast<ptrdiff_t>(group.size())));
    next += static_cast<ptrdiff_t>(group.size());
  }
  return ends;
}

std::vector<double> EndsOfFluids(const std::shared_ptr<const Topology>& topology,
                                 const std::vector<int>& placement, const RankGroups& groups,
                                 uint64_t bytes) {
  FluidBandwidth bandwidth(std::make_unique<GroupFlows>(topology, placement, bytes));
  std::vector<std::pair<double, int>> starts;  // (when its bytes begin, group)
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto start_up = bandwidth.Add(
        static_cast<int>(i),
        {.members = std::make_shared<const MemberList>(groups[i]), .from = {}, .bytes = bytes});
    EXPECT_TRUE(start_up.ok()) << start_up.status();
    starts.emplace_back(*start_up, static_cast<int>(i));
  }
  std::sort(starts.begin(), starts.end());
  std::vector<double> ends(groups.size(), 0);
  for (size_t begun = 0, ended = 0; ended < groups.size();) {
    const double next = bandwidth.NextEnd();
    if (begun < starts.size() && starts[begun].first <= next) {
      bandwidth.Begin(starts[begun].first, starts[begun].second);
      ++begun;
      continue;
    }
    for (const int group : bandwidth.TakeEnded(next)) {
      ends[static_cast<size_t>(group)] = next;
      ++ended;
    }
  }
  return ends;
}

// One average, as a fluid and as its program's messages, beside the other group and alone.
struct PlayedAverage {
  uint64_t seed = 0;
  size_t members = 0;
  uint64_t bytes = 0;
  double fluid = 0, played = 0, fluid_alone = 0, played_alone = 0;  // seconds

  double off() const { return std::abs(fluid / played - 1); }
  bool slowed() const { return played > 1.05 * played_alone; }
};

TEST(FluidBandwidthTest, GroupsAtOnceTakeAboutWhatTheirProgramsTakeTogether) {
  std::vector<PlayedAverage> averages;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const auto topology = std::make_shared<const Topology>(RandomTopology(kDevices, seed));
    const std::vector<int> placement = *PlaceInOrder(*topology, kDevices);
    std::vector<int> ranks(kDevices);
    std::iota(ranks.begin(), ranks.end(), 0);
    for (size_t i = ranks.size(); i > 1; --i) std::swap(ranks[i - 1], ranks[random.Below(i)]);
    const ptrdiff_t size = random.Between(2, 4);
    RankGroups groups = {{ranks.begin(), ranks.begin() + size},
                         {ranks.begin() + size, ranks.begin() + 2 * size}};
    for (std::vector<int>& group : groups) std::sort(group.begin(), group.end());
    // From what start-up decides to what bandwidth does.
    const uint64_t power = uint64_t{1} << random.Between(14, 22);
    const uint64_t elements = power + random.Below(power + 1);
    const uint64_t bytes = elements * kElementBytes;
    const std::optional<Program> program = Together(*topology, placement, groups, elements);
    if (!program) continue;
    const std::vector<double> played = EndsPlayed(*program, *topology, placement, groups);
    const std::vector<double> fluid = EndsOfFluids(topology, placement, groups, bytes);
    for (size_t i = 0; i < groups.size(); ++i) {
      const RankGroups alone = {groups[i]};
      const std::optional<Program> own = Together(*topology, placement, alone, elements);
      averages.push_back({.seed = seed,
                          .members = groups[i].size(),
                          .bytes = bytes,
                          .fluid = fluid[i],
                          .played = played[i],
                          .fluid_alone = EndsOfFluids(topology, placement, alone, bytes)[0],
                          .played_alone = EndsPlayed(*own, *topology, placement, alone)[0]});
    }
  }
  ASSERT_GT(averages.size(), 100u);
  const auto slowed = std::count_if(averages.begin(), averages.end(),
                                    [](const PlayedAverage& each) { return each.slowed(); });
  EXPECT_GT(slowed, 20) << "the groups have nothing to do with each other";
  std::sort(
      averages.begin(), averages.end(),
      [](const PlayedAverage& one, const PlayedAverage& two) { return one.off() < two.off(); });
  const double median = averages[averages.size() / 2].off(),
               most = averages[averages.size() * 9 / 10].off();
  std::printf(
      "%zu averages, %d slowed by others: off by %.2f %% in the median, %.1f %% in 9 of 10, %.0f "
      "%% at most\n",
      averages.size(), static_cast<int>(slowed), median * 100, most * 100,
      averages.back().off() * 100);
  for (size_t i = averages.size() - kWorstShown; i < averages.size(); ++i) {
    const PlayedAverage& each = averages[i];
    std::printf(
        "  seed %3d, %zu members, %8d bytes: fluid / played %.2f, alone %.2f; slowed %.2f times, "
        "as a fluid %.2f times\n",
        static_cast<int>(each.seed), each.members, static_cast<int>(each.bytes),
        each.fluid / each.played, each.fluid_alone / each.played_alone,
        each.played / each.played_alone, each.fluid / each.fluid_alone);
  }
  EXPECT_LT(median, 0.01);
  EXPECT_LT(most, 0.05);
}

}  // namespace
}  // namespace syncopate::sim
