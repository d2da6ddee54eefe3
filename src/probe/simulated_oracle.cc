#include "probe/simulated_oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/status.h"
#include "model/topology_routes.h"

namespace syncopate::probe {
namespace {

// Rates that grow together, each by its weight, until something they draw on is full.
std::vector<double> Fill(const std::vector<std::vector<int>>& draws,
                         const std::vector<double>& weights, std::vector<double> left) {
  std::vector<double> rates(draws.size(), 0);
  std::vector<bool> fixed(draws.size(), false);
  for (size_t open = draws.size(); open > 0;) {
    std::vector<double> weight(left.size(), 0);
    for (size_t f = 0; f < draws.size(); ++f) {
      if (fixed[f]) continue;
      for (const int r : draws[f]) weight[static_cast<size_t>(r)] += weights[f];
    }
    double grow = std::numeric_limits<double>::infinity();
    for (size_t r = 0; r < left.size(); ++r) {
      if (weight[r] > 0) grow = std::min(grow, left[r] / weight[r]);
    }
    std::vector<bool> full(left.size(), false);
    for (size_t r = 0; r < left.size(); ++r) {
      if (weight[r] <= 0) continue;
      full[r] = left[r] / weight[r] <= grow * (1 + 1e-12);
      left[r] -= grow * weight[r];
    }
    for (size_t f = 0; f < draws.size(); ++f) {
      if (fixed[f]) continue;
      rates[f] += grow * weights[f];
      fixed[f] = std::any_of(draws[f].begin(), draws[f].end(),
                             [&](int r) { return full[static_cast<size_t>(r)]; });
      open -= fixed[f] ? 1 : 0;
    }
  }
  return rates;
}

}  // namespace

SimulatedOracle::SimulatedOracle(const Topology& topology, const SimulatedNoise& noise,
                                 uint64_t seed)
    : topology_(topology), noise_(noise), devices_(Devices(topology)), random_(seed) {}

std::string SimulatedOracle::HostOf(int worker) const {
  const Topology::Node& device =
      topology_.nodes[static_cast<size_t>(devices_[static_cast<size_t>(worker)])];
  return device.host >= 0 ? topology_.nodes[static_cast<size_t>(device.host)].id : device.id;
}

absl::StatusOr<double> SimulatedOracle::Latency(int from, int to) {
  Routes routes(topology_);
  SYNCOPATE_ASSIGN_OR_RETURN(
      const std::vector<int> links,
      routes.Between(devices_[static_cast<size_t>(from)], devices_[static_cast<size_t>(to)]));
  double latency = 0;
  for (const int link : links) latency += topology_.links[static_cast<size_t>(link)].latency;
  elapsed_ += 20 * latency;
  return latency;
}

std::vector<int> SimulatedOracle::ResourcesOf(const Flow& flow) const {
  Routes routes(topology_);
  std::vector<int> resources;
  const absl::StatusOr<std::vector<int>> links = routes.Between(
      devices_[static_cast<size_t>(flow.from)], devices_[static_cast<size_t>(flow.to)]);
  if (!links.ok()) return resources;
  for (const int link : *links) {
    resources.push_back(link);
    for (const int capacity : topology_.links[static_cast<size_t>(link)].capacities) {
      resources.push_back(static_cast<int>(topology_.links.size()) + capacity);
    }
  }
  return resources;
}

absl::StatusOr<std::vector<double>> SimulatedOracle::Rates(absl::Span<const Flow> flows,
                                                           double seconds) {
  std::vector<double> capacities;
  for (const Topology::Link& link : topology_.links) capacities.push_back(link.bandwidth);
  for (const Topology::Capacity& capacity : topology_.capacities) {
    capacities.push_back(capacity.bandwidth);
  }
  std::vector<std::vector<int>> draws;
  std::vector<double> weights;
  for (const Flow& flow : flows) {
    draws.push_back(ResourcesOf(flow));
    weights.push_back(std::pow(noise_.unfairness, random_.Unit()));
  }
  std::vector<double> rates = Fill(draws, weights, std::move(capacities));
  for (double& rate : rates) {
    rate *= 1 + noise_.spread * (2 * random_.Unit() - 1);
    if (random_.Unit() < noise_.outliers) rate *= 0.3 + 0.5 * random_.Unit();
  }
  elapsed_ += seconds + noise_.overhead_seconds;
  return rates;
}

}  // namespace syncopate::probe
