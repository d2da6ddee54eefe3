// Contestants alternate within a round, and another one is first in each round, so that a drift of
// the machine's speed meets all of them alike. A trial before the first round tells how many
// iterations a contestant needs for a round of about equal length.
#include "tools/bench/rounds.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/parse.h"
#include "base/status.h"

namespace syncopate::tools::bench {
namespace {

// The trial is short: it only has to tell the order of magnitude of an iteration.
constexpr int64_t kTrialIterations = 5;
constexpr int64_t kTrialWarmup = 1;

class Rounds {
 public:
  Rounds(const BenchOptions& options, std::vector<std::unique_ptr<Entrant>> entrants,
         const RoundsObserver& observer)
      : options_(options), entrants_(std::move(entrants)), observer_(observer) {
    for (const uint64_t bytes : options_.sizes) work_ += WorkOf(bytes);
  }

  absl::Status RunAll() {
    for (const uint64_t bytes : options_.sizes) SYNCOPATE_RETURN_IF_ERROR(RunSize(bytes));
    return absl::OkStatus();
  }

 private:
  struct Plan {
    int64_t warmup = 0;
    int64_t iterations = 0;
  };

  // A guess at how long a size takes, relative to the others, for the display of progress.
  static double WorkOf(uint64_t bytes) { return 1 + static_cast<double>(bytes) / (8 << 20); }

  absl::Status RunSize(uint64_t bytes) {
    std::vector<Plan> plans(entrants_.size());
    std::vector<Measurement> measurements(entrants_.size());
    for (size_t i = 0; i < entrants_.size(); ++i) {
      if (entrants_[i] == nullptr) continue;
      measurements[i].contestant = entrants_[i]->name();
      RunRequest trial = Request(bytes);
      trial.warmup = kTrialWarmup;
      trial.iterations = kTrialIterations;
      SYNCOPATE_RETURN_IF_ERROR(RunOne(i, trial, 0, measurements[i]));
      // The trial dropped the contestant: it has no samples to plan by.
      if (measurements[i].rounds_us.empty()) continue;
      plans[i] = PlanFor(Quantile(measurements[i].rounds_us[0], 0.5));
      measurements[i].rounds_us.clear();
    }
    for (int round = 0; round < options_.rounds; ++round) {
      for (size_t k = 0; k < entrants_.size(); ++k) {
        // The order is rotated by one in each round.
        const size_t i = (k + static_cast<size_t>(round)) % entrants_.size();
        if (entrants_[i] == nullptr) continue;
        RunRequest request = Request(bytes);
        request.warmup = plans[i].warmup;
        request.iterations = plans[i].iterations;
        SYNCOPATE_RETURN_IF_ERROR(RunOne(i, request, round + 1, measurements[i]));
      }
    }
    // A contestant that left in the middle has no row.
    std::vector<Measurement> complete;
    for (size_t i = 0; i < entrants_.size(); ++i) {
      if (entrants_[i] != nullptr) complete.push_back(std::move(measurements[i]));
    }
    observer_.on_rows(RowsOf(options_, bytes, complete));
    work_done_ += WorkOf(bytes);
    return absl::OkStatus();
  }

  RunRequest Request(uint64_t bytes) const {
    RunRequest request;
    request.collective = options_.collective;
    request.bytes = bytes;
    request.type = options_.type;
    request.op = options_.op;
    request.check = options_.check;
    request.active = options_.active;
    return request;
  }

  Plan PlanFor(double iteration_us) const {
    Plan plan;
    plan.iterations = options_.iterations.value_or(IterationsFor(iteration_us));
    plan.warmup = options_.warmup.value_or(std::max<int64_t>(1, plan.iterations / 10));
    return plan;
  }

  // One run; adds to `measurement`, or drops the contestant.
  absl::Status RunOne(size_t i, const RunRequest& request, int round, Measurement& measurement) {
    const double steps = static_cast<double>(options_.rounds + 1);
    const double here = static_cast<double>(round) / steps * WorkOf(request.bytes);
    observer_.on_progress(request.bytes, round, entrants_[i]->name(), (work_done_ + here) / work_);
    absl::StatusOr<std::vector<RankResult>> ranks = entrants_[i]->Run(request);
    absl::StatusOr<std::vector<double>> samples =
        ranks.ok() ? OverRanks(request.collective, *ranks) : ranks.status();
    if (!samples.ok()) return Drop(i, request, samples.status());
    measurement.rounds_us.push_back(*std::move(samples));
    for (const RankResult& rank : *ranks) measurement.wrong += rank.wrong;
    return absl::OkStatus();
  }

  // A peer that fails must not end the benchmark of the others. An interrupt ends it, and so does a
  // failure of our own contestant or of the last one that is left.
  absl::Status Drop(size_t i, const RunRequest& request, const absl::Status& why) {
    if (absl::IsCancelled(why)) return why;
    const std::string name = entrants_[i]->name();
    const absl::Status placed = At(absl::StrCat(name, " at ", FormatBytes(request.bytes)), why);
    entrants_[i] = nullptr;
    const bool nobody = std::all_of(entrants_.begin(), entrants_.end(),
                                    [](const auto& entrant) { return entrant == nullptr; });
    if (name == kOurs || nobody) return placed;
    observer_.on_drop(name, placed);
    return absl::OkStatus();
  }

  const BenchOptions& options_;
  std::vector<std::unique_ptr<Entrant>> entrants_;  // null: it has left
  const RoundsObserver& observer_;
  double work_ = 0;
  double work_done_ = 0;
};

}  // namespace

absl::Status RunRounds(const BenchOptions& options, std::vector<std::unique_ptr<Entrant>> entrants,
                       const RoundsObserver& observer) {
  if (entrants.empty()) return absl::InvalidArgumentError("there is no contestant");
  return Rounds(options, std::move(entrants), observer).RunAll();
}

}  // namespace syncopate::tools::bench
