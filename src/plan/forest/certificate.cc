#include "plan/forest/certificate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/topology_routes.h"

namespace syncopate::plan {
namespace {

using absl::FailedPreconditionError;
using absl::StrCat;

// The relative error that is allowed for rounding: the sums have thousands of terms.
constexpr double kTolerance = 1e-6;

void AppendBytes(const void* data, size_t size, std::string& bytes) {
  bytes.append(static_cast<const char*>(data), size);
}

// The proof is weak duality. Let y be prices of the parts of the network with rates c such that
// sum(c y) <= 1, which is what a second of the whole network costs. A plan that takes T seconds a
// byte uses at most c T of each part, so its trees cost at most T. If no pair of trees costs less
// than the bound, T is at least the bound. That no tree costs less is shown by cuts: a tree has an
// edge across every cut that separates its root from an active worker, and if no edge costs less
// than the cuts that it crosses, the tree costs at least the sum of the cuts.
class Checker {
 public:
  Checker(const Topology& topology, absl::Span<const int> placement, absl::Span<const int> active,
          bool relays, absl::Span<const TreePair> pairs, const ForestCertificate& certificate)
      : topology_(topology),
        placement_(placement),
        active_(active),
        pairs_(pairs),
        certificate_(certificate),
        routes_(topology),
        link_busy_(topology.links.size(), 0),
        capacity_busy_(topology.capacities.size(), 0),
        link_price_(topology.links.size(), 0),
        capacity_price_(topology.capacities.size(), 0),
        is_active_(placement.size(), false) {
    // Without relays only the active workers are members: no tree may use another, and no cut has
    // to reckon with edges to and from another.
    for (const int rank : active) is_active_[rank] = true;
    for (size_t rank = 0; rank < placement.size(); ++rank) {
      if (is_active_[rank] || relays) members_.push_back(static_cast<int>(rank));
    }
    all_active_ = members_.size() == active.size();
  }

  absl::Status Run() {
    // The digests only make a mix-up easy to name. What follows is checked against the topology and
    // the trees themselves.
    if (!(DigestOf(topology_) == certificate_.topology)) {
      return FailedPreconditionError("the certificate is for another topology");
    }
    if (!(DigestOf(pairs_) == certificate_.trees)) {
      return FailedPreconditionError("the certificate is for other trees");
    }
    SYNCOPATE_RETURN_IF_ERROR(CheckTrees());
    SYNCOPATE_RETURN_IF_ERROR(CheckTime());
    SYNCOPATE_RETURN_IF_ERROR(CheckPrices());
    return CheckBound();
  }

 private:
  bool IsMember(int rank) const {
    return std::binary_search(members_.begin(), members_.end(), rank);
  }

  absl::Status CheckTrees() {
    double sum = 0;
    for (size_t i = 0; i < pairs_.size(); ++i) {
      const TreePair& pair = pairs_[i];
      if (!(pair.share > 0) || !(pair.share <= 1 + kTolerance)) {
        return FailedPreconditionError(StrCat("pair ", i, ": its share is ", pair.share));
      }
      sum += pair.share;
      if (pair.reduce.root != pair.broadcast.root || pair.after) {
        return FailedPreconditionError(StrCat("pair ", i, ": its trees do not belong together"));
      }
      SYNCOPATE_RETURN_IF_ERROR(
          At(StrCat("pair ", i, ", reduce tree"), AddTree(pair.reduce, true, pair.share)));
      SYNCOPATE_RETURN_IF_ERROR(
          At(StrCat("pair ", i, ", broadcast tree"), AddTree(pair.broadcast, false, pair.share)));
    }
    if (active_.size() > 1 && std::abs(sum - 1) > kTolerance) {
      return FailedPreconditionError(StrCat("the shares sum to ", sum, " instead of 1"));
    }
    return absl::OkStatus();
  }

