// How a forest plan is made. Packing finds pairs of trees and shares that are nearly as quick as
// any could be, together with prices of links that prove it. That packing has many trees, deep ones
// among them; ChooseTrees() then looks for few and shallow ones that lose at most `loss` against
// it. Two kinds of large networks go other ways: those whose links form a tree have a construction
// of their own (tree_network.h), and those that look the same after some permutations of their
// workers are packed with what is alike joined to one (turns.h).
#include "plan/forest/forest.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "plan/forest/arborescence.h"
#include "plan/forest/even_pairs.h"
#include "plan/forest/few_trees.h"
#include "plan/forest/steiner.h"
#include "plan/forest/tree_groups.h"
#include "plan/forest/tree_network.h"

namespace syncopate::plan {
namespace {

// Deeper trees are taken as the packing has them; larger sets of shallow ones are not looked
// through.
constexpr int kDepthTried = 6;
constexpr size_t kCandidatesMax = 3000;
// How many evenly loaded pairs are tried together.
constexpr size_t kEvenPairsMax = 5;
// Larger programs are not solved again to keep parts of the network from being busy all the time.
constexpr size_t kHeadroomCellsMax = 100000;
// Networks of more members are planned without column generation if their links form a tree: from
// nothing, again after rates have changed, and also if the gap is missed.
constexpr int kColumnsSize = 96;
constexpr int kColumnsSizeAgain = 32;
constexpr int kColumnsSizeMax = 256;
// Networks with more resources are planned by their turns, if they have any.
constexpr size_t kResourcesApart = 1500;

// The same tree over ranks.
WorkerTree OverRanks(const WorkerTree& tree, const std::vector<int>& ranks, size_t workers) {
  WorkerTree result;
  result.root = ranks[tree.root];
  result.parent.assign(workers, -1);
  for (size_t member = 0; member < tree.parent.size(); ++member) {
    if (tree.parent[member] >= 0) result.parent[ranks[member]] = ranks[tree.parent[member]];
  }
  return result;
}

std::vector<PricedCut> OverRanks(const std::vector<SteinerCut>& cuts,
                                 const std::vector<int>& ranks) {
  std::vector<PricedCut> result;
  for (const SteinerCut& cut : cuts) {
    PricedCut& priced = result.emplace_back();
    priced.price = cut.price;
    for (const int member : cut.set) priced.set.push_back(ranks[member]);
  }
  return result;
}

// The cuts around a worker are nested, each inside its parent. What a tree with that worker as its
// root must pay is the price of all cuts that do not contain it.
double PriceWithout(const NestedCuts& cuts, int worker) {
  double price = std::accumulate(cuts.price.begin(), cuts.price.end(), 0.0);
  for (int at = worker; at != -1; at = cuts.parent[at]) price -= cuts.price[at];
  return price;
}

// Adds the prices to the certificate, and the cuts that prove the bound which they are worth.
void Prove(const PackingNetwork& network, const std::vector<int>& active,
           const std::vector<double>& prices, ForestCertificate& certificate) {
  for (size_t i = 0; i < prices.size(); ++i) {
    if (prices[i] > 0) certificate.prices.push_back({network.resources()[i].part, prices[i]});
  }
  const EdgeCosts costs = network.CostsAt(prices);
  const EdgeCosts reversed = costs.Reversed();
  certificate.bound = EdgeCosts::kNone;
  if (active.size() == static_cast<size_t>(network.size())) {
    // All workers are active: the cheapest trees are arborescences, and the sets that their
    // algorithm contracts prove their cost for every root at once. A reduce tree is a broadcast
    // tree on the reversed edges.
    const Arborescences reduce(reversed);
    const Arborescences broadcast(costs);
    certificate.reduce_cuts = {reduce.SetParents(), reduce.SetPrices()};
    certificate.broadcast_cuts = {broadcast.SetParents(), broadcast.SetPrices()};
    for (const int root : active) {
      certificate.bound =
          std::min(certificate.bound, PriceWithout(certificate.reduce_cuts, root) +
                                          PriceWithout(certificate.broadcast_cuts, root));
    }
    return;
  }
  for (const int root : active) {
    // With relays the cheapest trees are Steiner trees, of which only a lower bound can be had, for
    // each root by itself.
    std::vector<SteinerCut> reduce, broadcast;
    const double bound = SteinerLowerBound(reversed, root, active, &reduce) +
                         SteinerLowerBound(costs, root, active, &broadcast);
    certificate.bound = std::min(certificate.bound, bound);
    certificate.root_cuts.push_back({network.ranks()[root], OverRanks(reduce, network.ranks()),
                                     OverRanks(broadcast, network.ranks())});
  }
}

int DepthOf(const TreePair& pair) {
  return std::max(DepthOf(pair.reduce), DepthOf(pair.broadcast));
}

// The number of resources that can limit a plan: a link that draws on a slower capacity cannot.
size_t ResourcesThatCount(const Topology& topology, const PackingNetwork& network) {
  return std::count_if(
      network.resources().begin(), network.resources().end(), [&](const PackingResource& each) {
        if (!each.part.is_link) return true;
        const std::vector<int>& capacities = topology.links[each.part.index].capacities;
        return std::none_of(capacities.begin(), capacities.end(), [&](int capacity) {
          return topology.capacities[capacity].bandwidth <= each.rate;
        });
      });
}

// Leaves the pairs with a share, the largest first.
void Tidy(std::vector<TreePair>& pairs) {
  std::erase_if(pairs, [](const TreePair& pair) { return pair.share <= 0; });
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const TreePair& a, const TreePair& b) { return a.share > b.share; });
}

