// Transfers that share a network, in exact time: the core of the timeline model and of the search.
//
// A transfer first starts up for `a` seconds, which nothing slows. Then it moves its work: the
// seconds that its bytes take alone. While k transfers move, each gets its work done at the rate
// 1/gamma(k). So all that move progress alike, and one clock, of the work that each of them would
// have got done, says for all when they are done: a transfer that begins to move when that clock
// shows v ends when it shows v + work.
#ifndef SYNCOPATE_SCHEDULE_FLIGHTS_H_
#define SYNCOPATE_SCHEDULE_FLIGHTS_H_

#include <algorithm>
#include <array>
#include <limits>

#include "base/limits.h"
#include "cost/communication_costs.h"

namespace syncopate::schedule {

// The costs in the form that the model reads most quickly.
struct FlightCosts {
  explicit FlightCosts(const cost::CommunicationCosts& costs)
      : startup(costs.a), seconds_per_byte(costs.b) {
    for (int k = 1; k <= limits::kBesideMax + 1; ++k)
      gamma[static_cast<size_t>(k)] = costs.Gamma(k);
  }

  double startup = 0;
  double seconds_per_byte = 0;
  std::array<double, limits::kBesideMax + 2> gamma{};  // of k at once; gamma[0] is not used
};

// What is in flight at one moment. Cheap to copy while little is in flight. The costs are passed to
// each call, so that a state is plain data.
class Flights {
 public:
  Flights() = default;
  Flights(const Flights& other) { *this = other; }
  Flights& operator=(const Flights& other) {
    now_ = other.now_;
    progress_ = other.progress_;
    moving_ = other.moving_;
    count_ = other.count_;
    std::copy_n(other.flights_.begin(), count_, flights_.begin());
    return *this;
  }

  double now() const { return now_; }
  int count() const { return count_; }  // in flight, starting up or moving

  // The work that is left, and the end of the last start-up (or now).
  double WorkLeft() const {
    double sum = 0;
    for (int i = 0; i < count_; ++i)
      sum += i < moving_ ? flights_[i].at - progress_ : flights_[i].work;
    return sum;
  }
  double LastStartupEnd() const { return moving_ < count_ ? flights_[count_ - 1].at : now_; }

  // Starts transfer `id` now. At most limits::kBesideMax others may be in flight.
  void Start(const FlightCosts& costs, int id, double work) {
    flights_[static_cast<size_t>(count_++)] = {now_ + costs.startup, work, id};
  }

  // Lets time pass until `until`, if that is later than now. `ended(id, time)` is told of each end.
  template <typename Ended>
  void AdvanceTo(const FlightCosts& costs, double until, Ended&& ended) {
    while (count_ > 0) {
      const Next next = FindNext(costs);
      if (next.time > until) break;
      Happen(costs, next, ended);
    }
    if (until > now_) ProgressTo(costs, until);
  }

  // Lets time pass until at most `most` are in flight.
  template <typename Ended>
  void AdvanceUntilAtMost(const FlightCosts& costs, int most, Ended&& ended) {
    while (count_ > most) Happen(costs, FindNext(costs), ended);
  }

 private:
  struct Flight {
    double at = 0;    // moving: what progress_ shows when it ends; starting: when it begins to move
    double work = 0;  // the seconds that its bytes take alone
    int id = 0;
  };
  struct Next {
    double time = 0;
    int ends = -1;  // which of the moving ones, or -1: the first of the starting ones moves
  };

  Next FindNext(const FlightCosts& costs) const {
    Next next{std::numeric_limits<double>::infinity(), -1};
    for (int i = 0; i < moving_; ++i) {
      if (flights_[i].at < next.time) next = {flights_[i].at, i};
    }
    if (next.ends >= 0) {
      const double left = std::max(0.0, next.time - progress_);
      next.time = now_ + left * costs.gamma[static_cast<size_t>(moving_)];
    }
    if (moving_ < count_ && flights_[moving_].at < next.time) next = {flights_[moving_].at, -1};
    return next;
  }

  template <typename Ended>
  void Happen(const FlightCosts& costs, const Next& next, Ended&& ended) {
    if (next.ends < 0) {
      ProgressTo(costs, next.time);
      Flight& flight = flights_[static_cast<size_t>(moving_++)];
      flight.at = progress_ + flight.work;
      return;
    }
    // The clock is set, not advanced, so that rounding leaves no remainder.
    progress_ = flights_[next.ends].at;
    now_ = next.time;
    ended(flights_[next.ends].id, now_);
    flights_[next.ends] = flights_[static_cast<size_t>(--moving_)];
    --count_;
    for (int i = moving_; i < count_; ++i) flights_[i] = flights_[i + 1];
  }

  void ProgressTo(const FlightCosts& costs, double time) {
    if (moving_ > 0) progress_ += (time - now_) / costs.gamma[static_cast<size_t>(moving_)];
    now_ = time;
  }

  double now_ = 0;
  double progress_ = 0;  // the work of a transfer that had moved since the beginning
  int moving_ = 0;  // the first of flights_; those after them start up, in the order of their start
  int count_ = 0;
  std::array<Flight, limits::kBesideMax + 1> flights_;
};

}  // namespace syncopate::schedule

#endif  // SYNCOPATE_SCHEDULE_FLIGHTS_H_
