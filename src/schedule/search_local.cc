// Local improvement of a schedule (search_problem.h).
//
// The states before each transfer are kept, so that a change at transfer i is played from i on and
// given up as soon as it is seen to be no better.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "absl/types/span.h"
#include "schedule/search_problem.h"

namespace syncopate::schedule {
namespace {

constexpr double kNoBetter = std::numeric_limits<double>::infinity();

class LocalSearch {
 public:
  LocalSearch(const SearchProblem& problem, int64_t& steps, Transfers& transfers)
      : problem_(problem), steps_(steps), transfers_(transfers) {
    Play(0);
    value_ = problem_.Evaluate(transfers_);
  }

  void Run() {
    bool changed = true;
    while (changed && steps_ > 0) {
      changed = false;
      for (size_t i = 0; i < transfers_.size() && steps_ > 0; ++i) {
        while (steps_ > 0 && ChangeAt(i)) changed = true;
      }
    }
  }

 private:
  // One change that helps at transfer i, if there is one.
  bool ChangeAt(size_t i) {
    // A single transfer at the bound can be neither quicker nor fewer.
    if (value_ <= problem_.Bound() && transfers_.size() == 1) return false;
    return OtherBeside(i) || Merge(i) || MoveBorder(i) || Split(i);
  }

  bool OtherBeside(size_t i) {
    if (i == 0) return false;
    Transfer other = transfers_[i];
    for (int beside = 0; beside < problem_.ways(); ++beside) {
      other.beside = beside;
      if (beside != transfers_[i].beside && Replace(i, 1, {other})) return true;
    }
    return false;
  }

  bool Merge(size_t i) {
    if (i + 1 == transfers_.size()) return false;
    const Transfer& next = transfers_[i + 1];
    Transfer merged{next.first, transfers_[i].last, transfers_[i].beside};
    if (Replace(i, 2, {merged})) return true;
    if (i == 0 || next.beside == merged.beside) return false;
    merged.beside = next.beside;
    return Replace(i, 2, {merged});
  }

  bool MoveBorder(size_t i) {
    if (i + 1 == transfers_.size()) return false;
    const Transfer here = transfers_[i];
    const Transfer next = transfers_[i + 1];
    // Tensors move from this transfer to the next, then from the next to this one, in steps that
    // double: a border far off is found in few trials, and small steps refine it later.
    for (int by = 1; by < here.tensors(); by *= 2) {
      if (Replace(i, 2,
                  {{here.first + by, here.last, here.beside},
                   {next.first, next.last + by, next.beside}})) {
        return true;
      }
    }
    for (int by = 1; by < next.tensors(); by *= 2) {
      if (Replace(i, 2,
                  {{here.first - by, here.last, here.beside},
                   {next.first, next.last - by, next.beside}})) {
        return true;
      }
    }
    return false;
  }

  bool Split(size_t i) {
    const Transfer here = transfers_[i];
    for (int upper = 1; upper < here.tensors(); upper *= 2) {
      if (SplitAt(i, here.last - upper + 1)) return true;
      if (SplitAt(i, here.first + upper)) return true;
    }
    return false;
  }

  // `border` becomes the first tensor of the transfer that is sent first.
  bool SplitAt(size_t i, int border) {
    const Transfer here = transfers_[i];
    for (const int beside : {here.beside, problem_.ways() - 1}) {
      if (Replace(i, 1, {{border, here.last, here.beside}, {here.first, border - 1, beside}})) {
        return true;
      }
    }
    return false;
  }

  // Puts `with` in the place of `count` transfers from i on if that is better: sooner done, or as
  // soon with fewer transfers.
  bool Replace(size_t i, size_t count, std::initializer_list<Transfer> with) {
    const double value = Try(i, count, with);
    // Values that differ by less than the slack count as equal: the difference is rounding.
    const double slack = 1e-12 * value_;
    if (value > value_ + slack) return false;
    if (value >= value_ - slack && with.size() >= count) return false;
    const auto place = transfers_.begin() + static_cast<std::ptrdiff_t>(i);
    transfers_.insert(transfers_.erase(place, place + static_cast<std::ptrdiff_t>(count)), with);
    value_ = value;
    Play(i);
    return true;
  }

  // The value of the schedule after the change, or kNoBetter once it is certain to be worse.
  double Try(size_t i, size_t count, absl::Span<const Transfer> with) {
    // With overlap_forward the value depends on when each transfer ends, so all are played again.
    if (problem_.overlap_forward()) {
      steps_ -= static_cast<int64_t>(transfers_.size());
      Transfers changed(transfers_.begin(), transfers_.begin() + static_cast<std::ptrdiff_t>(i));
      changed.insert(changed.end(), with.begin(), with.end());
      changed.insert(changed.end(), transfers_.begin() + static_cast<std::ptrdiff_t>(i + count),
                     transfers_.end());
      return problem_.Evaluate(changed);
    }
    Flights flights = states_[i];
    for (const Transfer& transfer : with) problem_.Handle(transfer, flights);
    steps_ -= static_cast<int64_t>(with.size());
    for (size_t j = i + count; j < transfers_.size(); ++j) {
      if (problem_.Bound(flights, transfers_[j].last + 1) > value_) return kNoBetter;
      // From a state that was there before the change, everything goes on as before.
      if (SameAs(states_[j], flights)) return value_;
      problem_.Handle(transfers_[j], flights);
      --steps_;
    }
    return problem_.Finish(flights);
  }

  // Only states with one transfer in flight are compared: they are described by these few numbers.
  static bool SameAs(const Flights& x, const Flights& y) {
    return x.now() == y.now() && x.count() == y.count() && x.count() == 1 &&
           x.WorkLeft() == y.WorkLeft() && x.LastStartupEnd() == y.LastStartupEnd();
  }

  // Sets the states from transfer i on.
  void Play(size_t i) {
    states_.resize(transfers_.size() + 1);
    for (; i < transfers_.size(); ++i) {
      states_[i + 1] = states_[i];
      problem_.Handle(transfers_[i], states_[i + 1]);
      --steps_;
    }
  }

  const SearchProblem& problem_;
  int64_t& steps_;
  Transfers& transfers_;
  std::vector<Flights> states_;  // before each transfer is handled, and after the last
  double value_ = 0;
};

}  // namespace

void ImproveLocally(const SearchProblem& problem, int64_t& steps, Transfers& transfers) {
  LocalSearch(problem, steps, transfers).Run();
}

}  // namespace syncopate::schedule
