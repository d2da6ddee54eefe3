#include "plan/forest/turns.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace syncopate::plan {
namespace {

// Members by host, those without a host alone; empty if hosts hold different numbers of them.
std::vector<std::vector<int>> MembersByHost(const Topology& topology,
                                            absl::Span<const int> placement,
                                            const PackingNetwork& network) {
  std::map<int, std::vector<int>> by_node;
  for (int member = 0; member < network.size(); ++member) {
    const int device = placement[network.ranks()[member]];
    const int host = topology.nodes[device].host;
    by_node[host < 0 ? device : host].push_back(member);
  }
  std::vector<std::vector<int>> hosts;
  for (auto& [node, members] : by_node) hosts.push_back(std::move(members));
  for (const std::vector<int>& host : hosts) {
    if (host.size() != hosts[0].size()) return {};
  }
  return hosts;
}

// Permutations of `size` things that together generate a group which takes each to every other one
// and commutes. For powers of two they flip one bit of the index, which more networks allow
// (cubes); for other sizes there is one, the rotation.
std::vector<std::vector<int>> StepsOf(size_t size) {
  std::vector<std::vector<int>> steps;
  if (std::has_single_bit(size)) {
    for (size_t bit = 1; bit < size; bit *= 2) {
      std::vector<int>& step = steps.emplace_back();
      for (size_t i = 0; i < size; ++i) step.push_back(static_cast<int>(i ^ bit));
    }
  } else {
    std::vector<int>& step = steps.emplace_back();
    for (size_t i = 0; i < size; ++i) step.push_back(static_cast<int>((i + 1) % size));
  }
  return steps;
}

// First `first`, then `second`.
Permutation Composed(const Permutation& first, const Permutation& second) {
  Permutation both;
  for (const int image : first) both.push_back(second[image]);
  return both;
}

WorkerTree ImageOf(const WorkerTree& tree, const Permutation& turn) {
  WorkerTree image;
  image.root = turn[tree.root];
  image.parent.assign(tree.parent.size(), -1);
  for (size_t member = 0; member < tree.parent.size(); ++member) {
    if (tree.parent[member] >= 0) image.parent[turn[member]] = turn[tree.parent[member]];
  }
  return image;
}

}  // namespace

Turns FindTurns(const Topology& topology, absl::Span<const int> placement,
                const PackingNetwork& network, absl::Span<const int> active) {
  Turns turns;
  Permutation nobody(network.size());
  std::iota(nobody.begin(), nobody.end(), 0);
  turns.all = {nobody};
  const std::vector<std::vector<int>> hosts = MembersByHost(topology, placement, network);
  if (hosts.empty()) return turns;
  std::vector<Permutation> candidates;
  for (const std::vector<int>& step : StepsOf(hosts.size())) {
    Permutation& moved = candidates.emplace_back(nobody);
    for (size_t host = 0; host < hosts.size(); ++host) {
      for (size_t i = 0; i < hosts[host].size(); ++i) {
        moved[hosts[host][i]] = hosts[step[host]][i];
      }
    }
  }
  for (const std::vector<int>& step : StepsOf(hosts[0].size())) {
    Permutation& moved = candidates.emplace_back(nobody);
    for (const std::vector<int>& host : hosts) {
      for (size_t i = 0; i < host.size(); ++i) moved[host[i]] = host[step[i]];
    }
  }
  for (const Permutation& candidate : candidates) {
    if (candidate == nobody || !ResourceImages(network, active, candidate).has_value()) continue;
    turns.generators.push_back(candidate);
    // All turns commute, so every one is a product of earlier ones and a power of the candidate.
    const std::vector<Permutation> before = turns.all;
    for (Permutation power = candidate; power != nobody; power = Composed(power, candidate)) {
      for (const Permutation& each : before) turns.all.push_back(Composed(each, power));
    }
  }
  return turns;
}

bool StillHold(const Turns& turns, const PackingNetwork& network, absl::Span<const int> active) {
  return std::all_of(
      turns.generators.begin(), turns.generators.end(),
      [&](const Permutation& turn) { return ResourceImages(network, active, turn).has_value(); });
}

std::vector<TreePair> ImagesOf(const std::vector<TreePair>& pairs, const Turns& turns) {
  std::vector<TreePair> images;
  absl::flat_hash_map<std::pair<std::vector<int>, std::vector<int>>, size_t> known;
  for (const TreePair& pair : pairs) {
    for (const Permutation& turn : turns.all) {
      TreePair image = {ImageOf(pair.reduce, turn), ImageOf(pair.broadcast, turn), 0, pair.after};
      const auto [found, is_new] =
          known.try_emplace({image.reduce.parent, image.broadcast.parent}, images.size());
      if (is_new) images.push_back(std::move(image));
      images[found->second].share += pair.share / static_cast<double>(turns.all.size());
    }
  }
  return images;
}

std::vector<double> PricesApart(const PackingNetwork& network, const PackingNetwork& joined,
                                const std::vector<double>& prices) {
  std::map<std::pair<bool, int>, double> by_part;
  for (size_t i = 0; i < prices.size(); ++i) {
    for (const NetworkPart part : joined.resources()[i].parts) {
      by_part[{part.is_link, part.index}] = prices[i];
    }
  }
  std::vector<double> apart;
  for (const PackingResource& resource : network.resources()) {
    apart.push_back(by_part[{resource.part.is_link, resource.part.index}]);
  }
  return apart;
}

}  // namespace syncopate::plan