// Moves workers that are deeper than `most` to the last ancestor that may have children.
void LimitDepth(int most, WorkerTree& tree) {
  std::vector<int> depth(tree.parent.size(), 0);
  for (const auto& [parent, child] : EdgesFromRoot(tree)) {  // parents are in place already
    if (depth[parent] == most) tree.parent[child] = tree.parent[parent];
    depth[child] = depth[tree.parent[child]] + 1;
  }
}

}  // namespace

absl::StatusOr<ForestPlanner> ForestPlanner::Make(const Topology& topology,
                                                  absl::Span<const int> placement,
                                                  absl::Span<const int> active,
                                                  const ForestOptions& options) {
  ForestPlanner planner;
  planner.topology_ = topology;
  planner.placement_.assign(placement.begin(), placement.end());
  planner.active_.assign(active.begin(), active.end());
  planner.options_ = options;
  if (active.empty()) return absl::InvalidArgumentError("no worker is active");
  std::vector<int> ranks = planner.active_;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] < 0 || static_cast<size_t>(ranks[i]) >= placement.size() ||
        (i > 0 && ranks[i] <= ranks[i - 1])) {
      return absl::InvalidArgumentError(
          absl::StrCat("active workers must be sorted and below ", placement.size()));
    }
  }
  if (options.relays) {
    ranks.resize(placement.size());
    std::iota(ranks.begin(), ranks.end(), 0);
  }
  SYNCOPATE_ASSIGN_OR_RETURN(PackingNetwork network,
                             PackingNetwork::Make(topology, placement, ranks));
  planner.network_ = std::make_unique<PackingNetwork>(std::move(network));
  planner.JoinWhatTurns();
  planner.MakePacker();
  return planner;
}

// The packer keeps its trees and prices between plans, so that planning again after rates have
// changed starts from them.
void ForestPlanner::MakePacker() {
  PackingOptions packing;
  packing.stages = options_.stages;
  packing.gap = options_.gap;
  packing.rounds_max = options_.rounds_max;
  packer_ = std::make_unique<Packer>(packed(), ActiveMembers(), packing);
}

// Joining pays on networks of so many resources that the linear program over all of them would be
// slow; on a network that is a tree the other construction is quicker still.
void ForestPlanner::JoinWhatTurns() {
  if (network_->size() <= kColumnsSizeAgain ||
      ResourcesThatCount(topology_, *network_) <= kResourcesApart ||
      options_.stages != Stages::kOne ||
      FindTreeGroups(topology_, placement_, *network_).has_value()) {
    return;
  }
  const std::vector<int> active = ActiveMembers();
  turns_ = FindTurns(topology_, placement_, *network_, active);
  if (turns_.generators.empty()) return;
  joined_ = std::make_unique<PackingNetwork>(JoinImages(*network_, active, turns_.generators));
}

// Indices in the packing network, which has the relays among its members.
std::vector<int> ForestPlanner::ActiveMembers() const {
  std::vector<int> members;
  for (size_t i = 0; i < network_->ranks().size(); ++i) {
    if (std::binary_search(active_.begin(), active_.end(), network_->ranks()[i])) {
      members.push_back(static_cast<int>(i));
    }
  }
  return members;
}