  // Checks that it is a tree of active workers and relays, and adds what it carries to the parts of
  // the network.
  absl::Status AddTree(const WorkerTree& tree, bool reduce, double share) {
    if (tree.parent.size() != placement_.size()) {
      return FailedPreconditionError("it is for another number of workers");
    }
    if (tree.root < 0 || static_cast<size_t>(tree.root) >= placement_.size() ||
        !is_active_[tree.root] || tree.parent[tree.root] != tree.root) {
      return FailedPreconditionError(StrCat("worker ", tree.root, " cannot be its root"));
    }
    for (size_t rank = 0; rank < tree.parent.size(); ++rank) {
      const int worker = static_cast<int>(rank);
      const int parent = tree.parent[rank];
      if (parent == -1) {
        if (is_active_[rank])
          return FailedPreconditionError(StrCat("worker ", rank, " is missing"));
        continue;
      }
      if (!IsMember(worker)) {
        return FailedPreconditionError(StrCat("worker ", rank, " may not take part"));
      }
      // A path to the root has fewer steps than there are workers; a longer one is a cycle.
      int at = worker;
      for (size_t step = 0; at != tree.root; ++step) {
        if (step >= placement_.size() || at < 0 || static_cast<size_t>(at) >= placement_.size()) {
          return FailedPreconditionError(StrCat("worker ", rank, " is not joined to the root"));
        }
        at = tree.parent[at];
      }
      if (worker == tree.root) continue;
      SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<int> route,
                                 reduce ? Route(worker, parent) : Route(parent, worker));
      for (const int link : route) {
        link_busy_[link] += share;
        for (const int capacity : topology_.links[link].capacities)
          capacity_busy_[capacity] += share;
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<int>> Route(int from, int to) {
    return routes_.Between(placement_[from], placement_[to]);
  }

  // A byte of data takes as long as the part of the network that is busiest with it.
  absl::Status CheckTime() {
    double seconds = 0;
    for (size_t i = 0; i < link_busy_.size(); ++i) {
      seconds = std::max(seconds, link_busy_[i] / topology_.links[i].bandwidth);
    }
    for (size_t i = 0; i < capacity_busy_.size(); ++i) {
      seconds = std::max(seconds, capacity_busy_[i] / topology_.capacities[i].bandwidth);
    }
    const double claimed = certificate_.seconds_per_byte;
    if (!(std::abs(seconds - claimed) <= kTolerance * std::max(seconds, claimed))) {
      return FailedPreconditionError(
          StrCat("the trees take ", seconds, " s a byte, not ", claimed, " s"));
    }
    return absl::OkStatus();
  }

  // Conditions are written so that a price that is not a number fails them.
  absl::Status CheckPrices() {
    double second = 0;  // what a second of everything costs
    for (const PartPrice& each : certificate_.prices) {
      std::vector<double>& prices = each.part.is_link ? link_price_ : capacity_price_;
      if (each.part.index < 0 || static_cast<size_t>(each.part.index) >= prices.size()) {
        return FailedPreconditionError("a price is for a part that does not exist");
      }
      if (!(each.price >= 0) || !std::isfinite(each.price)) {
        return FailedPreconditionError(StrCat("a price is ", each.price));
      }
      prices[each.part.index] += each.price;
      second += each.price * (each.part.is_link ? topology_.links[each.part.index].bandwidth
                                                : topology_.capacities[each.part.index].bandwidth);
    }
    if (!(second <= 1 + kTolerance)) {
      return FailedPreconditionError(
          StrCat("a second of the whole network costs ", second, ", more than 1"));
    }
    return absl::OkStatus();
  }

  // What a byte from one worker to another costs.
  absl::StatusOr<double> EdgePrice(int from, int to) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<int> route, Route(from, to));
    double price = 0;
    for (const int link : route) {
      price += link_price_[link];
      for (const int capacity : topology_.links[link].capacities)
        price += capacity_price_[capacity];
    }
    return price;
  }

