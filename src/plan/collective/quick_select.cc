#include "plan/collective/quick_select.h"

#include <algorithm>

#include "plan/collective/shared_memory.h"

namespace syncopate::plan {
namespace {

// The largest buffer that is considered when a border is looked for.
constexpr uint64_t kBorderMax = uint64_t{1} << 40;

// The largest number of bytes for which `is_best` holds. Costs of planners differ the more the
// larger the buffer is, so the border can be found by halving.
template <typename IsBest>
uint64_t BorderOf(const IsBest& is_best) {
  uint64_t below = 0;
  uint64_t above = kBorderMax;
  while (above - below > 1) {
    const uint64_t middle = below + (above - below) / 2;
    (is_best(static_cast<double>(middle)) ? below : above) = middle;
  }
  return below;
}

}  // namespace

QuickSelect::QuickSelect(int workers, const HostCosts& costs) {
  const SharedMemory memory = MemoryOfHost(costs, workers);
  std::vector<const PlannerInfo*> in_place[std::size(kCollectives)];
  for (const PlannerInfo* planner : AllPlanners()) {
    const size_t collective = static_cast<size_t>(planner->collective);
    std::vector<Range>& ranges = ranges_[collective];
    if (planner->in_place) in_place[collective].push_back(planner);
    // The first planner of the list is taken unless one is marked for hosts.
    if (ranges.empty() || (planner->for_hosts && !ranges[0].planner->for_hosts)) {
      ranges = {{planner, UINT64_MAX}};
    }
  }
  for (size_t collective = 0; collective < std::size(kCollectives); ++collective) {
    std::vector<const PlannerInfo*>& known = in_place[collective];
    if (known.empty()) continue;
    std::stable_sort(known.begin(), known.end(), [&](const PlannerInfo* a, const PlannerInfo* b) {
      return a->in_place(workers).rounds < b->in_place(workers).rounds;
    });
    ranges_[collective].clear();
    for (size_t i = 0; i < known.size(); ++i) {
      const auto is_best = [&](double bytes) {
        const double mine =
            InPlaceTime(memory, known[i]->in_place(workers), workers, bytes).seconds();
        return std::all_of(
            known.begin() + static_cast<ptrdiff_t>(i) + 1, known.end(),
            [&](const PlannerInfo* other) {
              return mine <=
                     InPlaceTime(memory, other->in_place(workers), workers, bytes).seconds();
            });
      };
      const bool last = i + 1 == known.size();
      const uint64_t border = last ? UINT64_MAX : workers <= 1 ? 0 : BorderOf(is_best);
      ranges_[collective].push_back({known[i], border});
    }
  }
}

absl::string_view QuickSelect::Algorithm(Collective collective, uint64_t bytes) const {
  const std::vector<Range>& ranges = ranges_[static_cast<size_t>(collective)];
  for (const Range& range : ranges) {
    if (bytes <= range.bytes_max) return range.planner->name;
  }
  return "";  // no planner for this collective
}

uint64_t QuickSelect::BytesMax(Collective collective, absl::string_view name) const {
  for (const Range& range : ranges_[static_cast<size_t>(collective)]) {
    if (range.planner->name == name) return range.bytes_max;
  }
  return 0;
}

}  // namespace syncopate::plan
