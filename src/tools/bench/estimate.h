// How long a benchmark takes: before it begins from the sizes, the contestants and the rounds, then
// from what the contestants have shown so far. Pure.
#ifndef SYNCOPATE_TOOLS_BENCH_ESTIMATE_H_
#define SYNCOPATE_TOOLS_BENCH_ESTIMATE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "tools/bench/options.h"

namespace syncopate::tools::bench {

// What a contestant does in a trial or a round, besides its checked calls.
struct RunPlan {
  int64_t warmup = 0;
  int64_t iterations = 0;
};
// The trial is short: it only has to tell the order of magnitude of a call, from which the number of
// calls in a round follows. Where that is given, one call is enough.
RunPlan PlanTrial(const BenchOptions& options);
RunPlan PlanRound(const BenchOptions& options, double call_us);

// Seconds of a call of so many bytes, guessed before anything has run.
using CallGuess = std::function<double(uint64_t bytes)>;
// For the workers of one machine, whose memory all bytes pass several times.
CallGuess GuessOnHost(int workers);

// What is left of a benchmark. A contestant that takes k times the guess at one size is expected to
// take k times the guess at the next.
class Estimate {
 public:
  // The options must outlive it.
  Estimate(const BenchOptions& options, CallGuess guess, size_t contestants);

  // A run of a contestant has ended, its trial or a round; its calls took so long.
  void Ran(size_t contestant, double call_seconds);
  // The contestant has left.
  void Left(size_t contestant) { runs_done_[contestant] = kGone; }
  // The next size begins.
  void NextSize();

  double SecondsLeft() const;
  // The part of the work that is done, 0 to 1; it never falls.
  double Part();

 private:
  static constexpr int kGone = -1;

  // Of the run that follows `runs_done` others at this size.
  double RunSeconds(size_t contestant, uint64_t bytes, int runs_done) const;

  const BenchOptions& options_;
  const CallGuess guess_;
  size_t size_ = 0;                  // in options_.sizes
  std::vector<int> runs_done_;       // by contestant, at this size; kGone: it has left
  std::vector<double> times_guess_;  // by contestant: how many times the guess a call takes
  double seconds_done_ = 0;
  double part_ = 0;
};

}  // namespace syncopate::tools::bench

#endif  // SYNCOPATE_TOOLS_BENCH_ESTIMATE_H_
