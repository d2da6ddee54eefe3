// What the parts of the search share: one planning problem, prepared, and what schedules take in
// it.
#ifndef SYNCOPATE_SCHEDULE_SEARCH_PROBLEM_H_
#define SYNCOPATE_SCHEDULE_SEARCH_PROBLEM_H_

#include <cstdint>
#include <vector>

#include "model/schedule.h"
#include "schedule/flights.h"
#include "schedule/planners.h"

namespace syncopate::schedule {

// Transfers in order, as in Schedule.
using Transfers = std::vector<Transfer>;

// Times count from the beginning of the backward pass.
class SearchProblem {
 public:
  SearchProblem(const TensorTable& table, const cost::CommunicationCosts& costs,
                const ScheduleOptions& options);

  int tensors() const { return static_cast<int>(ready_.size()); }
  int ways() const { return ways_; }
  bool overlap_forward() const { return overlap_forward_; }
  const FlightCosts& costs() const { return costs_; }
  double best_rate() const { return best_rate_; }
  double Ready(int tensor) const { return ready_[static_cast<size_t>(tensor)]; }
  // The work of the tensors below `end`, and that of a transfer: the seconds that the bytes take
  // without contention.
  double WorkBelow(int end) const { return work_below_[static_cast<size_t>(end)]; }
  double WorkOf(const Transfer& transfer) const {
    return WorkBelow(transfer.last + 1) - WorkBelow(transfer.first);
  }

  // Lets time pass in `flights` until `transfer` may start, and starts it.
  template <typename Ended>
  void Handle(const Transfer& transfer, int id, Flights& flights, Ended&& ended) const {
    flights.AdvanceTo(costs_, Ready(transfer.first), ended);
    flights.AdvanceUntilAtMost(costs_, transfer.beside, ended);
    flights.Start(costs_, id, WorkOf(transfer));
  }
  void Handle(const Transfer& transfer, Flights& flights) const {
    Handle(transfer, 0, flights, [](int, double) {});
  }

  // When everything in flight is done and the backward pass over.
  double Finish(Flights flights) const;
  // No schedule that goes on from `flights` with the tensors below `left` finishes before this.
  double Bound(const Flights& flights, int left) const {
    const double moved = flights.now() + best_rate_ * (flights.WorkLeft() + WorkBelow(left));
    return std::max(moved, bound_);
  }
  // No schedule at all finishes before this.
  double Bound() const { return bound_; }

  // What is to be least: the end of the iteration, or with overlap_forward the period. Both after
  // the beginning of the backward pass.
  double Evaluate(const Transfers& transfers) const;

 private:
  const FlightCosts costs_;
  const bool overlap_forward_;
  int ways_ = 1;
  double best_rate_ = 1;  // least gamma(k)/k: seconds in which a second's work is moved at best
  double backward_end_ = 0;
  double bound_ = 0;
  std::vector<double> ready_;
  std::vector<double> work_below_;
  std::vector<double> forward_below_;  // seconds of the forwards below a tensor
};

// A beam over the tensors: at each, the most promising states that were reached go on with runs of
// many lengths, beside 0 to ways-1 others.
Transfers BeamSearch(const SearchProblem& problem, int width);

// Changes one place after the other (merge, split, move a border, other `beside`) while that helps,
// or saves a transfer at no cost. Uses up to `steps` transfers played, and takes them off.
void ImproveLocally(const SearchProblem& problem, int64_t& steps, Transfers& transfers);

// All schedules, by branch and bound. False if `steps` were not enough; `transfers` is then the
// best that was met. Not for overlap_forward.
bool SearchCompletely(const SearchProblem& problem, int64_t steps, Transfers& transfers);

}  // namespace syncopate::schedule

#endif  // SYNCOPATE_SCHEDULE_SEARCH_PROBLEM_H_
