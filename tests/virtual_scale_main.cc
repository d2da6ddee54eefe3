// Runs very many virtual workers and says what that took: BSP by a schedule, or groups of four that change
// every iteration.
//
//   virtual_scale --workers 1024 --iterations 100 --strategy groups --network tree
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <numeric>
#include <string>

#include "CLI/CLI.hpp"
#include "model/topology_makers.h"
#include "schedule/models/model_tables.h"
#include "schedule/planners.h"
#include "sim/group_flows.h"
#include "sim/virtual_cluster.h"
#include "strategy/bsp.h"
#include "strategy/sample_strategies_testing.h"

namespace syncopate {
namespace {

constexpr int kGroup = 4;
constexpr int kRack = 32;

struct Settings {
  int workers = 1024;
  int iterations = 10;
  std::string strategy = "bsp";
  std::string model = "resnet-152";
  std::string schedule = "search";
  std::string network = "star";
  double jitter = 0;
  uint64_t seed = 1;
};

// 10 Gbit/s for each worker; in a tree, racks of 32 with uplinks for half of what they have.
std::shared_ptr<const Topology> NetworkOf(const Settings& settings) {
  constexpr double kNic = 1.25e9, kLatency = 50e-6;
  if (settings.network == "none") return nullptr;
  if (settings.network == "star") {
    return std::make_shared<const Topology>(StarTopology(settings.workers, kNic, kLatency));
  }
  const int racks = (settings.workers + kRack - 1) / kRack;
  return std::make_shared<const Topology>(
      SwitchTreeTopology({{racks, kRack}}, {{kNic * kRack / 2, kNic}}, kLatency, 0, 0));
}

absl::Status Run(const Settings& settings) {
  sim::VirtualOptions options;
  options.workers = settings.workers;
  options.iterations = settings.iterations;
  options.seed = settings.seed;
  options.jitter = settings.jitter;
  options.keep_log = false;
  auto table = schedule::MakeModelTable(settings.model);
  if (!table.ok()) return table.status();
  options.table = *std::move(table);
  options.costs.a = 1e-3;
  options.costs.b = 1.7e-9;
  options.topology = NetworkOf(settings);
  const auto begin = std::chrono::steady_clock::now();
  if (options.topology != nullptr) {
    options.placement = *PlaceInOrder(*options.topology, settings.workers);
    if (settings.strategy == "bsp") {
      std::vector<int> all(static_cast<size_t>(settings.workers));
      std::iota(all.begin(), all.end(), 0);
      const auto flow =
          sim::GroupFlows(options.topology, options.placement, 0)
              .OfAverage(std::make_shared<const sim::MemberList>(all), options.table.bytes());
      if (!flow.ok()) return flow.status();
      options.costs.a = (*flow)->a;
      options.costs.b = (*flow)->b;
    }
  }
  auto planned = schedule::MakeSchedule(settings.schedule, options.table, options.costs);
  if (!planned.ok()) return planned.status();
  const auto schedule = std::make_shared<const Schedule>(*std::move(planned));
  const auto result = sim::RunVirtually(
      options, [&](const strategy::WorkerInfo& info) -> std::unique_ptr<strategy::Strategy> {
        if (settings.strategy == "bsp") return strategy::MakeBsp(info, schedule);
        return std::make_unique<strategy::ShuffledGroups>(info, kGroup, settings.seed);
      });
  if (!result.ok()) return result.status();
  const auto end = std::chrono::steady_clock::now();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  std::printf("%s, %d workers, %d iterations, %d tensors, network %s: %.3f s in virtual time\n",
              settings.strategy.c_str(), settings.workers, settings.iterations,
              options.table.size(), settings.network.c_str(), result->seconds);
  std::printf("  took %.1f s (%.1f s of a core), %.0f MB at most, %zu transfers kept at most\n",
              std::chrono::duration<double>(end - begin).count(),
              seconds(usage.ru_utime) + seconds(usage.ru_stime),
              static_cast<double>(usage.ru_maxrss) / 1024, result->transfers_max);
  std::printf("  digest %s\n", result->digest.ToString().c_str());
  return absl::OkStatus();
}

}  // namespace
}  // namespace syncopate

int main(int argc, char** argv) {
  syncopate::Settings settings;
  CLI::App app("What very many virtual workers take");
  app.add_option("--workers", settings.workers)->check(CLI::Range(1, 1 << 17));
  app.add_option("--iterations", settings.iterations)->check(CLI::Range(1, 1 << 20));
  app.add_option("--strategy", settings.strategy)->check(CLI::IsMember({"bsp", "groups"}));
  app.add_option("--model", settings.model);
  app.add_option("--schedule", settings.schedule);
  app.add_option("--network", settings.network)->check(CLI::IsMember({"none", "star", "tree"}));
  app.add_option("--jitter", settings.jitter)->check(CLI::Range(0.0, 100.0));
  app.add_option("--seed", settings.seed);
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = syncopate::Run(settings);
  if (status.ok()) return 0;
  std::cerr << "virtual_scale: " << status << "\n";
  return 1;
}
