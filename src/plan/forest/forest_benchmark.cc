// How long forest plans take, and how near they come to what their certificates prove possible.
//
//   forest_benchmark [plan|again [TEXT]]
//
// "plan" times plans from nothing, "again" those of 64 workers after the rate of one link has
// changed. TEXT takes only the rows that contain it: "1024", "unequal", "DGX".
// Prints Markdown tables. Planning is PlanForest(): all from the topology to the proved
// certificate.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status.h"
#include "model/program_validator.h"
#include "model/topology_makers.h"
#include "plan/forest/forest.h"
#include "plan/forest/paper_topologies.h"

namespace syncopate::plan {
namespace {

struct Case {
  std::string name;
  int workers = 0;
  Topology topology;
};

// Uplinks of a rack and a pod carry less than two NICs; "unequal": every rate and direction has its
// own factor between a half and one and a half.
std::vector<Case> Cases() {
  struct Shape {
    const char* name;
    std::vector<int> fanout;
  };
  const std::vector<Shape> shapes = {
      {"2 racks of 4", {2, 4}},     {"2 pods of 2 racks of 2", {2, 2, 2}},
      {"4 racks of 4", {4, 4}},     {"2 pods of 2 racks of 4", {2, 2, 4}},
      {"4 racks of 8", {4, 8}},     {"2 pods of 4 racks of 4", {2, 4, 4}},
      {"8 racks of 8", {8, 8}},     {"4 pods of 4 racks of 4", {4, 4, 4}},
      {"16 racks of 8", {16, 8}},   {"4 pods of 4 racks of 8", {4, 4, 8}},
      {"16 racks of 16", {16, 16}}, {"4 pods of 8 racks of 8", {4, 8, 8}},
      {"32 racks of 16", {32, 16}}, {"8 pods of 8 racks of 8", {8, 8, 8}},
      {"64 racks of 16", {64, 16}}, {"8 pods of 8 racks of 16", {8, 8, 16}},
  };
  std::vector<Case> cases;
  for (const Shape& shape : shapes) {
    const std::vector<double> rates = shape.fanout.size() == 2
                                          ? std::vector<double>{1.2e9, 1e9}
                                          : std::vector<double>{1.5e9, 1.2e9, 1e9};
    const int workers =
        std::accumulate(shape.fanout.begin(), shape.fanout.end(), 1, std::multiplies<int>());
    for (const bool equal : {true, false}) {
      cases.push_back({absl::StrCat(shape.name, equal ? ", equal" : ", unequal"), workers,
                       SwitchTreeTopology(shape.fanout, rates, 1e-5, equal ? 0 : 0.5, 7)});
    }
  }
  for (const BetweenNetwork between :
       {BetweenNetwork::kGpuPairs, BetweenNetwork::kMachinePairs, BetweenNetwork::kSharedNics}) {
    cases.push_back({absl::StrCat("8 DGX-1, 10 Gb/s, ", std::string(Name(between))), 64,
                     *PaperTopology(MakePaperCluster(8, 8, between, 10))});
  }
  return cases;
}

double SecondsSince(int64_t start_ns) {
  return static_cast<double>(MonotonicClock().NowNs() - start_ns) / 1e9;
}

std::vector<int> AllOf(int workers) {
  std::vector<int> all(workers);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

absl::Status Measure(const Case& each) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<int> placement,
                             PlaceInOrder(each.topology, each.workers));
  const std::vector<int> active = AllOf(each.workers);
  int64_t start = MonotonicClock().NowNs();
  SYNCOPATE_ASSIGN_OR_RETURN(const ForestPlan plan,
                             PlanForest(each.topology, placement, active, {}));
  const double plan_seconds = SecondsSince(start);
  start = MonotonicClock().NowNs();
  SYNCOPATE_RETURN_IF_ERROR(
      CheckCertificate(each.topology, placement, active, true, plan.pairs, plan.certificate));
  const double check_seconds = SecondsSince(start);
  CollectiveRequest request;
  request.workers = each.workers;
  request.active = active;
  request.elements = 25'000'000;
  start = MonotonicClock().NowNs();
  SYNCOPATE_ASSIGN_OR_RETURN(const Program program, MakeForestProgram(request, plan, 1 << 17));
  const double make_seconds = SecondsSince(start);
  start = MonotonicClock().NowNs();
  SYNCOPATE_RETURN_IF_ERROR(ProveProgram(program).status());
  std::printf("| %d | %s | %.2f | %.2f | %zu | %d | %.2f | %.2f | %.2f |\n", each.workers,
              each.name.c_str(), plan_seconds, 100 * plan.certificate.gap(), plan.pairs.size(),
              plan.depth, check_seconds, make_seconds, SecondsSince(start));
  std::fflush(stdout);
  return absl::OkStatus();
}

// From nothing, and again after one link and its capacity have lost a part of their rate.
absl::Status MeasureAgain(const Case& each) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<int> placement,
                             PlaceInOrder(each.topology, each.workers));
  const std::vector<int> active = AllOf(each.workers);
  SYNCOPATE_ASSIGN_OR_RETURN(ForestPlanner planner,
                             ForestPlanner::Make(each.topology, placement, active, {}));
  SYNCOPATE_RETURN_IF_ERROR(planner.Plan().status());
  for (const double factor : {0.95, 0.8, 0.5}) {
    std::vector<double> anew, again, ratio;
    double gap_anew = 0;
    double gap_again = 0;
    for (size_t i = 0; i < 5; ++i) {
      Topology changed = each.topology;
      Topology::Link& link = changed.links[i * 7919 % changed.links.size()];
      link.bandwidth *= factor;
      for (const int capacity : link.capacities) changed.capacities[capacity].bandwidth *= factor;
      int64_t start = MonotonicClock().NowNs();
      SYNCOPATE_ASSIGN_OR_RETURN(const ForestPlan first,
                                 PlanForest(changed, placement, active, {}));
      anew.push_back(SecondsSince(start));
      start = MonotonicClock().NowNs();
      SYNCOPATE_RETURN_IF_ERROR(planner.Update(changed));
      SYNCOPATE_ASSIGN_OR_RETURN(const ForestPlan second, planner.Plan());
      again.push_back(SecondsSince(start));
      ratio.push_back(anew.back() / again.back());
      gap_anew = std::max(gap_anew, first.certificate.gap());
      gap_again = std::max(gap_again, second.certificate.gap());
      SYNCOPATE_RETURN_IF_ERROR(planner.Update(each.topology));
      SYNCOPATE_RETURN_IF_ERROR(planner.Plan().status());
    }
    for (std::vector<double>* values : {&anew, &again, &ratio}) {
      std::sort(values->begin(), values->end());
    }
    std::printf("| %s | %.2f | %.3f | %.4f | %.0f (%.0f .. %.0f) | %.2f | %.2f |\n",
                each.name.c_str(), factor, anew[2], again[2], ratio[2], ratio.front(), ratio.back(),
                100 * gap_anew, 100 * gap_again);
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

int Main(const std::string& what, const std::string& text) {
  const bool again = what == "again";
  if (again) {
    std::printf(
        "| network | rate of one link | from nothing, s | again, s | times quicker | gap from "
        "nothing, %% | gap again, %% |\n| --- | --- | --- | --- | --- | --- | --- |\n");
  } else {
    std::printf(
        "| workers | network | plan, s | gap, %% | pairs | depth | check, s | program, s | its "
        "proof, s |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  }
  for (const Case& each : Cases()) {
    // Where every pair has a link of its own, a changed one ends the symmetries; that takes
    // minutes.
    if (again && (each.workers != 64 || absl::StrContains(each.name, "gpu-pairs"))) continue;
    if (!absl::StrContains(absl::StrCat(each.workers, " ", each.name), text)) continue;
    const absl::Status status = again ? MeasureAgain(each) : Measure(each);
    if (status.ok()) continue;
    std::fprintf(stderr, "%s: %s\n", each.name.c_str(), status.ToString().c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace syncopate::plan

int main(int argc, char** argv) {
  return syncopate::plan::Main(argc > 1 ? argv[1] : "plan", argc > 2 ? argv[2] : "");
}