absl::Status ForestPlanner::Update(const Topology& topology) {
  SYNCOPATE_RETURN_IF_ERROR(network_->UpdateRates(topology));
  topology_ = topology;
  if (joined_ == nullptr) {
    packer_->RatesChanged();
  } else if (StillHold(turns_, *network_, ActiveMembers())) {
    *joined_ = JoinImages(*network_, ActiveMembers(), turns_.generators);
    packer_->RatesChanged();
  } else {  // every link for itself from now on; the old prices would only hold up the search
    pairs_ = ImagesOf(pairs_, turns_);
    joined_.reset();
    MakePacker();
    packer_->Suggest(pairs_, {});
  }
  return absl::OkStatus();
}

bool ForestPlanner::AllActive() const {
  return active_.size() == static_cast<size_t>(network_->size());
}

// How long the trees that are kept may take for a byte. With all workers active the bound is exact
// and the loss counts from it, but never less than half of it from the packing, which may itself be
// short of the bound. With relays the bound may be far off, so the loss counts from the packing.
double ForestPlanner::SecondsMax(const Packing& packing) const {
  if (!AllActive()) return packing.seconds_per_byte * (1 + options_.loss);
  return std::max(packing.bound * (1 + options_.loss),
                  packing.seconds_per_byte * (1 + options_.loss / 2));
}

// After rates have changed the old trees with new shares are often good enough. That is preferred:
// programs, orders and pipelines stay as they are.
absl::StatusOr<bool> ForestPlanner::SharesForOldTrees(double seconds_max) {
  if (pairs_.empty()) return false;
  std::vector<TreePair> same = pairs_;
  SYNCOPATE_ASSIGN_OR_RETURN(const double seconds, ShareOut(packed(), same));
  if (seconds > seconds_max) return false;
  pairs_ = std::move(same);
  return true;
}

// The first of these that is good enough: the trees of the last plan; few evenly loaded ones; those
// of the last plan with what the packing adds; the shallowest; and the packing itself.
absl::StatusOr<std::vector<TreePair>> ForestPlanner::ChooseTrees(const Packing& packing) {
  const double seconds_max = SecondsMax(packing);
  SYNCOPATE_ASSIGN_OR_RETURN(const bool same, SharesForOldTrees(seconds_max));
  if (same) return pairs_;
  if (options_.few && network_->size() <= kFewPairsMembersMax) return ChooseFewTrees(packing);
  if (!pairs_.empty() && network_->size() > kColumnsSizeAgain && options_.depth_max == 0) {
    // A large network is planned again quickly, with the trees of the last plan and what it lacks.
    std::vector<TreePair> both = pairs_;
    both.insert(both.end(), packing.pairs.begin(), packing.pairs.end());
    SYNCOPATE_RETURN_IF_ERROR(ShareOut(packed(), both).status());
    return KeepFew(packed(), both, seconds_max);
  }
  // The shallowest trees that are good enough: short pipelines, and nearly all workers busy from
  // the beginning to the end.
  std::vector<TreePair> known = packer_->KnownPairs();
  known.insert(known.end(), packing.pairs.begin(), packing.pairs.end());
  const int most = options_.depth_max > 0 ? options_.depth_max : kDepthTried;
  std::vector<TreePair> candidates;
  for (int depth = 1; depth <= most; ++depth) {
    const size_t before = candidates.size();
    for (const TreePair& pair : known) {
      if (DepthOf(pair) == depth) candidates.push_back(pair);
    }
    if (candidates.size() == before) continue;
    if (candidates.size() > kCandidatesMax) break;
    std::vector<TreePair> some = candidates;
    SYNCOPATE_ASSIGN_OR_RETURN(const double seconds, ShareOut(packed(), some));
    if (seconds <= seconds_max) return KeepFewWithHeadroom(packing, std::move(candidates), some);
    if (depth == options_.depth_max) return KeepFew(packed(), some, seconds * (1 + options_.loss));
  }
  if (options_.depth_max > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("no tree of depth ", options_.depth_max, " joins the active workers"));
  }
  return KeepFew(packed(), packing.pairs, seconds_max);
}

