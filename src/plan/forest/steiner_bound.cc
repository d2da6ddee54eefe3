// What a Steiner tree must cost at least: a quick bound, and the exact value for few terminals.
#include <algorithm>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "plan/forest/shortest_paths.h"
#include "plan/forest/steiner.h"

namespace syncopate::plan {
namespace {

// The terminals, each once and without the root.
std::vector<int> Distinct(int root, absl::Span<const int> terminals) {
  std::vector<int> distinct(terminals.begin(), terminals.end());
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  std::erase(distinct, root);
  return distinct;
}

// Wong's dual ascent. Every set of workers that holds a terminal but not the root needs an edge
// into it; the sets are given prices such that no edge costs less than the sets that it enters. The
// sum of the prices is then a bound. The set to raise next is all that reaches some terminal over
// edges without slack: the smallest such set, as a small one has few edges to use up.
class DualAscent {
 public:
  // `cuts`: where to note the sets and their prices; may be null.
  DualAscent(const EdgeCosts& costs, int root, std::vector<int> terminals,
             std::vector<SteinerCut>* cuts)
      : root_(root), terminals_(std::move(terminals)), cuts_(cuts), slack_(costs.Reversed()) {
    for (int worker = 0; worker < slack_.workers(); ++worker) {
      slack_.set(worker, worker, EdgeCosts::kNone);
    }
    for (const int terminal : terminals_) sets_.push_back({terminal});
  }

  double Run() {
    using SizeAndTerminal = std::pair<size_t, size_t>;
    std::priority_queue<SizeAndTerminal, std::vector<SizeAndTerminal>, std::greater<>> queue;
    for (size_t i = 0; i < terminals_.size(); ++i) queue.emplace(1, i);
    double bound = 0;
    while (!queue.empty()) {
      const size_t chosen = queue.top().second;
      queue.pop();
      const size_t others = queue.empty() ? slack_.workers() : queue.top().first;
      const double raised = RaiseWhileSmall(sets_[chosen], others + others / 4);
      if (raised == EdgeCosts::kNone) return EdgeCosts::kNone;
      bound += raised;
      if (!Joined(root_)) queue.emplace(sets_[chosen].size(), chosen);
    }
    return bound;
  }

 private:
  static constexpr double kNever = EdgeCosts::kNone;

  bool Joined(int worker) const { return joined_at_[worker] != kNever; }

  // Raises the price of `set`, which grows by all that then reaches it over edges without slack,
  // until it has more than `most` members or the root. Returns the sum of the prices.
  double RaiseWhileSmall(std::vector<int>& set, size_t most) {
    const int workers = slack_.workers();
    joined_at_.assign(workers, kNever);
    least_from_.assign(workers, EdgeCosts::kNone);
    for (const int member : set) joined_at_[member] = 0;
    double raised = 0;
    size_t seen = 0;
    while (true) {
      for (; seen < set.size(); ++seen) {
        const double* slack = slack_.row(set[seen]);
        for (int from = 0; from < workers; ++from) {
          least_from_[from] = std::min(least_from_[from], slack[from] + raised);
          if (slack[from] > 0 || Joined(from)) continue;
          joined_at_[from] = raised;
          set.push_back(from);
        }
      }
      if (Joined(root_) || set.size() > most) break;
      double next = EdgeCosts::kNone;
      for (int from = 0; from < workers; ++from) {
        if (!Joined(from)) next = std::min(next, least_from_[from]);
      }
      if (next == EdgeCosts::kNone) return next;
      raised = next;
      for (int from = 0; from < workers; ++from) {
        if (Joined(from) || least_from_[from] > raised) continue;
        joined_at_[from] = raised;
        set.push_back(from);
      }
    }
    if (cuts_ != nullptr) NoteCuts(set, raised);
    // Each edge has paid for the time between its receiver's joining the set and its sender's.
    for (const int member : set) {
      double* slack = slack_.row(member);
      for (int from = 0; from < workers; ++from) {
        const double paid = std::min(joined_at_[from], raised) - joined_at_[member];
        if (paid > 0) slack[from] = std::max(0.0, slack[from] - paid);
      }
    }
    return raised;
  }

  // While its price rose to `raised`, the set was all that had joined by then.
  void NoteCuts(const std::vector<int>& set, double raised) {
    std::vector<int> by_time = set;
    std::stable_sort(by_time.begin(), by_time.end(),
                     [this](int a, int b) { return joined_at_[a] < joined_at_[b]; });
    for (size_t end = 1; end <= by_time.size(); ++end) {
      const double since = joined_at_[by_time[end - 1]];
      const double until =
          end < by_time.size() ? std::min(joined_at_[by_time[end]], raised) : raised;
      if (until <= since) continue;
      SteinerCut& cut = cuts_->emplace_back();
      cut.price = until - since;
      cut.set.assign(by_time.begin(), by_time.begin() + end);
      std::sort(cut.set.begin(), cut.set.end());
    }
  }

  const int root_;
  const std::vector<int> terminals_;
  std::vector<SteinerCut>* const cuts_;
  EdgeCosts slack_;                     // by receiver: what no set's price has used up yet
  std::vector<std::vector<int>> sets_;  // by terminal
  // By worker, for the set that was last raised: its price when the worker joined, and at which
  // price the worker's cheapest edge into the set has no slack left.
  std::vector<double> joined_at_;
  std::vector<double> least_from_;
};

}  // namespace

double SteinerLowerBound(const EdgeCosts& costs, int root, absl::Span<const int> terminals,
                         std::vector<SteinerCut>* cuts) {
  return DualAscent(costs, root, Distinct(root, terminals), cuts).Run();
}

// Erickson, Monma and Veinott: the cheapest tree from a worker to a set of terminals either splits
// the set at that worker or first goes to another worker that does.
double ExactSteinerCost(const EdgeCosts& costs, int root, absl::Span<const int> terminals) {
  const std::vector<int> wanted = Distinct(root, terminals);
  if (wanted.empty()) return 0;
  if (wanted.size() > kExactTerminalsMax) return std::numeric_limits<double>::quiet_NaN();
  const int workers = costs.workers();
  const EdgeCosts paths = PathCosts(costs);
  const unsigned all = (1u << wanted.size()) - 1;
  std::vector<std::vector<double>> cheapest(all + 1);  // by set of terminals, then worker
  std::vector<double> split(workers);
  for (unsigned set = 1; set <= all; ++set) {
    std::fill(split.begin(), split.end(), EdgeCosts::kNone);
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (set == 1u << i) split[wanted[i]] = 0;
    }
    for (unsigned part = (set - 1) & set; part > 0; part = (part - 1) & set) {
      for (int worker = 0; worker < workers; ++worker) {
        split[worker] =
            std::min(split[worker], cheapest[part][worker] + cheapest[set ^ part][worker]);
      }
    }
    std::vector<double>& row = cheapest[set];
    row.assign(workers, EdgeCosts::kNone);
    for (int from = 0; from < workers; ++from) {
      for (int to = 0; to < workers; ++to) {
        row[from] = std::min(row[from], paths.at(from, to) + split[to]);
      }
    }
  }
  return cheapest[all][root];
}

}  // namespace syncopate::plan
