// What transfers of a group cost on a network, by where its members are: a straight line through the times
// of a small and a large all-reduce, by the program that the group would run at once
// (plan/collective/quick_choice.h), or in the memory that all members share.
//
// A strategy may make very many groups, so prices are kept for places that are alike
// (plan/collective/like_places.h), and a price takes about as long as playing two short programs.
#ifndef SYNCOPATE_SIM_GROUP_PRICES_H_
#define SYNCOPATE_SIM_GROUP_PRICES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "cost/communication_costs.h"
#include "model/topology.h"
#include "plan/collective/like_places.h"
#include "plan/collective/quick_choice.h"

namespace syncopate::sim {

// The sizes of the two all-reduces by which a network is priced, in float32 elements.
inline constexpr uint64_t kPricedElementsSmall = 1 << 14;
inline constexpr uint64_t kPricedElementsLarge = 1 << 22;

// The line through what they take.
cost::CommunicationCosts LineThrough(double small_seconds, double large_seconds);

// Not thread-safe.
class GroupPrices {
 public:
  // `topology` is valid; `placement` has for each rank the device that it is on.
  GroupPrices(std::shared_ptr<const Topology> topology, std::vector<int> placement);

  // What transfers of these ranks cost. InvalidArgument if there is no such rank.
  absl::StatusOr<cost::CommunicationCosts> Of(const std::vector<int>& members);

  // Groups that were priced so far, those alike once.
  uint64_t priced() const { return priced_; }

 private:
  // When there are more, all are forgotten.
  static constexpr size_t kPricesMax = 4096;

  absl::StatusOr<double> Seconds(const std::vector<int>& devices, uint64_t elements) const;

  const std::shared_ptr<const Topology> topology_;
  const std::vector<int> placement_;
  const plan::LikePlaces places_;
  const plan::NetworkFigures figures_;
  std::map<std::vector<int>, cost::CommunicationCosts> prices_;  // by the places that stand for all
  uint64_t priced_ = 0;
};

}  // namespace syncopate::sim

#endif  // SYNCOPATE_SIM_GROUP_PRICES_H_