absl::StatusOr<std::vector<TreePair>> ForestPlanner::ChooseFewTrees(const Packing& packing) const {
  const std::vector<int> active = ActiveMembers();
  const double seconds_max = SecondsMax(packing);
  // A single pair of each root is tried first. If none is good enough, pairs of several roots are
  // balanced together, the roots with the best single pairs first.
  std::vector<std::pair<double, int>> roots;
  std::vector<TreePair> best;
  double best_seconds = EdgeCosts::kNone;
  const auto look = [&](std::vector<TreePair> pairs) -> absl::StatusOr<double> {
    SYNCOPATE_ASSIGN_OR_RETURN(const double seconds, ShareOut(packed(), pairs));
    if (seconds < best_seconds) best_seconds = seconds, best = std::move(pairs);
    return seconds;
  };
  for (const int root : active) {
    SYNCOPATE_ASSIGN_OR_RETURN(const double seconds, look(FindEvenPairs(packed(), active, {root})));
    roots.emplace_back(seconds, root);
  }
  std::stable_sort(roots.begin(), roots.end());
  std::vector<int> together;
  for (const auto& [seconds, root] : roots) {
    if (best_seconds <= seconds_max || together.size() == kEvenPairsMax) break;
    together.push_back(root);
    if (together.size() == 1) continue;
    SYNCOPATE_RETURN_IF_ERROR(look(FindEvenPairs(packed(), active, together)).status());
  }
  if (best_seconds <= seconds_max) return KeepFew(packed(), best, seconds_max);
  // With the packing's own trees the time is at most that of the packing.
  best.insert(best.end(), packing.pairs.begin(), packing.pairs.end());
  SYNCOPATE_RETURN_IF_ERROR(ShareOut(packed(), best).status());
  return KeepFew(packed(), best, seconds_max);
}

// What limits the plan has to be busy all the time. The rest of the network had better not be: a
// message that comes a little late would hold up everything.
absl::StatusOr<std::vector<TreePair>> ForestPlanner::KeepFewWithHeadroom(
    const Packing& packing, std::vector<TreePair> candidates, const std::vector<TreePair>& found) {
  const double seconds_max = SecondsMax(packing);
  if (candidates.size() * packed().resources().size() <= kHeadroomCellsMax) {
    for (const double part : {0.75, 0.85, 0.95}) {
      const PackingNetwork network = packed().WithHeadroom(packing.prices, part);
      SYNCOPATE_ASSIGN_OR_RETURN(const double seconds, ShareOut(network, candidates));
      if (seconds <= seconds_max) return KeepFew(network, candidates, seconds_max);
    }
  }
  return KeepFew(packed(), found, seconds_max);
}

// Nothing if this network is no tree, is small enough for column generation, or if the trees found
// miss the gap: then they are at least a good start for the packer.
absl::StatusOr<std::optional<ForestPlan>> ForestPlanner::PlanTreeNetwork() {
  if (network_->size() <= (pairs_.empty() ? kColumnsSize : kColumnsSizeAgain) ||
      options_.stages != Stages::kOne || !AllActive()) {
    return std::nullopt;
  }
  const double loss = std::max(options_.loss, options_.gap);
  SYNCOPATE_ASSIGN_OR_RETURN(
      std::optional<SuggestedTrees> found,
      SuggestForTreeNetwork(topology_, placement_, *network_, loss, options_.trees_max));
  if (!found.has_value()) return std::nullopt;
  Packing packing;
  packing.pairs = std::move(found->pairs);
  packing.seconds_per_byte = found->seconds_per_byte;
  packing.stage_seconds[0] = found->seconds_per_byte;
  packing.prices = std::move(found->prices);
  packing.bound = found->bound;
  std::vector<TreePair> pairs = packing.pairs;
  if (options_.depth_max > 0) {
    for (TreePair& pair : pairs) {
      LimitDepth(options_.depth_max, pair.reduce);
      LimitDepth(options_.depth_max, pair.broadcast);
    }
    SYNCOPATE_RETURN_IF_ERROR(ShareOut(*network_, pairs).status());
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const bool same, SharesForOldTrees(packing.bound * (1 + loss)));
  if (!same) {
    Tidy(pairs);
    pairs_ = std::move(pairs);
  }
  ForestPlan plan = Finish(packing, pairs_);
  const bool good = plan.certificate.gap() <= loss || options_.depth_max > 0 ||
                    options_.trees_max > 0 || network_->size() > kColumnsSizeMax;
  if (good) return plan;
  packer_->Suggest(packing.pairs, packing.prices);
  return std::nullopt;
}

