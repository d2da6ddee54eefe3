// The fluid model against another opinion: sets of flows on random networks end at the times that SimGrid finds
// for them, too. SimGrid shares links max-min fairly as cost/flow_network.h does, by a solver of its own; its
// corrections for TCP are switched off, and so is that it looks only at a part of its flows again after a change
// (network/optim:Lazy, its default), by which two of these sets move more than their links carry.
//
// SimGrid simulates once in a process, so all sets are parts of one simulation that have nothing in common.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <simgrid/s4u.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "cost/flow_network.h"
#include "gtest/gtest.h"
#include "model/topology.h"
#include "model/topology_makers.h"
#include "model/topology_routes.h"

namespace syncopate::cost {
namespace {

namespace s4u = simgrid::s4u;

constexpr int kSets = 200;
constexpr int kDevicesMax = 8;
constexpr int kFlowsMax = 16;
// Of every route, the same for all, so that SimGrid gives all flows the same weight.
constexpr double kLatency = 1e-9;

struct PlannedFlow {
  int from = 0, to = 0;  // devices
  double begin = 0;
  double bytes = 0;
  std::vector<FlowNetwork::Draw> draws;
  double ours = 0, theirs = 0;  // when it ends
};

struct FlowSet {
  Topology topology;
  std::vector<PlannedFlow> flows;
};

// A route draws on its links and on the capacities that those share with others.
std::vector<FlowNetwork::Draw> DrawsOf(const Topology& topology, const std::vector<int>& route) {
  std::map<int, double> weights;
  for (const int link : route) {
    weights[link] += 1;
    for (const int capacity : topology.links[static_cast<size_t>(link)].capacities) {
      weights[static_cast<int>(topology.links.size()) + capacity] += 1;
    }
  }
  std::vector<FlowNetwork::Draw> draws;
  for (const auto& [resource, weight] : weights) draws.push_back({resource, weight});
  return draws;
}

std::vector<double> BandwidthsOf(const Topology& topology) {
  std::vector<double> bandwidths;
  for (const Topology::Link& link : topology.links) bandwidths.push_back(link.bandwidth);
  for (const Topology::Capacity& each : topology.capacities) bandwidths.push_back(each.bandwidth);
  return bandwidths;
}

FlowSet MakeSet(uint64_t seed) {
  Random random(seed);
  FlowSet set;
  const int devices = 2 + static_cast<int>(random.Below(kDevicesMax - 1));
  set.topology = RandomTopology(devices, seed);
  std::vector<int> nodes;
  for (size_t node = 0; node < set.topology.nodes.size(); ++node) {
    if (set.topology.nodes[node].kind == NodeKind::kDevice) {
      nodes.push_back(static_cast<int>(node));
    }
  }
  Routes routes(set.topology);
  const std::vector<double> bandwidths = BandwidthsOf(set.topology);
  const double slowest = *std::min_element(bandwidths.begin(), bandwidths.end());
  const int flows = 1 + static_cast<int>(random.Below(kFlowsMax));
  for (int i = 0; i < flows; ++i) {
    PlannedFlow flow;
    flow.from = nodes[random.Below(nodes.size())];
    do {
      flow.to = nodes[random.Below(nodes.size())];
    } while (flow.to == flow.from);
    flow.begin = random.Below(2) == 0 ? 0 : 2 * random.Unit();
    flow.bytes = slowest * (0.1 + 2 * random.Unit());
    flow.draws = DrawsOf(set.topology, *routes.Between(flow.from, flow.to));
    set.flows.push_back(std::move(flow));
  }
  std::stable_sort(set.flows.begin(), set.flows.end(),
                   [](const PlannedFlow& a, const PlannedFlow& b) { return a.begin < b.begin; });
  return set;
}

void PlayOurs(FlowSet& set) {
  FlowNetwork network(BandwidthsOf(set.topology));
  size_t next = 0;
  for (size_t left = set.flows.size(); left > 0;) {
    const double completion = network.NextCompletion();
    if (next < set.flows.size() && set.flows[next].begin <= completion) {
      const PlannedFlow& flow = set.flows[next];
      network.Start(flow.begin, flow.bytes, flow.draws, static_cast<int>(next));
      ++next;
      continue;
    }
    for (const int tag : network.Complete(completion)) {
      set.flows[static_cast<size_t>(tag)].ours = completion;
      --left;
    }
  }
}

void AddToSimGrid(s4u::NetZone& zone, int number, FlowSet& set) {
  const auto name = [&](const char* what, size_t i) { return absl::StrCat(what, number, "-", i); };
  const std::vector<double> bandwidths = BandwidthsOf(set.topology);
  std::vector<s4u::Link*> links;
  for (size_t i = 0; i < bandwidths.size(); ++i) {
    links.push_back(zone.create_link(name("link", i), bandwidths[i])->set_latency(0)->seal());
  }
  std::map<int, s4u::Host*> hosts;
  const auto host = [&](int node) {
    s4u::Host*& found = hosts[node];
    if (found == nullptr)
      found = zone.create_host(name("host", static_cast<size_t>(node)), 1e9)->seal();
    return found;
  };
  std::map<std::pair<int, int>, bool> routed;
  for (size_t i = 0; i < set.flows.size(); ++i) {
    PlannedFlow& flow = set.flows[i];
    s4u::Host *const from = host(flow.from), *const to = host(flow.to);
    if (!std::exchange(routed[{flow.from, flow.to}], true)) {
      std::vector<s4u::LinkInRoute> route;
      for (const FlowNetwork::Draw& draw : flow.draws) {
        for (int k = 0; k < static_cast<int>(draw.weight); ++k) {
          route.emplace_back(links[static_cast<size_t>(draw.resource)]);
        }
      }
      route.emplace_back(zone.create_link(name("delay", i), 1e18)->set_latency(kLatency)->seal());
      zone.add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, route, false);
    }
    s4u::Actor::create(name("flow", i), from, [&flow, from, to] {
      s4u::this_actor::sleep_until(flow.begin);
      s4u::Comm::sendto(from, to, static_cast<uint64_t>(flow.bytes));
      flow.theirs = s4u::Engine::get_clock();
    });
  }
}

TEST(SimGridTest, RandomSetsOfFlowsEndAtTheSameTimes) {
  // As on a command line: options of the models are known only when the engine begins.
  std::vector<std::string> words = {"simgrid_test",
                                    "--cfg=network/model:CM02",
                                    "--cfg=network/bandwidth-factor:1",
                                    "--cfg=network/latency-factor:1",
                                    "--cfg=network/weight-S:0",
                                    "--cfg=network/crosstraffic:no",
                                    "--cfg=network/optim:Full",
                                    "--log=root.thres:warning"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int count = static_cast<int>(words.size());
  s4u::Engine engine(&count, arguments.data());
  std::vector<FlowSet> sets;
  for (int i = 0; i < kSets; ++i) sets.push_back(MakeSet(static_cast<uint64_t>(i)));
  s4u::NetZone* const zone = s4u::create_full_zone("all");
  for (int i = 0; i < kSets; ++i) AddToSimGrid(*zone, i, sets[static_cast<size_t>(i)]);
  zone->seal();
  engine.run();
  double worst = 0;
  size_t flows = 0, shared = 0;
  for (int i = 0; i < kSets; ++i) {
    SCOPED_TRACE(absl::StrCat("set ", i));
    FlowSet& set = sets[static_cast<size_t>(i)];
    PlayOurs(set);
    const std::vector<double> bandwidths = BandwidthsOf(set.topology);
    for (const PlannedFlow& flow : set.flows) {
      const double off = std::abs(flow.ours - flow.theirs) / (flow.theirs - flow.begin);
      EXPECT_LE(off, 0.02) << flow.from << " to " << flow.to << " from " << flow.begin << ": "
                           << flow.ours << " and " << flow.theirs;
      worst = std::max(worst, off);
      double alone = 0;
      for (const FlowNetwork::Draw& draw : flow.draws) {
        alone = std::max(alone,
                         flow.bytes * draw.weight / bandwidths[static_cast<size_t>(draw.resource)]);
      }
      shared += flow.ours - flow.begin > 1.01 * alone ? 1 : 0;
      ++flows;
    }
  }
  EXPECT_GT(shared, flows / 4) << "the sets show nothing if flows do not share links";
  std::printf("%zu flows, %zu of them slowed by others, worst difference %.2g\n", flows, shared,
              worst);
}

}  // namespace
}  // namespace syncopate::cost
