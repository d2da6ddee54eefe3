// A cut through the network bounds a collective by the bytes that must cross it. Every cut gives a
// valid bound, so it does not matter that only some are tried: single hosts, racks, and the two
// sides of a link between switches. Partitions add up the traffic of several cuts at once, which
// bounds an all-reduce more tightly than any of them.
#include "tools/bench/network_bound.h"

#include <algorithm>
#include <limits>

#include "lab/forwarding.h"
#include "lab/lab.h"

namespace syncopate::tools::bench {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kBitsPerByte = 8;

// A link without a rate is not shaped and never the bottleneck.
double PayloadRate(int64_t bits) {
  return bits > 0 ? static_cast<double>(bits) / kBitsPerByte * lab::kPayloadShare : kInfinite;
}

// A link to a host without workers carries nothing, since packets pass through switches only.
bool Carries(const lab::Spec& spec, const std::vector<int>& workers, const lab::Link& link) {
  for (const int node : {link.a, link.b}) {
    if (spec.nodes[node].is_host && workers[node] == 0) return false;
  }
  return true;
}

// The bytes/s that can go from the nodes inside to those outside.
double RateOut(const lab::Spec& spec, const std::vector<int>& workers,
               const std::vector<bool>& inside) {
  double rate = 0;
  for (const lab::Link& link : spec.links) {
    if (inside[link.a] == inside[link.b] || !Carries(spec, workers, link)) continue;
    rate += PayloadRate(inside[link.a] ? link.rate_forward : link.rate_back);
  }
  return rate;
}

// The nodes that `start` still reaches when the link `without` is cut.
std::vector<bool> Reachable(const lab::Spec& spec, int start, const lab::Link& without) {
  std::vector<bool> reached(spec.nodes.size(), false);
  std::vector<int> open = {start};
  reached[start] = true;
  while (!open.empty()) {
    const int node = open.back();
    open.pop_back();
    for (const lab::Link& link : spec.links) {
      if (&link == &without || (link.a != node && link.b != node)) continue;
      const int other = lab::OtherEnd(link, node);
      if (reached[other]) continue;
      reached[other] = true;
      open.push_back(other);
    }
  }
  return reached;
}

// A switch and the hosts on it that run workers.
std::vector<bool> Rack(const lab::Spec& spec, const std::vector<int>& workers, int node) {
  std::vector<bool> inside(spec.nodes.size(), false);
  inside[node] = true;
  for (const lab::Link& link : spec.links) {
    if (link.a != node && link.b != node) continue;
    const int other = lab::OtherEnd(link, node);
    if (workers[other] > 0) inside[other] = true;
  }
  return inside;
}

int WorkersIn(const std::vector<int>& workers, const std::vector<bool>& inside) {
  int sum = 0;
  for (size_t i = 0; i < inside.size(); ++i) sum += inside[i] ? workers[i] : 0;
  return sum;
}

}  // namespace

NetworkBound::NetworkBound(const lab::Spec& spec, const std::vector<int>& slots,
                           const std::vector<int>& active)
    : workers_at_(spec.nodes.size(), 0), active_at_(spec.nodes.size(), 0) {
  const std::vector<int> hosts = lab::WorkerHosts(spec);
  for (size_t i = 0; i < hosts.size() && i < slots.size(); ++i) {
    const int host = hosts[i];
    for (int rank = workers_; rank < workers_ + slots[i]; ++rank) {
      const bool is_active =
          active.empty() || std::find(active.begin(), active.end(), rank) != active.end();
      active_at_[host] += is_active ? 1 : 0;
    }
    workers_at_[host] = slots[i];
    workers_ += slots[i];
    active_ += active_at_[host];
    if (slots[i] == 0) continue;
    if (root_ < 0) root_ = host;
    target_ = host;
  }
  std::vector<std::vector<bool>> singles;
  std::vector<std::vector<bool>> racks;
  for (size_t i = 0; i < spec.nodes.size(); ++i) {
    if (workers_at_[i] > 0) {
      singles.emplace_back(spec.nodes.size(), false);
      singles.back()[i] = true;
    } else if (!spec.nodes[i].is_host) {
      std::vector<bool> rack = Rack(spec, workers_at_, static_cast<int>(i));
      if (WorkersIn(workers_at_, rack) > 0) racks.push_back(std::move(rack));
    }
  }
  for (const auto& single : singles) AddCuts(spec, single);
  for (const auto& rack : racks) AddCuts(spec, rack);
  for (const lab::Link& link : spec.links) {
    if (spec.nodes[link.a].is_host || spec.nodes[link.b].is_host) continue;
    // Only a link without another way around it separates the network into two sides.
    const std::vector<bool> side = Reachable(spec, link.a, link);
    if (!side[link.b]) AddCuts(spec, side);
  }
  AddPartition(spec, singles);
  AddPartition(spec, racks);
}

