// The beam search over k-way schedules (search_problem.h).
//
// The tensors are sent from the last to the first, so a partial schedule is described by how many
// tensors are left and what is in flight. For each number of tensors left the `width` states with
// the best promise are kept.
#include <algorithm>
#include <vector>

#include "schedule/search_problem.h"

namespace syncopate::schedule {
namespace {

class Beam {
 public:
  Beam(const SearchProblem& problem, int width)
      : problem_(problem),
        width_(static_cast<size_t>(width)),
        reached_(static_cast<size_t>(problem.tensors()) + 1) {}

  Transfers Search() {
    reached_[static_cast<size_t>(problem_.tensors())].push_back({});
    for (int left = problem_.tensors(); left > 0; --left) {
      // Expanding reaches only states with fewer tensors left, so this list does not change.
      for (const State& state : reached_[static_cast<size_t>(left)]) Expand(left, state);
    }
    const std::vector<State>& ends = reached_[0];
    const auto best =
        std::min_element(ends.begin(), ends.end(), [&](const State& x, const State& y) {
          return problem_.Finish(x.flights) < problem_.Finish(y.flights);
        });
    Transfers transfers;
    for (int i = best->decided; i >= 0; i = decisions_[static_cast<size_t>(i)].before) {
      transfers.push_back(decisions_[static_cast<size_t>(i)].transfer);
    }
    std::reverse(transfers.begin(), transfers.end());
    return transfers;
  }

 private:
  // A transfer and the decision before it. States share the decisions that they have in common.
  struct Decision {
    int before = -1;
    Transfer transfer;
  };
  struct State {
    double promise = 0;  // estimated end of what was decided so far; less is better
    int decided = -1;    // index of the last of its decisions; -1: none
    Flights flights;
  };

  void Expand(int left, const State& state) {
    // Runs that are 1, 2, 3, 4, 6, 9, ... tensors long.
    for (int length = 1; length < left; length += (length + 1) / 2) Try(left - length, left, state);
    Try(0, left, state);
    // Runs that hold all that is ready at a moment when there is room for a transfer: sending
    // less would cost another start-up, and waiting for more would delay what is ready.
    Flights flights = state.flights;
    int last_first = 0;
    for (int most = std::min(problem_.ways() - 1, flights.count()); most >= 0; --most) {
      flights.AdvanceUntilAtMost(problem_.costs(), most, [](int, double) {});
      const int first = FirstReadyBy(flights.now(), left);
      if (first < left && first != last_first) Try(first, left, state);
      last_first = first;
    }
  }

  // The least of the tensors below `left` that is ready at `time`; `left` if none is.
  int FirstReadyBy(double time, int left) const {
    int low = 0;
    int high = left;  // ready times fall with the index
    while (low < high) {
      const int middle = (low + high) / 2;
      if (problem_.Ready(middle) <= time) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  // Tries the run first..left-1, beside as many transfers as are in flight and then fewer.
  void Try(int first, int left, const State& state) {
    const FlightCosts& costs = problem_.costs();
    const auto ended = [](int, double) {};
    Flights waiting = state.flights;
    waiting.AdvanceTo(costs, problem_.Ready(first), ended);
    Transfer transfer{first, left - 1, 0};
    const double work = problem_.WorkOf(transfer);
    for (int beside = std::min(waiting.count(), problem_.ways() - 1); beside >= 0; --beside) {
      waiting.AdvanceUntilAtMost(costs, beside, ended);
      transfer.beside = beside;
      // The promise is a bound: all work in flight at the best rate there is, and at least the
      // start-up of the new transfer.
      const double moved = waiting.now() + (waiting.WorkLeft() + work) * best_rate();
      Keep(first, std::max(moved, waiting.now() + costs.startup), waiting, work, transfer,
           state.decided);
    }
  }

  double best_rate() const { return problem_.best_rate(); }

  void Keep(int left, double promise, const Flights& flights, double work, const Transfer& transfer,
            int before) {
    std::vector<State>& states = reached_[static_cast<size_t>(left)];
    size_t place = states.size();
    if (states.size() == width_) {
      const auto worst =
          std::max_element(states.begin(), states.end(),
                           [](const State& x, const State& y) { return x.promise < y.promise; });
      if (worst->promise <= promise) return;
      place = static_cast<size_t>(worst - states.begin());
    } else {
      states.emplace_back();
    }
    decisions_.push_back({before, transfer});
    State& state = states[place];
    state.promise = promise;
    state.decided = static_cast<int>(decisions_.size()) - 1;
    state.flights = flights;
    state.flights.Start(problem_.costs(), 0, work);
  }

  const SearchProblem& problem_;
  const size_t width_;
  std::vector<std::vector<State>> reached_;  // by tensors left
  std::vector<Decision> decisions_;
};

}  // namespace

Transfers BeamSearch(const SearchProblem& problem, int width) {
  return Beam(problem, width).Search();
}

}  // namespace syncopate::schedule
