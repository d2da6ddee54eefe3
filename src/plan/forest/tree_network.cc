#include "plan/forest/tree_network.h"

#include <algorithm>
#include <coin/ClpSimplex.hpp>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "plan/forest/few_trees.h"
#include "plan/forest/tree_counts.h"

namespace syncopate::plan {
namespace {

// With fewer trees than this, members take turns less often as the middle of a rack, and the trees
// get deep; very many have too little data each.
constexpr int kTreesAtFirst = 64;
constexpr int kTreesMax = 512;
// How much of their time parts of the network that do not limit the plan should be busy at most.
// The first value is taken that makes the plan longer by at most kHeadroomLoss.
constexpr double kHeadroom[] = {0.75, 0.85, 0.95};
constexpr double kHeadroomLoss = 1e-4;
// A part of the network does not limit the plan if a second of it costs less than this, where a
// second of the whole network costs 1.
constexpr double kNoPrice = 1e-6;

// The linear program: minimise T such that no resource carries more than its rate times T. Columns:
// T; for each group but the first and each kind of tree the positive part of its surplus; for
// groups of several members the negative part too. Rows: resources, then for each group of several
// members and each kind of tree how surpluses add up.
class SurplusProgram {
 public:
  SurplusProgram(const std::vector<TreeGroup>& groups, absl::Span<const double> rates)
      : groups_(groups),
        rates_(rates),
        scale_(*std::max_element(rates.begin(), rates.end())),
        sum_row_(groups.size(), -1) {
    const size_t resources = rates.size();
    std::vector<double> always(resources, 0);  // what a resource carries in any tree
    for (const TreeGroup& group : groups) {
      for (const int resource : group.out) always[resource] += 1;
      for (const int resource : group.in) always[resource] += 1;
    }
    for (size_t i = 0; i < resources; ++i) {
      row_lower_.push_back(-COIN_DBL_MAX);
      row_upper_.push_back(-always[i]);
    }
    for (size_t i = 0; i < groups.size(); ++i) {
      if (groups[i].member >= 0) continue;
      sum_row_[i] = static_cast<int>(row_lower_.size());
      // The surpluses of the parts add up to the group's own and one less than there are parts. The
      // first group holds all members: its own surplus is the constant -1.
      const double sum = static_cast<double>(groups[i].children.size()) - (i == 0 ? 2 : 1);
      for (int kind = 0; kind < 2; ++kind) {
        row_lower_.push_back(sum);
        row_upper_.push_back(sum);
      }
    }
    std::map<int, double> time;
    for (size_t i = 0; i < resources; ++i) {
      time[static_cast<int>(i)] = -rates[i] / scale_;
    }
    AddColumn(time, 1);
    for (const bool reduce : {false, true}) {
      for (size_t i = 1; i < groups.size(); ++i) AddSurplus(static_cast<int>(i), reduce);
    }
  }

  absl::StatusOr<TreeSurplus> Solve() {
    ClpSimplex lp;
    lp.setLogLevel(0);
    const int columns = static_cast<int>(begin_.size());
    begin_.push_back(static_cast<CoinBigIndex>(rows_.size()));
    const std::vector<double> lower(columns, 0);
    const std::vector<double> upper(columns, COIN_DBL_MAX);
    lp.loadProblem(columns, static_cast<int>(row_lower_.size()), begin_.data(), rows_.data(),
                   values_.data(), lower.data(), upper.data(), cost_.data(), row_lower_.data(),
                   row_upper_.data());
    lp.dual();
    if (lp.status() != 0) lp.primal();  // the dual simplex can fail numerically
    if (lp.status() != 0) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the linear program of the groups could not be solved (status ", lp.status(), ")"));
    }
    TreeSurplus result;
    result.seconds_per_byte = lp.objectiveValue() / scale_;
    // The columns after T, in the order in which AddSurplus() made them.
    const double* values = lp.primalColumnSolution() + 1;
    for (std::vector<double>* surplus : {&result.broadcast, &result.reduce}) {
      surplus->push_back(-1);
      for (size_t i = 1; i < groups_.size(); ++i) {
        surplus->push_back(*values++);
        if (groups_[i].member < 0) surplus->back() -= *values++;
      }
    }
    double second = 0;  // what a second of all resources costs
    for (size_t i = 0; i < rates_.size(); ++i) {
      result.prices.push_back(std::max(0.0, -lp.dualRowSolution()[i]));
      second += result.prices.back() * rates_[i];
    }
    for (double& price : result.prices) price /= second;
    return result;
  }