  // The bound is the least, over all roots, of what the two trees of the root must cost together,
  // because the trees of a pair have the same root. The certificate may claim less than its cuts
  // prove, never more.
  absl::Status CheckBound() {
    if (active_.size() < 2) return absl::OkStatus();
    // Every ordered pair of members is an edge that a tree may use, whether the plan does or not.
    const size_t size = members_.size();
    edge_price_.resize(size * size);
    for (size_t from = 0; from < size; ++from) {
      for (size_t to = 0; to < size; ++to) {
        if (from == to) continue;
        SYNCOPATE_ASSIGN_OR_RETURN(edge_price_[from * size + to],
                                   EdgePrice(members_[from], members_[to]));
      }
    }
    double bound = std::numeric_limits<double>::infinity();
    if (all_active_) {
      std::vector<double> reduce(size), broadcast(size);
      SYNCOPATE_RETURN_IF_ERROR(
          At("cuts of the reduce trees", NestedBounds(certificate_.reduce_cuts, true, reduce)));
      SYNCOPATE_RETURN_IF_ERROR(At("cuts of the broadcast trees",
                                   NestedBounds(certificate_.broadcast_cuts, false, broadcast)));
      for (size_t i = 0; i < size; ++i) bound = std::min(bound, reduce[i] + broadcast[i]);
    } else {
      if (certificate_.root_cuts.size() != active_.size()) {
        return FailedPreconditionError("not every root has its cuts");
      }
      for (size_t i = 0; i < active_.size(); ++i) {
        const RootCuts& cuts = certificate_.root_cuts[i];
        if (cuts.root != active_[i]) return FailedPreconditionError("cuts of another root");
        SYNCOPATE_ASSIGN_OR_RETURN(const double reduce, CutBound(cuts.root, cuts.reduce, true));
        SYNCOPATE_ASSIGN_OR_RETURN(const double broadcast,
                                   CutBound(cuts.root, cuts.broadcast, false));
        bound = std::min(bound, reduce + broadcast);
      }
    }
    if (!(certificate_.bound <= bound * (1 + kTolerance))) {
      return FailedPreconditionError(StrCat("the prices prove a bound of ", bound,
                                            " s a byte, not of ", certificate_.bound, " s"));
    }
    return absl::OkStatus();
  }

  // The price of the edge that crosses the border of sets that hold `inside` but not `outside`. In
  // a reduce tree data flows out of the set, in a broadcast tree into it.
  double EdgeAcross(size_t inside, size_t outside, bool reduce) const {
    return reduce ? edge_price_[inside * members_.size() + outside]
                  : edge_price_[outside * members_.size() + inside];
  }

  // By active worker: the price of all sets without it. Each edge is checked against the sets that
  // it crosses: those around its inner end that do not hold its outer end.
  absl::Status NestedBounds(const NestedCuts& cuts, bool reduce,
                            std::vector<double>& bounds) const {
    const size_t sets = cuts.parent.size();
    const size_t size = members_.size();
    if (sets < size || cuts.price.size() != sets)
      return FailedPreconditionError("they are cut off");
    std::vector<std::vector<int>> parts(sets);
    std::vector<double> above(sets, 0);  // the prices of the set and all around it
    double total = 0;
    // Larger sets have larger numbers, so above[parent] is known when a set is reached. This also
    // refuses cycles.
    for (size_t i = sets; i-- > 0;) {
      const int parent = cuts.parent[i];
      if (parent != -1 && (parent <= static_cast<int>(i) || parent < static_cast<int>(size) ||
                           parent >= static_cast<int>(sets))) {
        return FailedPreconditionError("they are not nested");
      }
      if (!(cuts.price[i] >= 0) || !std::isfinite(cuts.price[i])) {
        return FailedPreconditionError(StrCat("a price is ", cuts.price[i]));
      }
      total += cuts.price[i];
      above[i] = cuts.price[i] + (parent < 0 ? 0 : above[parent]);
      if (parent >= 0) parts[parent].push_back(static_cast<int>(i));
    }
    // A root's trees need not cross the sets that hold it, so these do not count for it.
    for (size_t inside = 0; inside < size; ++inside) {
      bounds[inside] = total - above[inside];
      // Walk up through the sets around `inside`. For a worker in another part of the set `at`, the
      // edge crosses the sets around `inside` that lie within `at`: above[inside] - above[at].
      double common = 0;
      std::vector<bool> seen(size, false);
      for (int at = static_cast<int>(inside), below = -1; at != -1;
           below = at, at = cuts.parent[at]) {
        common = above[at];
        if (below == -1) continue;
        std::vector<int> todo;
        for (const int part : parts[at]) {
          if (part != below) todo.push_back(part);
        }
        while (!todo.empty()) {
          const int part = todo.back();
          todo.pop_back();
          todo.insert(todo.end(), parts[part].begin(), parts[part].end());
          if (static_cast<size_t>(part) >= size) continue;
          seen[part] = true;
          SYNCOPATE_RETURN_IF_ERROR(CheckEdge(above[inside] - common, inside, part, reduce));
        }
      }
      // No set holds both ends of the remaining edges: they cross all sets around `inside`.
      for (size_t outside = 0; outside < size; ++outside) {
        if (outside == inside || seen[outside]) continue;
        SYNCOPATE_RETURN_IF_ERROR(CheckEdge(above[inside], inside, outside, reduce));
      }
    }
    return absl::OkStatus();
  }

