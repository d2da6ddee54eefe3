#include "plan/forest/steiner.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "plan/forest/dense_arborescence.h"
#include "plan/forest/flow_greedy.h"
#include "plan/forest/shortest_paths.h"

namespace syncopate::plan {
namespace {

// Up to here the search measures distances between workers along paths. That makes it better, but
// takes time that grows with the cube of the number of workers.
constexpr int kPathsWorkersMax = 256;
// The search ends when it has looked at this many matrix entries: about 2 ms. Work is counted in
// place of time so that all workers find the same tree.
constexpr int64_t kSearchWork = 1'000'000;
// The greedy tree is given up when it has looked at this many workers: about 20 ms.
constexpr int64_t kGreedyWork = 20'000'000;
// A tree counts as cheaper if it saves more than this part of the cost, which rounding cannot do.
constexpr double kGain = 1e-9;
// How many relays it tries to put in the place of one that it took out.
constexpr int kSwaps = 4;

}  // namespace

// A choice of relays determines a tree: the cheapest one that spans them, the terminals and the
// root (Edmonds). The search is over such choices, with distances along paths in place of edge
// costs.
class SteinerFinder::Search {
 public:
  explicit Search(const EdgeCosts& costs)
      : costs_(costs),
        incoming_(costs.Reversed()),
        along_paths_(costs.workers() <= kPathsWorkersMax),
        distances_(along_paths_ ? PathCosts(incoming_) : incoming_),
        greedy_(incoming_) {}

  WorkerTree Find(int root, absl::Span<const int> terminals);

 private:
  // A choice of relays, and the tree that it determines.
  struct Choice {
    double cost = EdgeCosts::kNone;
    std::vector<int> members;  // the root, the terminals, the relays
    std::vector<int> parent;   // as positions among the members
    std::vector<double> prices;
  };

  // The tree for the required members and `relays`, less the relays that it has no use for.
  Choice Choose(std::vector<int> relays);
  std::vector<int> RelaysOf(const Choice& choice) const;
  std::vector<int> RelaysOf(const WorkerTree& tree) const;
  // Relays outside of the choice that may save more than `least` if they join, the best hope first.
  std::vector<int> Promising(const Choice& choice, double least) const;
  bool ImproveByInserting(Choice& best);
  bool ImproveByRemoving(Choice& best);
  void Improve(Choice& best);
  // The workers on the paths that the choice's edges stand for.
  std::vector<int> RelaysOnPaths(const Choice& choice) const;
  // The cheapest tree of true edges over these, without relays as leaves.
  WorkerTree TreeOver(std::vector<int> relays);

  bool exhausted() const { return work_ > kSearchWork; }
  static bool Cheaper(double cost, double than) { return cost < than - kGain * than; }

