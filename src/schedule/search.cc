#include "schedule/search.h"

#include <algorithm>
#include <utility>

#include "schedule/asc_wfbp.h"
#include "schedule/fixed_planners.h"
#include "schedule/mg_wfbp.h"
#include "schedule/search_problem.h"

namespace syncopate {
namespace {

constexpr int kBeamWidth = 8;
// Transfers played while a schedule is improved; about 30 ns each.
constexpr int64_t kLocalSteps = 400'000;
constexpr size_t kImprovedStarts = 3;
constexpr int64_t kCompleteSteps = 100'000;
constexpr int kCompleteTensorsMax = 16;

struct Found {
  double value = 0;
  Transfers transfers;

  // Sooner done, else fewer transfers.
  friend bool operator<(const Found& x, const Found& y) {
    return std::make_pair(x.value, x.transfers.size()) <
           std::make_pair(y.value, y.transfers.size());
  }
};

// Everything that the others would do, and buckets of many sizes beside as many as are allowed.
std::vector<Found> Starts(const TensorTable& table, const CommunicationCosts& costs,
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

}  // namespace

Schedule PlanBySearch(const TensorTable& table, const CommunicationCosts& costs,
                      const ScheduleOptions& options) {
  const SearchProblem problem(table, costs, options);
  std::vector<Found> starts = Starts(table, costs, options, problem);
  std::stable_sort(starts.begin(), starts.end());
  Found best = starts[0];
  int64_t steps = kLocalSteps;
  for (size_t i = 0; i < std::min(kImprovedStarts, starts.size()); ++i) {
    int64_t share = steps / static_cast<int64_t>(kImprovedStarts - i);
    steps -= share;
    Transfers transfers = starts[i].transfers;
    ImproveLocally(problem, share, transfers);
    steps += share;
    best = std::min(best, Found{problem.Evaluate(transfers), transfers});
  }
  if (problem.tensors() <= kCompleteTensorsMax && !problem.overlap_forward()) {
    SearchCompletely(problem, kCompleteSteps, best.transfers);
  }
  return {"search", std::move(best.transfers)};
}

}  // namespace syncopate
