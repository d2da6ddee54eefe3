#include "sim/fluid_bandwidth.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace syncopate::sim {

FluidBandwidth::FluidBandwidth(std::unique_ptr<GroupFlows> flows)
    : flows_(std::move(flows)), network_(flows_->capacities()), link_bytes_(flows_->links(), 0) {}

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
  moving.number =
      network_.Start(now, moving.bytes, moving.flow->draws, transfer, 1 / moving.flow->b);
}

void FluidBandwidth::Cancel(double now, int transfer) {
  Moving& moving = transfers_[static_cast<size_t>(transfer)];
  if (moving.number >= 0) {
    network_.Cancel(now, moving.number);
  } else {
    std::erase(instant_, transfer);
  }
  moving = {};
}

double FluidBandwidth::NextEnd() {
  const double next = network_.NextCompletion();
  return instant_.empty() ? next : std::min(next, instant_at_);
}

std::vector<int> FluidBandwidth::TakeEnded(double now) {
  std::vector<int> ended = network_.Complete(now);
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
