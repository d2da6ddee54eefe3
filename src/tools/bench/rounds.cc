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

class Rounds {
 public:
  Rounds(const BenchOptions& options, std::vector<std::unique_ptr<Entrant>> entrants,
         const CallGuess& guess, const RoundsObserver& observer)
      : options_(options),
        entrants_(std::move(entrants)),
        observer_(observer),
        estimate_(options, guess, entrants_.size()) {}

  absl::Status RunAll() {
    for (const uint64_t bytes : options_.sizes) SYNCOPATE_RETURN_IF_ERROR(RunSize(bytes));
    return absl::OkStatus();
  }

 private:
  absl::Status RunSize(uint64_t bytes) {
    std::vector<RunPlan> plans(entrants_.size());
    std::vector<Measurement> measurements(entrants_.size());
    for (size_t i = 0; i < entrants_.size(); ++i) {
      if (entrants_[i] == nullptr) continue;
      measurements[i].contestant = entrants_[i]->name();
      SYNCOPATE_RETURN_IF_ERROR(RunOne(i, Request(bytes, PlanTrial(options_)), 0, measurements[i]));
      // The trial dropped the contestant: it has no samples to plan by.
      if (measurements[i].rounds_us.empty()) continue;
      plans[i] = PlanRound(options_, Quantile(measurements[i].rounds_us[0], 0.5));
      measurements[i].rounds_us.clear();
    }
    for (int round = 0; round < options_.rounds; ++round) {
      for (size_t k = 0; k < entrants_.size(); ++k) {
        // The order is rotated by one in each round.
        const size_t i = (k + static_cast<size_t>(round)) % entrants_.size();
        if (entrants_[i] == nullptr) continue;
        SYNCOPATE_RETURN_IF_ERROR(RunOne(i, Request(bytes, plans[i]), round + 1, measurements[i]));
      }
    }
    // A contestant that left in the middle has no row.
    std::vector<Measurement> complete;
    for (size_t i = 0; i < entrants_.size(); ++i) {
      if (entrants_[i] != nullptr) complete.push_back(std::move(measurements[i]));
    }
    observer_.on_rows(RowsOf(options_, bytes, complete));
    estimate_.NextSize();
    return absl::OkStatus();
  }

  RunRequest Request(uint64_t bytes, const RunPlan& plan) const {
    RunRequest request;
    request.collective = options_.collective;
    request.bytes = bytes;
    request.type = options_.type;
    request.op = options_.op;
    request.check = options_.check;
    request.active = options_.active;
    request.warmup = plan.warmup;
    request.iterations = plan.iterations;
    return request;
  }

  // One run; adds to `measurement`, or drops the contestant.
  absl::Status RunOne(size_t i, const RunRequest& request, int round, Measurement& measurement) {
    observer_.on_progress(request.bytes, round, entrants_[i]->name(), estimate_.Part());
    absl::StatusOr<std::vector<RankResult>> ranks = entrants_[i]->Run(request);
    absl::StatusOr<std::vector<double>> samples =
        ranks.ok() ? OverRanks(request.collective, *ranks) : ranks.status();
    if (!samples.ok()) return Drop(i, request, samples.status());
    estimate_.Ran(i, Quantile(*samples, 0.5) * 1e-6);
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
    estimate_.Left(i);
    const bool nobody = std::all_of(entrants_.begin(), entrants_.end(),
                                    [](const auto& entrant) { return entrant == nullptr; });
    if (name == kOurs || nobody) return placed;
    observer_.on_drop(name, placed);
    return absl::OkStatus();
  }

  const BenchOptions& options_;
  std::vector<std::unique_ptr<Entrant>> entrants_;  // null: it has left
  const RoundsObserver& observer_;
  Estimate estimate_;
};

}  // namespace

absl::Status RunRounds(const BenchOptions& options, std::vector<std::unique_ptr<Entrant>> entrants,
                       const CallGuess& guess, const RoundsObserver& observer) {
  if (entrants.empty()) return absl::InvalidArgumentError("there is no contestant");
  return Rounds(options, std::move(entrants), guess, observer).RunAll();
}

}  // namespace syncopate::tools::bench
