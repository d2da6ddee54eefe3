#include "plan/collective/quick_choice.h"

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plan/collective/planners.h"

namespace syncopate::plan {
namespace {

// The active workers, those of one host side by side; empty if they are so already.
std::vector<int> OrderByHost(const CollectiveRequest& request, absl::Span<const int> hosts) {
  std::vector<int> order = request.active;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return hosts[static_cast<size_t>(a)] < hosts[static_cast<size_t>(b)];
  });
  if (order == request.active) order.clear();
  return order;
}

bool IsShort(const PlannerInfo& planner, int workers) {
  return !planner.steps ||
         planner.steps(static_cast<uint64_t>(workers), {}) <= QuickStepsMax(workers);
}

}  // namespace

uint64_t QuickStepsMax(int workers) {
  const uint64_t n = static_cast<uint64_t>(workers);
  return std::max<uint64_t>(8192, 8 * n * static_cast<uint64_t>(std::bit_width(n)));
}

NetworkFigures FiguresOf(const Topology& topology) {
  NetworkFigures figures;
  double overhead = 0, latency = 0;
  for (const Topology::Node& node : topology.nodes) {
    overhead = std::max(overhead, node.message_overhead);
  }
  for (const Topology::Link& link : topology.links) {
    latency = std::max(latency, link.latency);
    if (figures.bandwidth == 0 || link.bandwidth < figures.bandwidth) {
      figures.bandwidth = link.bandwidth;
    }
  }
  // Most ways go up to a switch and down from it.
  figures.message_seconds = 2 * (latency + overhead);
  return figures;
}

int HostOf(const Topology& topology, int device) {
  const int host = topology.nodes[static_cast<size_t>(device)].host;
  return host >= 0 ? host : device;
}

absl::StatusOr<Program> PlanQuickly(const CollectiveRequest& request, uint64_t bytes_per_element,
                                    const NetworkFigures& network, absl::Span<const int> hosts) {
  const int workers = static_cast<int>(request.active.size());
  const double bytes = static_cast<double>(request.elements * bytes_per_element);
  const PlannerInfo* first = nullptr;
  const PlannerInfo* best = nullptr;
  double best_seconds = 0;
  bool best_is_short = false;
  for (const PlannerInfo* planner : AllPlanners()) {
    if (planner->collective != request.collective) continue;
    if (first == nullptr) first = planner;
    if (!planner->by_messages) continue;
    const MessageCost cost = planner->by_messages(workers);
    const double seconds =
        cost.rounds * network.message_seconds + cost.sent * bytes / network.bandwidth;
    const bool is_short = IsShort(*planner, workers);
    const bool better =
        best == nullptr || (is_short == best_is_short ? seconds * kAlike < best_seconds : is_short);
    if (!better) continue;
    best = planner;
    best_seconds = seconds;
    best_is_short = is_short;
  }
  if (best == nullptr) best = first;
  if (best == nullptr) {
    return absl::NotFoundError(absl::StrCat("no planner for ", Name(request.collective)));
  }
  PlannerOptions options;
  options.bytes_per_element = bytes_per_element;
  options.order = OrderByHost(request, hosts);
  return best->plan(request, options);
}

}  // namespace syncopate::plan
