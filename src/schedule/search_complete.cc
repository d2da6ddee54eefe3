// The complete search for models of a few tensors (search_problem.h): depth first, without the
// branches whose bound is no better than the best schedule so far.
#include <algorithm>

#include "schedule/search_problem.h"

namespace syncopate::schedule {
namespace {

class CompleteSearch {
 public:
  CompleteSearch(const SearchProblem& problem, int64_t steps, Transfers& best)
      : problem_(problem), steps_(steps), best_(best), value_(problem.Evaluate(best)) {}

  bool Run() {
    GoOn(problem_.tensors(), {});
    return steps_ >= 0;
  }

 private:
  // All ways to send the tensors below `left` after what was decided.
  void GoOn(int left, const Flights& flights) {
    if (left == 0) {
      const double value = problem_.Finish(flights);
      if (value >= value_) return;
      value_ = value;
      best_ = decided_;
      return;
    }
    const auto ended = [](int, double) {};
    for (int first = left - 1; first >= 0; --first) {
      Flights waiting = flights;
      waiting.AdvanceTo(problem_.costs(), problem_.Ready(first), ended);
      // Beside more than are in flight is the same as beside all of them.
      for (int beside = std::min(waiting.count(), problem_.ways() - 1); beside >= 0; --beside) {
        waiting.AdvanceUntilAtMost(problem_.costs(), beside, ended);
        if (problem_.Bound(waiting, left) >= value_) break;  // waiting longer does not help
        if (--steps_ < 0) return;
        const Transfer transfer{first, left - 1, beside};
        Flights next = waiting;
        next.Start(problem_.costs(), 0, problem_.WorkOf(transfer));
        decided_.push_back(transfer);
        GoOn(first, next);
        decided_.pop_back();
      }
    }
  }

  const SearchProblem& problem_;
  int64_t steps_;
  Transfers& best_;
  double value_;
  Transfers decided_;
};

}  // namespace

bool SearchCompletely(const SearchProblem& problem, int64_t steps, Transfers& transfers) {
  return CompleteSearch(problem, steps, transfers).Run();
}

}  // namespace syncopate::schedule
