#include "tools/bench/estimate.h"

#include <algorithm>
#include <utility>

#include "tools/bench/statistics.h"

namespace syncopate::tools::bench {
namespace {

// Of a call on one machine before anything is known: a small one, and the bytes a second at which
// all workers' data goes through a library, ours and slower ones on average.
constexpr double kSmallCallSeconds = 20e-6;
constexpr double kHostBytesPerSecond = 5e9;
// Filling and comparing the data of checked calls, of all workers together.
constexpr double kCheckBytesPerSecond = 1e9;

}  // namespace

RunPlan PlanTrial(const BenchOptions& options) {
  if (options.iterations) return {.warmup = 0, .iterations = 1};
  return {.warmup = 1, .iterations = 5};
}

RunPlan PlanRound(const BenchOptions& options, double call_us) {
  RunPlan plan;
  plan.iterations = options.iterations.value_or(IterationsFor(call_us));
  plan.warmup = options.warmup.value_or(std::max<int64_t>(1, plan.iterations / 10));
  return plan;
}

CallGuess GuessOnHost(int workers) {
  return [workers](uint64_t bytes) {
    return kSmallCallSeconds + workers * static_cast<double>(bytes) / kHostBytesPerSecond;
  };
}

Estimate::Estimate(const BenchOptions& options, CallGuess guess, size_t contestants)
    : options_(options),
      guess_(std::move(guess)),
      runs_done_(contestants, 0),
      times_guess_(contestants, 1) {}

double Estimate::RunSeconds(size_t contestant, uint64_t bytes, int runs_done) const {
  const double call_seconds = times_guess_[contestant] * guess_(bytes);
  const RunPlan plan =
      runs_done == 0 ? PlanTrial(options_) : PlanRound(options_, call_seconds * 1e6);
  const double checks = static_cast<double>(options_.check);
  return call_seconds * (checks + static_cast<double>(plan.warmup + plan.iterations)) +
         checks * options_.workers * static_cast<double>(bytes) / kCheckBytesPerSecond;
}

void Estimate::Ran(size_t contestant, double call_seconds) {
  const uint64_t bytes = options_.sizes[size_];
  times_guess_[contestant] = call_seconds / guess_(bytes);
  seconds_done_ += RunSeconds(contestant, bytes, runs_done_[contestant]++);
}

void Estimate::NextSize() {
  ++size_;
  for (int& runs : runs_done_) {
    if (runs != kGone) runs = 0;
  }
}

double Estimate::SecondsLeft() const {
  double seconds = 0;
  for (size_t size = size_; size < options_.sizes.size(); ++size) {
    for (size_t i = 0; i < runs_done_.size(); ++i) {
      if (runs_done_[i] == kGone) continue;
      for (int run = size == size_ ? runs_done_[i] : 0; run < options_.rounds + 1; ++run) {
        seconds += RunSeconds(i, options_.sizes[size], run);
      }
    }
  }
  return seconds;
}

double Estimate::Part() {
  const double all = seconds_done_ + SecondsLeft();
  if (all > 0) part_ = std::max(part_, seconds_done_ / all);
  return part_;
}

}  // namespace syncopate::tools::bench