void NetworkBound::AddCuts(const lab::Spec& spec, const std::vector<bool>& inside) {
  // Links may have different rates in the two directions, so each side is a cut of its own. A side
  // without active workers, or with all of them, says nothing.
  std::vector<bool> outside = inside;
  outside.flip();
  for (const std::vector<bool>& side : {inside, outside}) {
    Cut cut;
    cut.workers = WorkersIn(active_at_, side);
    if (cut.workers == 0 || cut.workers == active_) return;
    cut.root = side[root_];
    cut.target = side[target_];
    cut.rate = RateOut(spec, workers_at_, side);
    cuts_.push_back(cut);
  }
}

void NetworkBound::AddPartition(const lab::Spec& spec,
                                const std::vector<std::vector<bool>>& parts) {
  Partition partition;
  int in_parts = 0;
  for (const std::vector<bool>& part : parts) {
    std::vector<bool> rest = part;
    rest.flip();
    // A part that only relays need not take part, but what it can carry may serve the others.
    if (WorkersIn(active_at_, part) > 0) ++partition.parts;
    in_parts += WorkersIn(workers_at_, part);
    partition.rate_out += RateOut(spec, workers_at_, part);
    partition.rate_in += RateOut(spec, workers_at_, rest);
  }
  // Hosts on two switches are in two racks: no partition.
  if (partition.parts > 1 && in_parts == workers_) partitions_.push_back(partition);
}

// The least that must leave the cut's side. Blocks are taken to be equal, one for each active
// worker; reductions can be added up on either side, so an all-reduce sends the data across once.
double NetworkBound::BytesAcross(const Cut& cut, Collective collective, uint64_t bytes) const {
  const double all = static_cast<double>(bytes);
  const double part = static_cast<double>(cut.workers) / active_;
  switch (collective) {
    case Collective::kAllReduce:
      return all;
    case Collective::kBroadcast:
      return cut.root ? all : 0;
    case Collective::kReduce:
      return cut.root ? 0 : all;
    case Collective::kAllGather:
      return all * part;
    case Collective::kReduceScatter:
      return all * (1 - part);
    case Collective::kGather:
      return cut.root ? 0 : all * part;
    case Collective::kScatter:
      return cut.root ? all * (1 - part) : 0;
    case Collective::kAllToAll:
      return all * part * (1 - part) * active_;
    case Collective::kSendReceive:
      return cut.root && !cut.target ? all : 0;
    case Collective::kBarrier:
      return 0;
  }
  return 0;
}

std::optional<double> NetworkBound::Seconds(Collective collective, uint64_t bytes) const {
  double seconds = 0;
  for (const Cut& cut : cuts_) {
    seconds = std::max(seconds, BytesAcross(cut, collective, bytes) / cut.rate);
  }
  if (collective == Collective::kAllReduce) {
    for (const Partition& partition : partitions_) {
      // All parts together must send, and also receive, 2 (parts - 1) times the data: docs/bench.md
      // says why.
      const double moved = 2.0 * (partition.parts - 1) * static_cast<double>(bytes);
      seconds = std::max(seconds, moved / std::min(partition.rate_out, partition.rate_in));
    }
  }
  // Nothing crosses, or only links without a rate: there is no bound.
  if (seconds <= 0) return std::nullopt;
  return seconds;
}

}  // namespace syncopate::tools::bench
