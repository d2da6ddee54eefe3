// How `syncopate plan` shows a forest plan: its certificate, trees and loads as tables and as JSON.
#ifndef SYNCOPATE_TOOLS_PLAN_FOREST_REPORT_H_
#define SYNCOPATE_TOOLS_PLAN_FOREST_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "model/topology.h"
#include "nlohmann/json_fwd.hpp"
#include "plan/forest/forest.h"
#include "tools/plan_forest.h"

namespace syncopate::tools {

// A link or capacity that the plan uses or that its certificate prices, the busiest first;
// of those that are equally busy, the one with the highest price.
struct ForestPart {
  plan::NetworkPart part;
  double bytes = 0;        // that cross it for each byte of data
  double utilisation = 0;  // of the time that the plan takes
  double price = 0;        // in the certificate, for each byte
};
std::vector<ForestPart> BusiestFirst(const plan::ForestPlan& plan);

// Lines for the summary, then the certificate, the trees and the loads.
std::string FormatForest(const ForestReport& report, const Topology& topology, uint64_t bytes);

// Adds what a forest plan has besides what every plan has.
void AddForestToJson(const ForestReport& report, const Topology& topology, uint64_t bytes,
                     nlohmann::ordered_json& json);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_PLAN_FOREST_REPORT_H_
