#include "sim/gamma_bandwidth.h"

#include <algorithm>
#include <limits>

namespace syncopate::sim {

absl::StatusOr<double> GammaBandwidth::Add(int transfer, const Travel& travel) {
  if (transfers_.size() <= static_cast<size_t>(transfer)) {
    transfers_.resize(static_cast<size_t>(transfer) + 1);
  }
  Moving& moving = transfers_[static_cast<size_t>(transfer)];
  moving.members = travel.members;
  moving.bytes_left = static_cast<double>(travel.bytes);
  moving.stamp = 0;
  return costs_.a;
}

const std::vector<int>& GammaBandwidth::Neighbours(int transfer) {
  neighbours_.clear();
  transfers_[static_cast<size_t>(transfer)].seen = ++seen_;
  for (const int rank : transfers_[static_cast<size_t>(transfer)].members->ranks) {
    for (const int other : moving_of_[static_cast<size_t>(rank)]) {
      Moving& moving = transfers_[static_cast<size_t>(other)];
      if (std::exchange(moving.seen, seen_) != seen_) neighbours_.push_back(other);
    }
  }
  return neighbours_;
}

void GammaBandwidth::SetBeside(double now, int transfer, int beside) {
  Moving& moving = transfers_[static_cast<size_t>(transfer)];
  if (moving.stamp != 0 && moving.seconds_per_byte > 0) {
    moving.bytes_left =
        std::max(0.0, moving.bytes_left - (now - moving.updated) / moving.seconds_per_byte);
  }
  moving.updated = now;
  moving.beside = beside;
  moving.seconds_per_byte = costs_.b * costs_.Gamma(beside);
  moving.stamp = ++stamps_;
  ends_.push({now + moving.bytes_left * moving.seconds_per_byte, transfer, moving.stamp});
}

void GammaBandwidth::Begin(double now, int transfer) {
  const std::vector<int>& neighbours = Neighbours(transfer);
  for (const int other : neighbours) {
    SetBeside(now, other, transfers_[static_cast<size_t>(other)].beside + 1);
  }
  SetBeside(now, transfer, static_cast<int>(neighbours.size()) + 1);
  for (const int rank : transfers_[static_cast<size_t>(transfer)].members->ranks) {
    moving_of_[static_cast<size_t>(rank)].push_back(transfer);
  }
}

void GammaBandwidth::Remove(double now, int transfer) {
  Moving& moving = transfers_[static_cast<size_t>(transfer)];
  for (const int rank : moving.members->ranks) {
    std::vector<int>& list = moving_of_[static_cast<size_t>(rank)];
    list.erase(std::find(list.begin(), list.end(), transfer));
  }
  for (const int other : Neighbours(transfer)) {
    SetBeside(now, other, transfers_[static_cast<size_t>(other)].beside - 1);
  }
  moving.stamp = 0;
  moving.members = nullptr;
}

double GammaBandwidth::NextEnd() {
  while (!ends_.empty() &&
         transfers_[static_cast<size_t>(ends_.top().transfer)].stamp != ends_.top().stamp) {
    ends_.pop();
  }
  return ends_.empty() ? std::numeric_limits<double>::infinity() : ends_.top().time;
}

// All that end together are taken before the rest gets their bandwidth: a transfer of zero seconds that
// is left at `now` would else end a rounding error later.
std::vector<int> GammaBandwidth::TakeEnded(double now) {
  std::vector<int> ended;
  while (NextEnd() <= now) {
    ended.push_back(ends_.top().transfer);
    ends_.pop();
  }
  for (const int transfer : ended) Remove(now, transfer);
  return ended;
}

}  // namespace syncopate::sim