 private:
  void AddColumn(const std::map<int, double>& entries, double cost) {
    begin_.push_back(static_cast<CoinBigIndex>(rows_.size()));
    for (const auto& [row, value] : entries) {
      rows_.push_back(row);
      values_.push_back(value);
    }
    cost_.push_back(cost);
  }

  // The surplus of a group, as the difference of two columns that are not negative. The surplus of
  // a single member is its number of children, less 1 if it is the root, so it is not negative.
  // The positive part sends messages out of the group in broadcast trees and into it in reduce
  // trees; the negative part sends them the other way.
  void AddSurplus(int group, bool reduce) {
    const TreeGroup& it = groups_[group];
    const int kind = reduce ? 1 : 0;
    for (const int sign : {1, -1}) {
      if (sign < 0 && it.member >= 0) break;
      std::map<int, double> entries;
      entries[sum_row_[it.parent] + kind] = sign;
      if (it.member < 0) entries[sum_row_[group] + kind] = -sign;
      for (const int resource : reduce == (sign < 0) ? it.out : it.in) entries[resource] += 1;
      AddColumn(entries, 0);
    }
  }

  const std::vector<TreeGroup>& groups_;
  const absl::Span<const double> rates_;
  const double scale_;        // rates are divided by it
  std::vector<int> sum_row_;  // by group: of broadcast trees; the next one is of reduce trees
  std::vector<double> row_lower_;
  std::vector<double> row_upper_;
  std::vector<CoinBigIndex> begin_;  // by column
  std::vector<int> rows_;
  std::vector<double> values_;
  std::vector<double> cost_;
};

// What each resource carries for each byte of data: the formula of tree_network.h, summed over the
// groups behind its links.
std::vector<double> BytesOf(const std::vector<TreeGroup>& groups, const TreeSurplus& surplus,
                            size_t resources) {
  std::vector<double> bytes(resources, 0);
  for (size_t i = 1; i < groups.size(); ++i) {
    const double broadcast = surplus.broadcast[i];
    const double reduce = surplus.reduce[i];
    const double out = 1 + std::max(broadcast, 0.0) + std::max(-reduce, 0.0);
    const double in = 1 + std::max(reduce, 0.0) + std::max(-broadcast, 0.0);
    for (const int resource : groups[i].out) bytes[resource] += out;
    for (const int resource : groups[i].in) bytes[resource] += in;
  }
  return bytes;
}

// The surpluses of a number of trees, in whole numbers.
struct WholeTrees {
  int trees = 0;
  std::vector<std::vector<int>> broadcast;  // by group, then tree
  std::vector<std::vector<int>> reduce;
  double seconds_per_byte = 0;
};

WholeTrees RoundTo(int trees, const std::vector<TreeGroup>& groups, const TreeSurplus& surplus,
                   absl::Span<const double> rates) {
  WholeTrees whole;
  whole.trees = trees;
  std::vector<double> bytes = surplus.bytes;
  whole.broadcast = WholeSurpluses(groups, surplus.broadcast, false, trees, rates, bytes);
  whole.reduce = WholeSurpluses(groups, surplus.reduce, true, trees, rates, bytes);
  for (size_t i = 0; i < bytes.size(); ++i) {
    whole.seconds_per_byte = std::max(whole.seconds_per_byte, bytes[i] / rates[i]);
  }
  return whole;
}

// Any member may be the root at the same cost. The member with most children, in the groups that
// have most, is taken because the trees are shallow from there.
int RootOf(const std::vector<TreeGroup>& groups, absl::Span<const int> broadcast,
           absl::Span<const int> reduce) {
  int at = 0;
  while (groups[at].member < 0) {
    at = *std::max_element(
        groups[at].children.begin(), groups[at].children.end(),
        [&](int a, int b) { return broadcast[a] + reduce[a] < broadcast[b] + reduce[b]; });
  }
  return groups[at].member;
}

// Equal pairs of trees become one pair with the sum of their shares.
std::vector<TreePair> BuildPairs(const std::vector<TreeGroup>& groups, const WholeTrees& whole) {
  std::vector<TreePair> pairs;
  absl::flat_hash_map<std::pair<std::vector<int>, std::vector<int>>, size_t> known;
  std::vector<int> broadcast(groups.size());
  std::vector<int> reduce(groups.size());
  for (int tree = 0; tree < whole.trees; ++tree) {
    for (size_t i = 0; i < groups.size(); ++i) {
      broadcast[i] = whole.broadcast[i][tree];
      reduce[i] = whole.reduce[i][tree];
    }
    const int root = RootOf(groups, broadcast, reduce);
    TreePair pair = {BuildTree(groups, reduce, root), BuildTree(groups, broadcast, root), 0, false};
    const auto [found, is_new] =
        known.try_emplace({pair.reduce.parent, pair.broadcast.parent}, pairs.size());
    if (is_new) pairs.push_back(std::move(pair));
    pairs[found->second].share += 1.0 / whole.trees;
  }
  return pairs;
}

// What limits the plan has to be busy all the time; the rest of the network is left some headroom
// if there is such a solution.
absl::StatusOr<TreeSurplus> WithHeadroom(const std::vector<TreeGroup>& groups,
                                         absl::Span<const double> rates,
                                         const TreeSurplus& surplus) {
  for (const double part : kHeadroom) {
    std::vector<double> slower(rates.begin(), rates.end());
    for (size_t i = 0; i < slower.size(); ++i) {
      if (surplus.prices[i] * rates[i] < kNoPrice) slower[i] *= part;
    }
    SYNCOPATE_ASSIGN_OR_RETURN(TreeSurplus found, SolveTreeNetwork(groups, slower));
    if (found.seconds_per_byte > surplus.seconds_per_byte * (1 + kHeadroomLoss)) continue;
    // The bound is that of the true rates, so the prices stay those of the first solution.
    found.prices = surplus.prices;
    found.seconds_per_byte = surplus.seconds_per_byte;
    return found;
  }
  return surplus;
}

}  // namespace