// Trees and prices of a joined network are unfolded at the end: each pair to its images under the
// turns, each price to those links that were joined.
absl::StatusOr<ForestPlan> ForestPlanner::Plan() {
  if (active_.size() == 1 || network_->resources().empty()) return PlanNothing();
  SYNCOPATE_ASSIGN_OR_RETURN(std::optional<ForestPlan> plan, PlanTreeNetwork());
  if (plan.has_value()) return *std::move(plan);
  SYNCOPATE_ASSIGN_OR_RETURN(Packing packing, packer_->Solve());
  if (options_.stages != Stages::kOne) return Describe(packing, packing.pairs);
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<TreePair> pairs, ChooseTrees(packing));
  Tidy(pairs);
  pairs_ = pairs;
  if (joined_ != nullptr) {
    packing.prices = PricesApart(*network_, *joined_, packing.prices);
    pairs = ImagesOf(pairs, turns_);
  }
  if (options_.trees_max > 0 && pairs.size() > static_cast<size_t>(options_.trees_max)) {
    pairs.resize(options_.trees_max);
    SYNCOPATE_RETURN_IF_ERROR(ShareOut(*network_, pairs).status());
    Tidy(pairs);
    if (joined_ == nullptr) pairs_ = pairs;
  }
  return Finish(packing, std::move(pairs));
}

ForestPlan ForestPlanner::Finish(const Packing& packing, std::vector<TreePair> pairs) const {
  ForestPlan plan = Describe(packing, std::move(pairs));
  Prove(*network_, ActiveMembers(), packing.prices, plan.certificate);
  return plan;
}

// One worker, or workers that share a device: nothing crosses the network.
ForestPlan ForestPlanner::PlanNothing() const {
  const std::vector<int> members = ActiveMembers();
  WorkerTree star;
  star.root = members[0];
  star.parent.assign(network_->ranks().size(), -1);
  for (const int member : members) star.parent[member] = star.root;
  Packing packing;
  ForestPlan plan = Describe(packing, {{star, star, 1, false}});
  if (members.size() > 1) {
    Prove(*network_, members, std::vector<double>(network_->resources().size(), 0),
          plan.certificate);
  }
  return plan;
}

// Loads and times are computed again from the trees that were chosen, not taken from the packing:
// the certificate speaks of what will run.
ForestPlan ForestPlanner::Describe(const Packing& packing, std::vector<TreePair> pairs) const {
  ForestPlan plan;
  plan.workers = static_cast<int>(placement_.size());
  plan.active = active_;
  plan.rounds = packing.rounds;
  plan.packed_pairs = packing.pairs.size();
  plan.packed_seconds = packing.seconds_per_byte;
  std::vector<double> bytes(network_->resources().size(), 0);
  for (const TreePair& pair : pairs) {
    for (const TreeLoad& load : LoadsOf(*network_, pair)) {
      bytes[load.resource] += pair.share * load.times;
    }
    plan.depth = std::max(plan.depth, DepthOf(pair));
  }
  plan.seconds_per_byte = packing.seconds_per_byte;
  plan.stage_seconds[0] = packing.stage_seconds[0];
  plan.stage_seconds[1] = packing.stage_seconds[1];
  if (options_.stages == Stages::kOne) {
    plan.seconds_per_byte = SecondsOf(*network_, pairs);
    plan.stage_seconds[0] = plan.seconds_per_byte;
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == 0) continue;
    for (const NetworkPart part : network_->resources()[i].parts) {
      const double rate = RateOf(topology_, part);
      plan.loads.push_back({part, bytes[i], bytes[i] / rate / plan.seconds_per_byte});
    }
  }
  for (TreePair& pair : pairs) {
    pair.reduce = OverRanks(pair.reduce, network_->ranks(), placement_.size());
    pair.broadcast = OverRanks(pair.broadcast, network_->ranks(), placement_.size());
  }
  plan.pairs = std::move(pairs);
  plan.certificate.seconds_per_byte = plan.seconds_per_byte;
  plan.certificate.bound = packing.bound;
  plan.certificate.topology = DigestOf(topology_);
  plan.certificate.trees = DigestOf(absl::MakeConstSpan(plan.pairs));
  return plan;
}

absl::StatusOr<ForestPlan> PlanForest(const Topology& topology, absl::Span<const int> placement,
                                      absl::Span<const int> active, const ForestOptions& options) {
  SYNCOPATE_ASSIGN_OR_RETURN(ForestPlanner planner,
                             ForestPlanner::Make(topology, placement, active, options));
  return planner.Plan();
}

}  // namespace syncopate::plan
