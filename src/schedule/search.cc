#include "schedule/search.h"

#include <algorithm>
#include <utility>

#include "base/random.h"
#include "schedule/asc_wfbp.h"
#include "schedule/fixed_planners.h"
#include "schedule/mg_wfbp.h"
#include "schedule/search_problem.h"

namespace syncopate::schedule {
namespace {

// The bounds of the search. They count transfers that are played (about 30 ns each), not time, so
// that all workers stop at the same schedule.
constexpr int kBeamWidth = 8;
constexpr int64_t kLocalSteps = 600'000;  // while schedules are improved, all starts together
constexpr size_t kImprovedStarts = 4;
constexpr int kShakes = 40;
constexpr uint64_t kShakeSeed = 1;
// The complete search grows exponentially with the number of tensors.
constexpr int64_t kCompleteSteps = 100'000;
constexpr int kCompleteTensorsMax = 16;

struct Found {
  double value = 0;
  Transfers transfers;

  // The better one is done sooner, or as soon with fewer transfers.
  friend bool operator<(const Found& x, const Found& y) {
    return std::make_pair(x.value, x.transfers.size()) <
           std::make_pair(y.value, y.transfers.size());
  }
};

// The schedules of all other planners, so that the search is never worse than they are; buckets of
// many sizes, each beside 0 to ways - 1 others; and what the beam search finds.
std::vector<Found> Starts(const TensorTable& table, const cost::CommunicationCosts& costs,
                          const ScheduleOptions& options, const SearchProblem& problem) {
  std::vector<Found> starts;
  const auto add = [&](Transfers transfers) {
    starts.push_back({problem.Evaluate(transfers), std::move(transfers)});
  };
  for (const auto plan : {PlanNone, PlanWfbp, PlanMgWfbp, PlanBuckets, PlanAscWfbp}) {
    add(plan(table, costs, options).transfers);
  }
  const uint64_t all = table.bytes();
  for (uint64_t bytes = 64 << 10; bytes < all; bytes *= 2) {
    ScheduleOptions cut;
    cut.bucket_bytes = cut.first_bucket_bytes = bytes;
    Transfers transfers = PlanBuckets(table, costs, cut).transfers;
    for (int beside = 0; beside < problem.ways(); ++beside) {
      for (size_t i = 1; i < transfers.size(); ++i) transfers[i].beside = beside;
      add(transfers);
    }
  }
  add(BeamSearch(problem, kBeamWidth));
  return starts;
}

// Changes a few places at random, to leave a local optimum. The seed is fixed: all workers must
// make the same changes.
void Shake(const SearchProblem& problem, Random& random, Transfers& transfers) {
  constexpr int kPlaces = 3;
  for (int n = 0; n < kPlaces; ++n) {
    const size_t i = random.Below(transfers.size());
    Transfer& here = transfers[i];
    const int beside = static_cast<int>(random.Below(static_cast<uint64_t>(problem.ways())));
    const uint64_t what = random.Below(3);
    if (what == 0 && i > 0) {
      here.beside = beside;
    } else if (what == 1 && i + 1 < transfers.size()) {
      here.first = transfers[i + 1].first;
      transfers.erase(transfers.begin() + static_cast<std::ptrdiff_t>(i + 1));
    } else if (here.tensors() > 1) {
      const int border = static_cast<int>(random.Between(here.first + 1, here.last));
      const Transfer second{here.first, border - 1, beside};
      here.first = border;
      transfers.insert(transfers.begin() + static_cast<std::ptrdiff_t>(i + 1), second);
    }
  }
}

}  // namespace

Schedule PlanBySearch(const TensorTable& table, const cost::CommunicationCosts& costs,
                      const ScheduleOptions& options) {
  const SearchProblem problem(table, costs, options);
  std::vector<Found> starts = Starts(table, costs, options, problem);
  std::stable_sort(starts.begin(), starts.end());
  Found best = starts[0];
  int64_t steps = kLocalSteps;
  const auto improve = [&](Transfers transfers, int64_t share) {
    steps -= share;
    ImproveLocally(problem, share, transfers);
    steps += share;  // what was not used
    Found found{problem.Evaluate(transfers), std::move(transfers)};
    best = std::min(best, std::move(found));
  };
  // The best few starts get equal parts of the steps, and one part is left for shaking. What a
  // start does not use is there for the rest.
  const size_t improved = std::min(kImprovedStarts, starts.size());
  for (size_t i = 0; i < improved; ++i) {
    improve(starts[i].transfers, steps / static_cast<int64_t>(improved - i + 1));
  }
  Random random(kShakeSeed);
  for (int n = 0; n < kShakes && steps > 0 && best.value > problem.Bound(); ++n) {
    Transfers transfers = best.transfers;
    Shake(problem, random, transfers);
    improve(std::move(transfers), steps);
  }
  if (problem.tensors() <= kCompleteTensorsMax && !problem.overlap_forward()) {
    SearchCompletely(problem, kCompleteSteps, best.transfers);
  }
  return {"search", std::move(best.transfers)};
}

double IterationBound(const TensorTable& table, const cost::CommunicationCosts& costs,
                      const ScheduleOptions& options) {
  return table.forward_seconds() + SearchProblem(table, costs, options).Bound();
}

}  // namespace syncopate::schedule