  const EdgeCosts costs_;
  const EdgeCosts incoming_;  // costs_, by receiver
  const bool along_paths_;
  const EdgeCosts distances_;  // by receiver
  FlowGreedy greedy_;
  DenseArborescence arborescence_;
  // The problem that Find() works on.
  std::vector<int> required_;  // the root, then the terminals that can be reached
  std::vector<char> is_required_;
  std::vector<int> candidates_;  // for relays
  int64_t work_ = 0;
};

std::vector<int> SteinerFinder::Search::RelaysOf(const WorkerTree& tree) const {
  std::vector<int> relays;
  for (int worker = 0; worker < costs_.workers(); ++worker) {
    if (tree.parent[worker] >= 0 && !is_required_[worker]) relays.push_back(worker);
  }
  return relays;
}

std::vector<int> SteinerFinder::Search::RelaysOf(const Choice& choice) const {
  return {choice.members.begin() + required_.size(), choice.members.end()};
}

SteinerFinder::Search::Choice SteinerFinder::Search::Choose(std::vector<int> relays) {
  Choice choice;
  while (true) {
    choice.members = required_;
    choice.members.insert(choice.members.end(), relays.begin(), relays.end());
    work_ += static_cast<int64_t>(choice.members.size() * choice.members.size());
    choice.cost = arborescence_.Solve(distances_, choice.members);
    if (choice.cost == EdgeCosts::kNone) return choice;
    const std::vector<int>& parent = arborescence_.parent();
    std::vector<int> children(parent.size(), 0);
    for (size_t member = 1; member < parent.size(); ++member) ++children[parent[member]];
    // If distances are along paths, a relay with one child is on the path of its child anyway or is
    // a detour. Without it the tree is no dearer. Removing relays may leave others without use.
    const int least = along_paths_ ? 2 : 1;
    size_t useful = 0;
    for (size_t i = 0; i < relays.size(); ++i) {
      if (children[required_.size() + i] >= least) relays[useful++] = relays[i];
    }
    if (useful == relays.size()) break;
    relays.resize(useful);
  }
  choice.parent = arborescence_.parent();
  choice.prices = arborescence_.prices();
  return choice;
}

std::vector<int> SteinerFinder::Search::Promising(const Choice& choice, double least) const {
  std::vector<char> is_member(costs_.workers(), 0);
  for (const int member : choice.members) is_member[member] = 1;
  // The dual prices bound what a relay can save (dense_arborescence.h): the sum, over the members
  // that it could send to, of max(0, price - cost), less the cost to reach the relay. Relays that
  // cannot save `least` are left out without solving for them.
  std::vector<std::pair<double, int>> hopes;
  for (const int relay : candidates_) {
    if (is_member[relay]) continue;
    const double* into = distances_.row(relay);
    double reach = EdgeCosts::kNone;
    double saved = 0;
    for (size_t i = 0; i < choice.members.size(); ++i) {
      const int member = choice.members[i];
      reach = std::min(reach, into[member]);
      if (i > 0) saved += std::max(0.0, choice.prices[i] - distances_.at(member, relay));
    }
    if (saved - reach > least) hopes.emplace_back(-(saved - reach), relay);
  }
  std::sort(hopes.begin(), hopes.end());
  std::vector<int> relays;
  for (const auto& [hope, relay] : hopes) relays.push_back(relay);
  return relays;
}

bool SteinerFinder::Search::ImproveByInserting(Choice& best) {
  bool improved = false;
  for (bool again = true; again && !exhausted();) {
    again = false;
    for (const int relay : Promising(best, kGain * best.cost)) {
      if (exhausted()) break;
      std::vector<int> relays = RelaysOf(best);
      relays.push_back(relay);
      Choice choice = Choose(std::move(relays));
      if (!Cheaper(choice.cost, best.cost)) continue;
      best = std::move(choice);
      improved = again = true;
      break;
    }
  }
  return improved;
}

bool SteinerFinder::Search::ImproveByRemoving(Choice& best) {
  for (const int removed : RelaysOf(best)) {
    if (exhausted()) return false;
    std::vector<int> relays = RelaysOf(best);
    std::erase(relays, removed);
    Choice choice = Choose(relays);
    if (Cheaper(choice.cost, best.cost)) {
      best = std::move(choice);
      return true;
    }
    if (choice.cost == EdgeCosts::kNone) continue;
    // A relay in the place of the removed one must save what the removal costs, and a little more.
    std::vector<int> others = Promising(choice, choice.cost - best.cost + kGain * best.cost);
    std::erase(others, removed);
    if (others.size() > kSwaps) others.resize(kSwaps);
    relays = RelaysOf(choice);
    for (const int other : others) {
      if (exhausted()) return false;
      relays.push_back(other);
      Choice swapped = Choose(relays);
      relays.pop_back();
      if (!Cheaper(swapped.cost, best.cost)) continue;
      best = std::move(swapped);
      return true;
    }
  }
  return false;
}

void SteinerFinder::Search::Improve(Choice& best) {
  do {
    ImproveByInserting(best);
  } while (!exhausted() && ImproveByRemoving(best));
}

std::vector<int> SteinerFinder::Search::RelaysOnPaths(const Choice& choice) const {
  std::vector<char> taken = is_required_;
  for (const int member : choice.members) taken[member] = 1;
  std::vector<int> relays = RelaysOf(choice);
  std::vector<std::vector<int>> children(choice.members.size());
  for (size_t i = 1; i < choice.members.size(); ++i) {
    const int from = choice.members[choice.parent[i]];
    const int to = choice.members[i];
    // The edge stands for a path through other workers if that is cheaper than the true edge.
    if (distances_.at(to, from) < incoming_.at(to, from)) children[choice.parent[i]].push_back(to);
  }
  for (size_t i = 0; i < children.size(); ++i) {
    if (children[i].empty()) continue;
    const WorkerTree paths = ShortestPathTree(costs_, choice.members[i]);
    for (const int child : children[i]) {
      for (int worker = paths.parent[child]; worker != paths.root; worker = paths.parent[worker]) {
        if (!std::exchange(taken[worker], 1)) relays.push_back(worker);
      }
    }
  }
  return relays;
}

WorkerTree SteinerFinder::Search::TreeOver(std::vector<int> relays) {
  std::vector<int> members = required_;
  members.insert(members.end(), relays.begin(), relays.end());
  arborescence_.Solve(incoming_, members);
  WorkerTree tree{.root = members[0], .parent = std::vector<int>(costs_.workers(), -1)};
  std::vector<int> children(costs_.workers(), 0);
  for (size_t i = 0; i < members.size(); ++i) {
    tree.parent[members[i]] = members[arborescence_.parent()[i]];
    ++children[tree.parent[members[i]]];
  }
  // A relay without children carries nothing; taking it out may make its parent such a relay.
  for (const int relay : relays) {
    for (int leaf = relay; !is_required_[leaf] && tree.parent[leaf] >= 0 && children[leaf] == 0;) {
      const int parent = std::exchange(tree.parent[leaf], -1);
      --children[parent];
      leaf = parent;
    }
  }
  return tree;
}

WorkerTree SteinerFinder::Search::Find(int root, absl::Span<const int> terminals) {
  work_ = 0;
  const WorkerTree nearest = NearestTerminalTree(costs_, root, terminals);
  required_.assign(1, root);
  is_required_.assign(costs_.workers(), 0);
  is_required_[root] = 1;
  for (const int terminal : terminals) {
    if (nearest.parent[terminal] < 0 || std::exchange(is_required_[terminal], 1)) continue;
    required_.push_back(terminal);
  }
  candidates_.clear();
  for (int worker = 0; worker < costs_.workers(); ++worker) {
    const bool reached = !along_paths_ || distances_.at(worker, root) != EdgeCosts::kNone;
    if (!is_required_[worker] && reached) candidates_.push_back(worker);
  }
  if (required_.size() == 1 || candidates_.empty()) return TreeOver({});
  const WorkerTree flow = greedy_.Find(root, absl::MakeSpan(required_).subspan(1), kGreedyWork);

  // Two starts, because neither heuristic is always better than the other.
  Choice best = Choose(RelaysOf(flow));
  Choice other = Choose(RelaysOf(nearest));
  if (other.cost < best.cost) std::swap(best, other);
  Improve(best);
  WorkerTree tree = TreeOver(RelaysOnPaths(best));
  // Where two paths of the choice meet, the tree of true edges is cheaper than the search thought:
  // the worker there is a relay that it did not try. The search goes on from that tree.
  while (!exhausted() && Cheaper(CostOf(tree, costs_), best.cost)) {
    best = Choose(RelaysOf(tree));
    Improve(best);
    tree = TreeOver(RelaysOnPaths(best));
  }
  return tree;
}

SteinerFinder::SteinerFinder(const EdgeCosts& costs) : search_(std::make_unique<Search>(costs)) {}

SteinerFinder::~SteinerFinder() = default;

WorkerTree SteinerFinder::Find(int root, absl::Span<const int> terminals) {
  return search_->Find(root, terminals);
}

WorkerTree FindSteinerTree(const EdgeCosts& costs, int root, absl::Span<const int> terminals) {
  return SteinerFinder(costs).Find(root, terminals);
}

}  // namespace syncopate::plan
