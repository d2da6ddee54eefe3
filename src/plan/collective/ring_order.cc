// In which order a ring should pass its workers.
#include "plan/collective/ring_order.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "base/random.h"
#include "base/status.h"
#include "plan/collective/locality.h"
#include "plan/collective/route_loads.h"

namespace syncopate::plan {
namespace {

// Orders whose times differ by less are alike: the one found first stays.
constexpr double kAlike = 1 + 1e-9;
// An order must be better than the known ones by this factor to be worth a variant of its own.
constexpr double kWorthwhile = 1.001;
// For more workers the best order is not looked for: a ring's program is too large anyway.
constexpr size_t kBestOrderWorkersMax = 128;
// How many loads the local search may change in all. It bounds the time to some tens of
// milliseconds, and unlike a clock it is the same for everybody.
constexpr int64_t kWorkMax = 4'000'000;
constexpr int kRestarts = 8;

using Order = std::vector<int>;  // indices of active workers

// The load of every resource while a ring is changed edge by edge.
class RingLoads {
 public:
  explicit RingLoads(const RouteLoads& routes) : routes_(routes), edges_(routes.resources(), 0) {}

  void Add(int from, int to) { Change(from, to, 1); }
  void Remove(int from, int to) { Change(from, to, -1); }
  void Set(const Order& order) {
    std::fill(edges_.begin(), edges_.end(), 0);
    for (size_t i = 0; i < order.size(); ++i) Add(order[i], order[(i + 1) % order.size()]);
  }

  double Worst() const {
    double worst = 0;
    for (size_t i = 0; i < edges_.size(); ++i)
      worst = std::max(worst, Seconds(static_cast<int>(i)));
    return worst;
  }
  // The worst of what an edge loads.
  double WorstOf(int from, int to) const {
    double worst = 0;
    for (const int resource : Route(from, to)) worst = std::max(worst, Seconds(resource));
    return worst;
  }
  int64_t work() const { return work_; }

  // For the local search: a sum over all resources in which the worst count by far the most. The
  // maximum itself says too little, because most changes leave it as it is. Loads are taken as
  // multiples of `unit` seconds.
  void SetUnit(double unit) {
    unit_ = unit;
    badness_ = 0;
    for (size_t i = 0; i < edges_.size(); ++i) badness_ += Bad(static_cast<int>(i));
  }
  double badness() const { return badness_; }

 private:
  const std::vector<int>& Route(int from, int to) const {
    return routes_.Between(static_cast<size_t>(from), static_cast<size_t>(to));
  }
  double Seconds(int resource) const {
    return edges_[static_cast<size_t>(resource)] * routes_.seconds_per_byte(resource);
  }
  double Bad(int resource) const {
    const double x = Seconds(resource) / unit_;
    const double x4 = x * x * x * x;
    return x4 * x4 * x4;
  }
  void Change(int from, int to, int by) {
    for (const int resource : Route(from, to)) {
      badness_ -= Bad(resource);
      edges_[static_cast<size_t>(resource)] += by;
      badness_ += Bad(resource);
      ++work_;
    }
  }

  const RouteLoads& routes_;
  std::vector<int> edges_;  // by resource: how many edges of the ring use it
  double unit_ = 1;
  double badness_ = 0;
  int64_t work_ = 0;
};

// Improves orders by reversing parts of them and by moving single workers.
class LocalSearch {
 public:
  explicit LocalSearch(const RouteLoads& routes) : loads_(routes) {}

  // The best of the orders that it meets.
  Order Run(Order order) {
    Consider(order);
    Improve(order);
    Random random(order.size());
    for (int restart = 0; restart < kRestarts && loads_.work() < kWorkMax; ++restart) {
      order = best_;
      for (int i = 0; i < 4; ++i) {
        std::swap(order[1 + random.Below(order.size() - 1)],
                  order[1 + random.Below(order.size() - 1)]);
      }
      Improve(order);
    }
    return best_;
  }

 private:
  void Consider(const Order& order) {
    loads_.Set(order);
    const double worst = loads_.Worst();
    if (!best_.empty() && worst * kAlike >= best_worst_) return;
    best_ = order;
    best_worst_ = worst;
  }

  // Changes the order until no change makes it better, or the limit of trials is reached.
  void Improve(Order& order) {
    bool improved = true;
    while (improved && loads_.work() < kWorkMax) {
      loads_.Set(order);
      const double worst = loads_.Worst();
      if (worst == 0) return;
      loads_.SetUnit(worst);
      improved = false;
      for (size_t i = 1; i < order.size() && loads_.work() < kWorkMax; ++i) {
        for (size_t j = 1; j < order.size(); ++j) {
          if (i < j) improved |= TryReverse(order, i, j);
          if (i != j) improved |= TryMove(order, i, j);
        }
      }
      Consider(order);
    }
  }

