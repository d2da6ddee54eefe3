#include "plan/forest/symmetry.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

namespace syncopate::plan {
namespace {

constexpr size_t kLocalWorkersMax = 16;

Permutation Identity(size_t size) {
  Permutation permutation(size);
  std::iota(permutation.begin(), permutation.end(), 0);
  return permutation;
}

// Disjoint sets of numbers that can be joined (union-find).
class DisjointSets {
 public:
  explicit DisjointSets(size_t size) : parent_(Identity(size)) {}
  int Find(int of) {
    while (parent_[static_cast<size_t>(of)] != of) {
      int& parent = parent_[static_cast<size_t>(of)];
      parent = parent_[static_cast<size_t>(parent)];
      of = parent;
    }
    return of;
  }
  void Join(int a, int b) { parent_[static_cast<size_t>(Find(a))] = Find(b); }

 private:
  std::vector<int> parent_;
};

// Candidates that move the workers of one host only: exchanges of two workers, two such exchanges
// at once, and, if their number is a power of two, the translations i -> i xor d of a cube.
void AddLocal(const std::vector<int>& host, size_t workers, std::vector<Permutation>& candidates) {
  const size_t size = host.size();
  if (size > kLocalWorkersMax) return;
  std::vector<std::pair<int, int>> exchanges;
  for (size_t i = 0; i < size; ++i) {
    for (size_t j = i + 1; j < size; ++j) exchanges.emplace_back(host[i], host[j]);
  }
  const auto exchange = [](Permutation& permutation, const std::pair<int, int>& two) {
    std::swap(permutation[static_cast<size_t>(two.first)],
              permutation[static_cast<size_t>(two.second)]);
  };
  for (size_t i = 0; i < exchanges.size(); ++i) {
    Permutation one = Identity(workers);
    exchange(one, exchanges[i]);
    for (size_t j = i + 1; j < exchanges.size(); ++j) {
      const auto& [a, b] = exchanges[i];
      const auto& [c, d] = exchanges[j];
      if (a == c || a == d || b == c || b == d) continue;
      Permutation two = one;
      exchange(two, exchanges[j]);
      candidates.push_back(std::move(two));
    }
    candidates.push_back(std::move(one));
  }
  if (!std::has_single_bit(size)) return;
  for (size_t by = 1; by < size; ++by) {
    Permutation translation = Identity(workers);
    for (size_t i = 0; i < size; ++i) translation[static_cast<size_t>(host[i])] = host[i ^ by];
    candidates.push_back(std::move(translation));
  }
}

}  // namespace

std::optional<std::vector<int>> ResourceImages(const PackingNetwork& network,
                                               absl::Span<const int> active,
                                               const Permutation& permutation) {
  const auto image = [&](int member) { return permutation[static_cast<size_t>(member)]; };
  for (const int member : active) {
    if (!std::binary_search(active.begin(), active.end(), image(member))) return std::nullopt;
  }
  // A permutation of the members is a symmetry if it also maps the resources one to one: every edge
  // must load the images of what it loaded, at equal rates. `images` and `sources` are the map and
  // its inverse, as far as the edges seen so far determine them.
  constexpr double kAlike = 1e-12;
  std::vector<int> images(network.resources().size(), -1);
  std::vector<int> sources(network.resources().size(), -1);
  for (int from = 0; from < network.size(); ++from) {
    for (int to = 0; to < network.size(); ++to) {
      const absl::Span<const int> loads = network.Loads(from, to);
      const absl::Span<const int> there = network.Loads(image(from), image(to));
      if (loads.size() != there.size()) return std::nullopt;
      for (size_t i = 0; i < loads.size(); ++i) {
        int& other = images[static_cast<size_t>(loads[i])];
        int& source = sources[static_cast<size_t>(there[i])];
        if (other == there[i] && source == loads[i]) continue;
        const double rate = network.resources()[static_cast<size_t>(loads[i])].rate;
        const double other_rate = network.resources()[static_cast<size_t>(there[i])].rate;
        if (other >= 0 || source >= 0 || std::abs(rate - other_rate) > kAlike * rate) {
          return std::nullopt;
        }
        other = there[i];
        source = loads[i];
      }
    }
  }
  return images;
}

PackingNetwork JoinImages(const PackingNetwork& network, absl::Span<const int> active,
                          const std::vector<Permutation>& candidates) {
  const size_t resources = network.resources().size();
  DisjointSets sets(resources);
  for (const Permutation& candidate : candidates) {
    const std::optional<std::vector<int>> images = ResourceImages(network, active, candidate);
    if (!images) continue;
    for (size_t i = 0; i < resources; ++i) sets.Join(static_cast<int>(i), (*images)[i]);
  }
  std::vector<int> becomes(resources);
  std::map<int, int> numbers;
  for (size_t i = 0; i < resources; ++i) {
    becomes[i] =
        numbers.try_emplace(sets.Find(static_cast<int>(i)), static_cast<int>(numbers.size()))
            .first->second;
  }
  return network.Joined(becomes);
}

std::vector<Permutation> SymmetryCandidates(const Topology& topology,
                                            absl::Span<const int> placement) {
  std::map<int, std::vector<int>> by_host;
  for (size_t worker = 0; worker < placement.size(); ++worker) {
    const int host = topology.nodes[static_cast<size_t>(placement[worker])].host;
    if (host >= 0) by_host[host].push_back(static_cast<int>(worker));
  }
  std::vector<std::vector<int>> hosts;
  for (auto& [node, workers] : by_host) hosts.push_back(std::move(workers));
  std::vector<Permutation> candidates;
  for (size_t i = 0; i < hosts.size(); ++i) {
    AddLocal(hosts[i], placement.size(), candidates);
    for (size_t j = i + 1; j < hosts.size(); ++j) {
      if (hosts[i].size() != hosts[j].size()) continue;
      Permutation exchange = Identity(placement.size());
      for (size_t k = 0; k < hosts[i].size(); ++k) {
        std::swap(exchange[static_cast<size_t>(hosts[i][k])],
                  exchange[static_cast<size_t>(hosts[j][k])]);
      }
      candidates.push_back(std::move(exchange));
    }
  }
  return candidates;
}

}  // namespace syncopate::plan
