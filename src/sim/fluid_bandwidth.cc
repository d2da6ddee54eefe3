#include "sim/fluid_bandwidth.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace syncopate::sim {

FluidBandwidth::FluidBandwidth(std::unique_ptr<GroupFlows> flows,
                               const std::vector<CapacityBucket>& buckets)
    : flows_(std::move(flows)), network_(flows_->capacities()), link_bytes_(flows_->links(), 0) {
  if (!buckets.empty()) buckets_.emplace(buckets, flows_->topology());
}

absl::StatusOr<double> FluidBandwidth::Add(int transfer, const Travel& travel) {
  if (transfers_.size() <= static_cast<size_t>(transfer)) {
    transfers_.resize(static_cast<size_t>(transfer) + 1);
  }
  Moving& moving = transfers_[static_cast<size_t>(transfer)];
  moving.bytes = static_cast<double>(travel.bytes);
  moving.number = -1;
  SYNCOPATE_ASSIGN_OR_RETURN(moving.flow, travel.average
                                              ? flows_->OfAverage(travel.members, travel.bytes)
                                              : flows_->OfSends(travel.from, travel.to));
  return moving.flow->a;
}

void FluidBandwidth::Begin(double now, int transfer) {
  Moving& moving = transfers_[static_cast<size_t>(transfer)];
  if (moving.flow->b == 0 || moving.bytes == 0) {
    instant_.push_back(transfer);
    instant_at_ = now;
    return;
  }
  double b = moving.flow->b;
  if (buckets_) b = buckets_->QuickestSeconds(b, moving.bytes, moving.flow->draws);
  moving.number = network_.Start(now, moving.bytes, moving.flow->draws, transfer, 1 / b);
  Changed(now);
}

void FluidBandwidth::Cancel(double now, int transfer) {
  Moving& moving = transfers_[static_cast<size_t>(transfer)];
  if (moving.number >= 0) {
    network_.Cancel(now, moving.number);
    Changed(now);
  } else {
    std::erase(instant_, transfer);
  }
  moving = {};
}

void FluidBandwidth::Changed(double now) {
  now_ = now;
  settled_ = false;
}

double FluidBandwidth::NextEnd() {
  if (buckets_ && !std::exchange(settled_, true)) {
    bucket_changes_ = buckets_->Settle(now_, network_);
  }
  const double next = std::min(network_.NextCompletion(), bucket_changes_);
  return instant_.empty() ? next : std::min(next, instant_at_);
}

std::vector<int> FluidBandwidth::TakeEnded(double now) {
  std::vector<int> ended = network_.Complete(now);
  Changed(now);
  ended.insert(ended.end(), instant_.begin(), instant_.end());
  instant_.clear();
  for (const int transfer : ended) {
    Moving& moving = transfers_[static_cast<size_t>(transfer)];
    for (const auto& [link, bytes] : moving.flow->link_bytes) {
      link_bytes_[static_cast<size_t>(link)] += bytes * moving.bytes;
    }
    moving = {};
  }
  return ended;
}

}  // namespace syncopate::sim
