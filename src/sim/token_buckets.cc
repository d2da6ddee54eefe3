#include "sim/token_buckets.h"

#include <algorithm>
#include <limits>

namespace syncopate::sim {
namespace {

constexpr double kNeverEmpty = std::numeric_limits<double>::infinity();
// Less than this part of a burst is nothing. Rounding leaves some tokens where a bucket is empty, and they
// would be gone so soon that time could not tell.
constexpr double kNothing = 1e-6;
// A link that is full may seem to use as much more than its rate, by rounding.
constexpr double kSameRate = 1e-9;

}  // namespace

void TokenBucket::Advance(double now) {
  tokens_ = std::min(burst_, tokens_ + (rate_ - usage_) * (now - now_));
  if (tokens_ < kNothing * burst_) tokens_ = 0;
  now_ = now;
}

double TokenBucket::EmptyAt() const {
  const bool drains = usage_ > rate_ * (1 + kSameRate);
  return drains ? now_ + tokens_ / (usage_ - rate_) : kNeverEmpty;
}

TokenBuckets::TokenBuckets(const std::vector<CapacityBucket>& buckets, const Topology& topology)
    : of_resource_(topology.links.size() + topology.capacities.size(), -1) {
  for (const CapacityBucket& each : buckets) {
    const double rate = topology.capacities[static_cast<size_t>(each.capacity)].bandwidth;
    const size_t resource = topology.links.size() + static_cast<size_t>(each.capacity);
    of_resource_[resource] = static_cast<int>(shaped_.size());
    shaped_.push_back({.bucket = TokenBucket(rate, each.burst),
                       .rate = rate,
                       .burst = each.burst,
                       .line_rate = each.line_rate,
                       .resource = static_cast<int>(resource)});
  }
}

double TokenBuckets::Settle(double now, cost::FlowNetwork& network) {
  for (Shaped& shaped : shaped_) {
    shaped.bucket.Advance(now);
    if (shaped.open || shaped.bucket.tokens() == 0) continue;
    shaped.open = true;
    network.SetCapacity(now, shaped.resource, shaped.line_rate);
  }
  // A link without tokens that is slower than its line gives its flows less, and others more, which may
  // drain other links. None is opened here, so this comes to an end.
  for (bool again = true; again;) {
    again = false;
    for (Shaped& shaped : shaped_) {
      shaped.bucket.SetUsage(network.Usage(shaped.resource));
      if (!shaped.open || shaped.bucket.EmptyAt() > now) continue;
      shaped.open = false;
      network.SetCapacity(now, shaped.resource, shaped.rate);
      again = true;
    }
  }
  double next = kNeverEmpty;
  for (const Shaped& shaped : shaped_) next = std::min(next, shaped.bucket.EmptyAt());
  return next;
}

double TokenBuckets::QuickestSeconds(double b, double bytes,
                                     const std::vector<cost::FlowNetwork::Draw>& draws) const {
  const Shaped* most = nullptr;
  double weight = 0;
  for (const cost::FlowNetwork::Draw& draw : draws) {
    if (static_cast<size_t>(draw.resource) >= of_resource_.size()) continue;
    const int index = of_resource_[static_cast<size_t>(draw.resource)];
    if (index < 0) continue;
    const Shaped& shaped = shaped_[static_cast<size_t>(index)];
    if (most != nullptr && draw.weight / shaped.rate <= weight / most->rate) continue;
    most = &shaped;
    weight = draw.weight;
  }
  if (most == nullptr) return b;
  const double beyond = 1 - most->burst / (weight * bytes);
  return b * std::max(most->rate / most->line_rate, beyond);
}

}  // namespace syncopate::sim
