#include "services/host_order.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/limits.h"

namespace syncopate::services {

absl::StatusOr<HostOrder> HostOrder::Make(int size, std::vector<int> candidates,
                                          const std::vector<int>& absent) {
  if (size < 1 || size > limits::kWorkersMax) {
    return absl::InvalidArgumentError(absl::StrCat("a job of ", size, " workers"));
  }
  std::vector<bool> seen(static_cast<size_t>(size));
  for (const int rank : candidates) {
    if (rank < 0 || rank >= size) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", rank, " cannot host services: the job has ", size, " workers"));
    }
    if (seen[static_cast<size_t>(rank)]) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", rank, " is twice in the order of service hosts"));
    }
    seen[static_cast<size_t>(rank)] = true;
  }
  if (candidates.empty()) {
    return absl::InvalidArgumentError("no rank may host services");
  }
  std::vector<bool> live(static_cast<size_t>(size), true);
  for (const int rank : absent) {
    if (rank < 0 || rank >= size) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", rank, " cannot be absent: the job has ", size, " workers"));
    }
    live[static_cast<size_t>(rank)] = false;
  }
  return HostOrder(std::move(live), std::move(candidates));
}

HostOrder::HostOrder(std::vector<bool> live, std::vector<int> candidates)
    : candidates_(std::make_shared<const std::vector<int>>(std::move(candidates))),
      live_(std::move(live)) {
  Choose(0);
}

absl::Status HostOrder::Apply(const Change& change) {
  if (change.order != changes_.size() + 1) {
    return absl::InternalError(
        absl::StrCat("change ", change.order, " of the job's workers follows ", changes_.size()));
  }
  if (change.rank < 0 || change.rank >= limits::kWorkersMax) {
    return absl::InternalError(absl::StrCat("a change of rank ", change.rank));
  }
  const auto rank = static_cast<size_t>(change.rank);
  const bool joins = change.kind == Change::Kind::kJoined;
  if (IsLive(change.rank) == joins) {
    return absl::InternalError(
        absl::StrCat("rank ", change.rank, joins ? " joins" : " goes", " twice"));
  }
  if (rank >= live_.size()) live_.resize(rank + 1);
  live_[rank] = joins;
  if (joins) {
    // It has no state, so it stands behind all others, whatever place its rank had before.
    std::vector<int> candidates = *candidates_;
    std::erase(candidates, change.rank);
    if (change.may_host) candidates.push_back(change.rank);
    candidates_ = std::make_shared<const std::vector<int>>(std::move(candidates));
  }
  changes_.push_back(change);
  Choose(change.order);
  return absl::OkStatus();
}

void HostOrder::Choose(uint64_t order) {
  int found[2] = {-1, -1};
  int count = 0;
  for (const int rank : *candidates_) {
    if (!IsLive(rank)) continue;
    found[count++] = rank;
    if (count == 2) break;
  }
  if (found[0] != host_) incarnation_ = order;
  host_ = found[0];
  standby_ = found[1];
}

std::vector<int> HostOrder::LiveRanks() const {
  std::vector<int> ranks;
  for (size_t rank = 0; rank < live_.size(); ++rank) {
    if (live_[rank]) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

}  // namespace syncopate::services
