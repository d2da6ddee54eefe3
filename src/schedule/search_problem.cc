#include "schedule/search_problem.h"

#include <algorithm>

namespace syncopate::schedule {

SearchProblem::SearchProblem(const TensorTable& table, const cost::CommunicationCosts& costs,
                             const ScheduleOptions& options)
    : costs_(costs), overlap_forward_(options.overlap_forward), ready_(ReadyTimes(table)) {
  ways_ =
      options.ways_max > 0 ? options.ways_max : std::max(2, static_cast<int>(costs.gamma.size()));
  // k transfers at once finish k seconds' work in gamma(k) seconds, so gamma(k) / k is the time for
  // a second's work. The least over k bounds what any schedule can move.
  for (int k = 1; k <= ways_; ++k) best_rate_ = std::min(best_rate_, costs.Gamma(k) / k);
  work_below_.push_back(0);
  forward_below_.push_back(0);
  for (const TensorInfo& tensor : table.tensors) {
    work_below_.push_back(work_below_.back() + costs.b * static_cast<double>(tensor.bytes()));
    forward_below_.push_back(forward_below_.back() + tensor.forward_seconds);
  }
  backward_end_ = ready_[0];
  // Two bounds. Tensor 0 is ready when the backward pass ends, and its transfer then takes at least
  // a + b * bytes. And the work of tensor i and all below it cannot begin to move before a start-up
  // after i is ready; it then moves at the best rate at most.
  bound_ = backward_end_ + costs.a + work_below_[1];
  for (size_t i = 0; i < ready_.size(); ++i) {
    bound_ = std::max(bound_, ready_[i] + costs.a + best_rate_ * work_below_[i + 1]);
  }
}

double SearchProblem::Finish(Flights flights) const {
  flights.AdvanceUntilAtMost(costs_, 0, [](int, double) {});
  return std::max(flights.now(), backward_end_);
}

double SearchProblem::Evaluate(const Transfers& transfers) const {
  Flights flights;
  if (!overlap_forward_) {
    for (const Transfer& transfer : transfers) Handle(transfer, flights);
    return Finish(flights);
  }
  std::vector<double> ends(transfers.size());
  const auto ended = [&](int id, double time) { ends[static_cast<size_t>(id)] = time; };
  for (size_t i = 0; i < transfers.size(); ++i) {
    Handle(transfers[i], static_cast<int>(i), flights, ended);
  }
  flights.AdvanceUntilAtMost(costs_, 0, ended);
  // The next forward pass goes from tensor 0 up, that is, from the last transfer to the first. The
  // layers of each wait for its end only.
  double now = backward_end_;
  for (size_t i = transfers.size(); i-- > 0;) {
    now = std::max(now, ends[i]) + forward_below_[static_cast<size_t>(transfers[i].last + 1)] -
          forward_below_[static_cast<size_t>(transfers[i].first)];
  }
  return now;
}

}  // namespace syncopate::schedule
