// A plan as an SVG picture: the network, how busy its parts are, and the trees.
#ifndef SYNCOPATE_TOOLS_PLAN_PICTURE_H_
#define SYNCOPATE_TOOLS_PLAN_PICTURE_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "model/topology.h"
#include "plan/forest/packing.h"

namespace syncopate::tools {

struct PlanPicture {
  std::string title;
  std::vector<int> placement;  // by rank
  std::vector<int> active;     // sorted ranks
  // The part of the time that each is busy.
  std::vector<double> links;
  std::vector<double> capacities;
  absl::Span<const plan::TreePair> pairs;  // largest first; none: no trees are drawn
};

// `topology` must be valid. The same picture gives the same bytes.
std::string DrawPlan(const Topology& topology, const PlanPicture& picture);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_PLAN_PICTURE_H_