  // Replaces the positions [begin, end] of `order` by `part` if that is better.
  bool TryReplace(Order& order, size_t begin, size_t end, const Order& part) {
    const double before = loads_.badness();
    const size_t size = order.size();
    const int first = order[begin - 1];
    const int last = order[(end + 1) % size];
    const Order old(order.begin() + static_cast<ptrdiff_t>(begin),
                    order.begin() + static_cast<ptrdiff_t>(end) + 1);
    Exchange(first, old, part, last);
    if (loads_.badness() < before * (1 - 1e-9)) {
      std::copy(part.begin(), part.end(), order.begin() + static_cast<ptrdiff_t>(begin));
      return true;
    }
    Exchange(first, part, old, last);
    return false;
  }
  void Exchange(int first, const Order& old, const Order& part, int last) {
    int at = first;
    for (const int worker : old) {
      loads_.Remove(at, worker);
      at = worker;
    }
    loads_.Remove(at, last);
    at = first;
    for (const int worker : part) {
      loads_.Add(at, worker);
      at = worker;
    }
    loads_.Add(at, last);
  }

  bool TryReverse(Order& order, size_t i, size_t j) {
    Order part(order.begin() + static_cast<ptrdiff_t>(i),
               order.begin() + static_cast<ptrdiff_t>(j) + 1);
    std::reverse(part.begin(), part.end());
    return TryReplace(order, i, j, part);
  }
  bool TryMove(Order& order, size_t from, size_t to) {
    const size_t begin = std::min(from, to), end = std::max(from, to);
    Order part(order.begin() + static_cast<ptrdiff_t>(begin),
               order.begin() + static_cast<ptrdiff_t>(end) + 1);
    if (from < to) {
      std::rotate(part.begin(), part.begin() + 1, part.end());
    } else {
      std::rotate(part.begin(), part.end() - 1, part.end());
    }
    return TryReplace(order, begin, end, part);
  }

  RingLoads loads_;
  Order best_;
  double best_worst_ = 0;
};

// Tries all orders, and gives up a partial order once it is no better than the best one known.
class ExactSearch {
 public:
  explicit ExactSearch(const RouteLoads& routes) : loads_(routes) {}

  Order Run(const Order& known) {
    loads_.Set(known);
    best_ = known;
    best_worst_ = loads_.Worst();
    loads_.Set({});
    Order order(known.size());
    std::iota(order.begin(), order.end(), 0);
    Place(order, 1, 0);
    return best_;
  }

 private:
  // Tries all orders of what follows the first `placed` positions, whose worst load is `worst`.
  void Place(Order& order, size_t placed, double worst) {
    const int from = order[placed - 1];
    const bool closing = placed == order.size();
    const size_t end = closing ? placed + 1 : order.size();
    for (size_t i = placed; i < end; ++i) {
      const int to = closing ? order[0] : order[i];
      loads_.Add(from, to);
      const double now = std::max(worst, loads_.WorstOf(from, to));
      if (now * kAlike < best_worst_) {
        if (closing) {
          best_ = order;
          best_worst_ = now;
        } else {
          std::swap(order[placed], order[i]);
          Place(order, placed + 1, now);
          std::swap(order[placed], order[i]);
        }
      }
      loads_.Remove(from, to);
    }
  }

  RingLoads loads_;
  Order best_;
  double best_worst_ = 0;
};

}  // namespace

absl::StatusOr<double> RingSecondsPerByte(const Topology& topology, absl::Span<const int> placement,
                                          absl::Span<const int> order) {
  SYNCOPATE_ASSIGN_OR_RETURN(const RouteLoads routes, RouteLoads::Of(topology, placement, order));
  RingLoads loads(routes);
  Order indices(order.size());
  std::iota(indices.begin(), indices.end(), 0);
  loads.Set(indices);
  return loads.Worst();
}

absl::StatusOr<std::vector<int>> BestRingOrder(const Topology& topology,
                                               absl::Span<const int> placement,
                                               absl::Span<const int> active) {
  std::vector<int> by_place = OrderByPlace(topology, placement, active);
  if (active.size() <= 2) return by_place;
  SYNCOPATE_ASSIGN_OR_RETURN(const RouteLoads routes, RouteLoads::Of(topology, placement, active));
  Order order;
  for (const int worker : by_place) {
    order.push_back(
        static_cast<int>(std::find(active.begin(), active.end(), worker) - active.begin()));
  }
  std::rotate(order.begin(), std::find(order.begin(), order.end(), 0), order.end());
  order = LocalSearch(routes).Run(std::move(order));
  if (active.size() <= kExactRingWorkersMax) order = ExactSearch(routes).Run(order);
  std::vector<int> ranks;
  for (const int index : order) ranks.push_back(active[static_cast<size_t>(index)]);
  return ranks;
}

absl::StatusOr<std::optional<std::vector<int>>> BetterRingOrder(
    const Topology& topology, absl::Span<const int> placement, absl::Span<const int> active,
    const std::vector<std::vector<int>>& known) {
  if (active.size() > kBestOrderWorkersMax) return std::nullopt;
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<int> best, BestRingOrder(topology, placement, active));
  SYNCOPATE_ASSIGN_OR_RETURN(const double seconds, RingSecondsPerByte(topology, placement, best));
  for (const std::vector<int>& order : known) {
    SYNCOPATE_ASSIGN_OR_RETURN(const double before, RingSecondsPerByte(topology, placement, order));
    if (seconds * kWorthwhile >= before) return std::nullopt;
  }
  return best;
}

}  // namespace syncopate::plan
