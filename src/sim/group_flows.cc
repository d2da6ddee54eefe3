#include "sim/group_prices.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "cost/program_cost.h"
#include "plan/collective/planners.h"
#include "plan/collective/shared_memory.h"

namespace syncopate::sim {
namespace {

constexpr uint64_t kElementBytes = 4;

plan::CollectiveRequest AllReduceOf(size_t workers, uint64_t elements) {
  plan::CollectiveRequest request;
  request.workers = static_cast<int>(workers);
  request.elements = elements;
  request.active.resize(workers);
  std::iota(request.active.begin(), request.active.end(), 0);
  return request;
}

// Where all members share memory: the quickest of the programs that run there as a whole.
std::optional<double> SecondsInMemory(const plan::SharedMemory& memory, int workers, double bytes) {
  std::optional<double> least;
  for (const plan::PlannerInfo* planner : plan::AllPlanners()) {
    if (planner->collective != Collective::kAllReduce || !planner->in_place) continue;
    const double seconds =
        plan::InPlaceTime(memory, planner->in_place(workers), workers, bytes).seconds();
    least = std::min(least.value_or(seconds), seconds);
  }
  return least;
}

}  // namespace

cost::CommunicationCosts LineThrough(double small_seconds, double large_seconds) {
  cost::CommunicationCosts costs;
  const double between =
      static_cast<double>(kElementBytes * (kPricedElementsLarge - kPricedElementsSmall));
  costs.b = std::max(0.0, (large_seconds - small_seconds) / between);
  costs.a = std::max(
      0.0, small_seconds - costs.b * static_cast<double>(kElementBytes * kPricedElementsSmall));
  return costs;
}

GroupPrices::GroupPrices(std::shared_ptr<const Topology> topology, std::vector<int> placement)
    : topology_(std::move(topology)),
      placement_(std::move(placement)),
      places_(*topology_),
      figures_(plan::FiguresOf(*topology_)) {}

absl::StatusOr<double> GroupPrices::Seconds(const std::vector<int>& devices,
                                            uint64_t elements) const {
  const plan::CollectiveRequest request = AllReduceOf(devices.size(), elements);
  if (const std::optional<plan::SharedMemory> memory =
          plan::FindSharedMemory(request, *topology_, devices)) {
    const std::optional<double> seconds =
        SecondsInMemory(*memory, request.workers, static_cast<double>(elements * kElementBytes));
    if (seconds) return *seconds;
  }
  std::vector<int> hosts;
  for (const int device : devices) {
    const int host = topology_->nodes[static_cast<size_t>(device)].host;
    hosts.push_back(host >= 0 ? host : device);
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const Program program,
                             plan::PlanQuickly(request, kElementBytes, figures_, hosts));
  SYNCOPATE_ASSIGN_OR_RETURN(const cost::ProgramCost cost,
                             cost::CostOf(program, *topology_, devices, kElementBytes));
  return cost.seconds;
}

absl::StatusOr<cost::CommunicationCosts> GroupPrices::Of(const std::vector<int>& members) {
  std::vector<int> devices;
  for (const int rank : members) {
    if (rank < 0 || static_cast<size_t>(rank) >= placement_.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(rank, " is not a rank of a job of ", placement_.size()));
    }
    devices.push_back(placement_[static_cast<size_t>(rank)]);
  }
  if (devices.size() < 2) return cost::CommunicationCosts{};
  devices = places_.Canonical(devices);
  if (const auto found = prices_.find(devices); found != prices_.end()) return found->second;
  SYNCOPATE_ASSIGN_OR_RETURN(const double small, Seconds(devices, kPricedElementsSmall));
  SYNCOPATE_ASSIGN_OR_RETURN(const double large, Seconds(devices, kPricedElementsLarge));
  cost::CommunicationCosts costs = LineThrough(small, large);
  costs.source = absl::StrCat("by the places of ", devices.size(), " members");
  if (prices_.size() >= kPricesMax) prices_.clear();
  ++priced_;
  prices_.emplace(std::move(devices), costs);
  return costs;
}

}  // namespace syncopate::sim