  // A tree has fewer edges than there are members, so an error of tolerance / members on each edge
  // changes the bound by less than the tolerance.
  absl::Status CheckEdge(double crossed, size_t inside, size_t outside, bool reduce) const {
    const double price = EdgeAcross(inside, outside, reduce);
    if (crossed <= price + kTolerance * certificate_.bound / static_cast<double>(members_.size())) {
      return absl::OkStatus();
    }
    return FailedPreconditionError(StrCat("the edge between workers ", members_[outside], " and ",
                                          members_[inside], " costs ", price,
                                          ", less than the sets that it crosses, ", crossed));
  }

  // What a root's tree costs at least by cuts that are its own: the sum of their prices, provided
  // that every cut holds an active worker and not the root, and no edge costs less than the cuts
  // that it crosses.
  absl::StatusOr<double> CutBound(int root, absl::Span<const PricedCut> cuts, bool reduce) const {
    const size_t size = members_.size();
    std::vector<double> crossed(size * size, 0);  // by inner end, then outer
    double bound = 0;
    for (const PricedCut& cut : cuts) {
      if (!(cut.price >= 0)) return FailedPreconditionError(StrCat("a cut's price is ", cut.price));
      std::vector<bool> inside(size, false);
      bool holds_active = false;
      for (const int rank : cut.set) {
        const auto found = std::lower_bound(members_.begin(), members_.end(), rank);
        if (found == members_.end() || *found != rank || rank == root) {
          return FailedPreconditionError(StrCat("worker ", rank, " cannot be in a cut"));
        }
        inside[found - members_.begin()] = true;
        holds_active = holds_active || is_active_[rank];
      }
      if (!holds_active) return FailedPreconditionError("a cut holds no active worker");
      bound += cut.price;
      for (size_t in = 0; in < size; ++in) {
        if (!inside[in]) continue;
        for (size_t out = 0; out < size; ++out) {
          if (!inside[out]) crossed[in * size + out] += cut.price;
        }
      }
    }
    for (size_t in = 0; in < size; ++in) {
      for (size_t out = 0; out < size; ++out) {
        if (in == out) continue;
        SYNCOPATE_RETURN_IF_ERROR(CheckEdge(crossed[in * size + out], in, out, reduce));
      }
    }
    return bound;
  }

  const Topology& topology_;
  const absl::Span<const int> placement_;
  const absl::Span<const int> active_;
  const absl::Span<const TreePair> pairs_;
  const ForestCertificate& certificate_;
  Routes routes_;
  std::vector<double> link_busy_;  // bytes for each byte of data
  std::vector<double> capacity_busy_;
  std::vector<double> link_price_;
  std::vector<double> capacity_price_;
  std::vector<bool> is_active_;  // by rank
  std::vector<int> members_;     // ranks that may take part
  bool all_active_ = false;
  std::vector<double> edge_price_;  // by member, sender first
};

}  // namespace

Digest DigestOf(absl::Span<const TreePair> pairs) {
  std::string bytes;
  for (const TreePair& pair : pairs) {
    for (const WorkerTree* tree : {&pair.reduce, &pair.broadcast}) {
      AppendBytes(&tree->root, sizeof(tree->root), bytes);
      AppendBytes(tree->parent.data(), tree->parent.size() * sizeof(int), bytes);
    }
    AppendBytes(&pair.share, sizeof(pair.share), bytes);
    bytes.push_back(pair.after ? 1 : 0);
  }
  return syncopate::DigestOf(absl::string_view(bytes));
}

absl::Status CheckCertificate(const Topology& topology, absl::Span<const int> placement,
                              absl::Span<const int> active, bool relays,
                              absl::Span<const TreePair> pairs,
                              const ForestCertificate& certificate) {
  for (const int rank : active) {
    if (rank < 0 || static_cast<size_t>(rank) >= placement.size()) {
      return FailedPreconditionError(StrCat("worker ", rank, " does not exist"));
    }
  }
  return Checker(topology, placement, active, relays, pairs, certificate).Run();
}

}  // namespace syncopate::plan