absl::StatusOr<TreeSurplus> SolveTreeNetwork(const std::vector<TreeGroup>& groups,
                                             absl::Span<const double> rates) {
  SYNCOPATE_ASSIGN_OR_RETURN(TreeSurplus surplus, SurplusProgram(groups, rates).Solve());
  surplus.bytes = BytesOf(groups, surplus, rates.size());
  return surplus;
}

absl::StatusOr<std::optional<SuggestedTrees>> SuggestForTreeNetwork(const Topology& topology,
                                                                    absl::Span<const int> placement,
                                                                    const PackingNetwork& network,
                                                                    double loss, int trees_max) {
  const std::optional<std::vector<TreeGroup>> groups = FindTreeGroups(topology, placement, network);
  if (!groups.has_value() || network.resources().empty()) return std::nullopt;
  std::vector<double> rates;
  for (const PackingResource& resource : network.resources()) rates.push_back(resource.rate);
  SYNCOPATE_ASSIGN_OR_RETURN(TreeSurplus surplus, SolveTreeNetwork(*groups, rates));
  SYNCOPATE_ASSIGN_OR_RETURN(surplus, WithHeadroom(*groups, rates, surplus));
  const int most = trees_max > 0 ? std::min(trees_max, kTreesMax) : kTreesMax;
  // Rounding to whole numbers makes the plan slower, usually less so with more trees. Their number
  // grows until the loss is small enough.
  WholeTrees best;
  for (int trees = std::min(kTreesAtFirst, most); trees <= most; trees += 1 + trees / 16) {
    WholeTrees whole = RoundTo(trees, *groups, surplus, rates);
    if (best.trees == 0 || whole.seconds_per_byte < best.seconds_per_byte) best = std::move(whole);
    if (best.seconds_per_byte <= surplus.seconds_per_byte * (1 + loss)) break;
  }
  SuggestedTrees suggested;
  suggested.pairs = BuildPairs(*groups, best);
  suggested.prices = surplus.prices;
  suggested.seconds_per_byte = SecondsOf(network, suggested.pairs);
  suggested.bound = surplus.seconds_per_byte;
  return suggested;
}

}  // namespace syncopate::plan
