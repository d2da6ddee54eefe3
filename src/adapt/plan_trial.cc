#include "adapt/plan_trial.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/median.h"

namespace syncopate::adapt {

const std::vector<PlanTrial::Turn>& PlanTrial::Turns() {
  static const auto* const kTurns = new std::vector<Turn>{
      {Plan::kNew, 0, false},    {Plan::kOld, kUsual, false}, {Plan::kNew, kTurn, true},
      {Plan::kOld, kTurn, true}, {Plan::kOld, kTurn, true},   {Plan::kNew, kTurn, true},
  };
  return *kTurns;
}

double PlanTrial::Usual() const {
  const std::vector<double>& known = old_.empty() ? usual_ : old_;
  return known.empty() ? 0 : MedianOf(known);
}

void PlanTrial::Iteration(Plan had, std::optional<double> seconds) {
  if (over_) return;
  const Turn& turn = Turns()[turn_];
  if (had != turn.plan || (!seconds && !changing_)) {
    if (++waited_ > kChangeMost) {
      Stop(absl::StrCat(kChangeMost, " iterations of a turn say nothing"));
    }
    return;
  }
  if (std::exchange(changing_, false)) {
    if (turn.iterations == 0) NextTurn();
    return;
  }
  if (turn.counts) {
    (turn.plan == Plan::kNew ? new_ : old_).push_back(*seconds);
  } else {
    usual_.push_back(*seconds);
  }
  const bool far_off = turn.plan == Plan::kNew && Usual() > 0 && *seconds >= kFarOff * Usual();
  if (++seen_ >= turn.iterations || far_off) NextTurn();
}

void PlanTrial::NextTurn() {
  const Plan before = Turns()[turn_].plan;
  if (++turn_ == Turns().size()) return Decide();
  seen_ = waited_ = 0;
  wanted_ = Turns()[turn_].plan;
  changing_ = wanted_ != before;
}

void PlanTrial::Decide() {
  over_ = true;
  outcome_.old_seconds = MedianOf(old_);
  outcome_.new_seconds = MedianOf(new_);
  outcome_.old_iterations = static_cast<int>(old_.size());
  outcome_.new_iterations = static_cast<int>(new_.size());
  const bool better = outcome_.new_seconds < (1 - kBetterBy) * outcome_.old_seconds;
  wanted_ = better ? Plan::kNew : Plan::kOld;
  outcome_.why =
      absl::StrFormat("%.3g ms an iteration instead of %.3g ms: %s", outcome_.new_seconds * 1e3,
                      outcome_.old_seconds * 1e3, better ? "it stays" : "the one before stays");
}

void PlanTrial::Stop(std::string why) {
  if (over_) return;
  over_ = true;
  wanted_ = Plan::kOld;
  outcome_.why = absl::StrCat(why, ": the one before stays");
}

}  // namespace syncopate::adapt
