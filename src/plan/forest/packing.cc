#include "plan/forest/packing.h"

#include <algorithm>
#include <cmath>
#include <coin/ClpSimplex.hpp>
#include <limits>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "plan/forest/pricing.h"

namespace syncopate::plan {
namespace {

// How much of the best prices is kept when new ones are tried. Without it, the prices of successive
// linear programs oscillate, and the trees found at them are of little use.
constexpr double kSmoothing = 0.85;
constexpr double kTolerance = 1e-9;
// The number of small shares that Fill() lays down one after the other, and how steeply the price
// of a resource grows with its load. Without these first trees column generation takes hundreds of
// rounds. Where workers relay, a tree takes much longer to find, and kFillRelayed shares must do.
constexpr size_t kFillMin = 100;
constexpr size_t kFillMax = 300;
constexpr size_t kFillRelayed = 40;
constexpr double kFillSteepness = 40;

// What a tree is for.
enum class Role { kReduce, kBroadcast, kBroadcastAfter };

using Loads = std::vector<TreeLoad>;

void AppendRoutes(const PackingNetwork& network, const WorkerTree& tree, bool reduce,
                  std::vector<int>& resources) {
  for (size_t worker = 0; worker < tree.parent.size(); ++worker) {
    const int parent = tree.parent[worker];
    const int child = static_cast<int>(worker);
    if (parent < 0 || child == tree.root) continue;
    const absl::Span<const int> route =
        reduce ? network.Loads(child, parent) : network.Loads(parent, child);
    resources.insert(resources.end(), route.begin(), route.end());
  }
}

Loads Count(std::vector<int> resources) {
  std::sort(resources.begin(), resources.end());
  Loads loads;
  for (const int resource : resources) {
    if (loads.empty() || loads.back().resource != resource) loads.push_back({resource, 0});
    loads.back().times += 1;
  }
  return loads;
}

double Cost(const Loads& loads, absl::Span<const double> prices) {
  double cost = 0;
  for (const auto& [resource, load] : loads) cost += load * prices[static_cast<size_t>(resource)];
  return cost;
}

}  // namespace

std::vector<TreeLoad> LoadsOf(const PackingNetwork& network, const WorkerTree& tree, bool reduce) {
  std::vector<int> resources;
  AppendRoutes(network, tree, reduce, resources);
  return Count(std::move(resources));
}

std::vector<TreeLoad> LoadsOf(const PackingNetwork& network, const TreePair& pair) {
  std::vector<int> resources;
  AppendRoutes(network, pair.reduce, true, resources);
  AppendRoutes(network, pair.broadcast, false, resources);
  return Count(std::move(resources));
}

// The restricted master program of the column generation in packing.h. Its columns are single
// trees, not pairs: every root has a share, and its reduce trees and its broadcast trees must each
// carry that share. So n trees of each kind stand for all n * n pairs that can be made of them.
class Packer::Program {
 public:
  Program(const PackingNetwork& network, std::vector<int> active, const PackingOptions& options);

  void Suggest(const std::vector<TreePair>& pairs, std::vector<double> prices);
  absl::StatusOr<Packing> Solve();
  std::vector<TreePair> KnownPairs() const;
  void RatesChanged();

 private:
  // Prices of both stages; the second is empty where there is none.
  struct Prices {
    std::vector<double> first;
    std::vector<double> second;
  };
  struct Column {
    Role role;
    size_t root;  // in active_
    WorkerTree tree;
  };

  bool HasSecondStage() const { return options_.stages != Stages::kOne; }
  bool Overlaps() const { return options_.stages != Stages::kSeparate; }
  bool EqualStages() const {
    return options_.stages == Stages::kSeparate || options_.stages == Stages::kEqualOverlapped;
  }
  size_t resources() const { return network_.resources().size(); }
  double Rate(size_t resource) const { return network_.resources()[resource].rate / scale_; }
  // The rows, in this order: the resources in the first stage, those in the second, two balances
  // for each root (what its reduce trees carry less its share, what its broadcast trees carry less
  // its share), and the sum of the shares.
  size_t stages() const { return HasSecondStage() ? 2 : 1; }
  int BalanceRow(size_t root, bool reduce) const {
    return static_cast<int>(stages() * resources() + 2 * root + (reduce ? 0 : 1));
  }
  int SumRow() const { return BalanceRow(active_.size(), true); }
  // The columns, in this order: the times of the stages, the shares of the roots, the trees.
  size_t TimeColumns() const { return options_.stages == Stages::kTwo ? 2 : 1; }
  size_t FirstTreeColumn() const { return TimeColumns() + active_.size(); }

  void SetRates();
  // Prices to begin with: equal ones, or such that all resources are worth the same.
  void ChooseFirstPrices();
  Prices Blend(const Prices& a, double weight, const Prices& b) const;
  void Normalize(Prices& prices) const;
  absl::Status SolveProgram();
  Prices ProgramPrices() const;
  // Finds the cheapest trees at these prices. They may improve the bound, and those that would
  // improve the program are added to it. Returns how many were added.
  size_t Try(const Prices& prices, const Prices* program_prices);
  // Finds first trees: lays the bytes down in small shares, each on the trees that are cheapest
  // while prices grow with the load.
  void Fill();
  // Adds the trees in which every root exchanges directly with all others: the shallowest there
  // are.
  void AddStars();
  bool Add(Role role, size_t root, const WorkerTree& tree, const Loads& loads);
  // The least, over roots, of what a reduce tree and a broadcast tree cost together.
  double Bound(absl::Span<const double> reduce, absl::Span<const double> broadcast,
               absl::Span<const double> broadcast_after) const;
  // Keeps the program small enough to be solved quickly.
  void Forget();
  std::vector<TreePair> Pairs() const;
  Packing Result(int rounds) const;

  const PackingNetwork& network_;
  const std::vector<int> active_;
  const PackingOptions options_;
  const Pricer pricer_;
  double scale_ = 0;  // rates are divided by it

  ClpSimplex lp_;
  std::vector<Column> pool_;  // of the program's columns from FirstTreeColumn() on
  // The hashes of role, root and tree of the columns in pool_.
  absl::flat_hash_set<size_t> known_;
  // The prices with the best bound so far.
  Prices best_;
  double best_value_ = 0;  // of the pricing at best_; a bound if the pricing is exact
};

Packer::Program::Program(const PackingNetwork& network, std::vector<int> active,
                         const PackingOptions& options)
    : network_(network), active_(std::move(active)), options_(options), pricer_(network, active_) {
  for (const PackingResource& resource : network.resources()) {
    scale_ = std::max(scale_, resource.rate);
  }
  if (scale_ == 0) scale_ = 1;  // workers that share a device
  lp_.setLogLevel(0);
  lp_.resize(SumRow() + 1, 0);
  for (int row = 0; row < SumRow(); ++row) {
    const bool balance = row >= BalanceRow(0, true);
    lp_.setRowBounds(row, balance ? 0 : -COIN_DBL_MAX, 0);
  }
  lp_.setRowBounds(SumRow(), 1, 1);
  for (size_t column = 0; column < TimeColumns(); ++column) {
    // One time for both stages counts twice in the objective T1 + T2. The coefficients -1 are
    // placeholders for the rates, which SetRates() writes.
    const size_t rows_of_it = EqualStages() ? 2 * resources() : resources();
    std::vector<int> rows(rows_of_it);
    const std::vector<double> values(rows_of_it, -1);
    for (size_t i = 0; i < rows_of_it; ++i) rows[i] = static_cast<int>(column * resources() + i);
    lp_.addColumn(static_cast<int>(rows_of_it), rows.data(), values.data(), 0, COIN_DBL_MAX,
                  EqualStages() ? 2 : 1);
  }
  for (size_t root = 0; root < active_.size(); ++root) {
    const int rows[] = {BalanceRow(root, true), BalanceRow(root, false), SumRow()};
    const double values[] = {-1, -1, 1};
    lp_.addColumn(3, rows, values, 0, COIN_DBL_MAX, 0);
  }
  SetRates();
}

void Packer::Program::SetRates() {
  for (size_t stage = 0; stage < stages(); ++stage) {
    const int column = options_.stages == Stages::kTwo ? static_cast<int>(stage) : 0;
    for (size_t i = 0; i < resources(); ++i) {
      lp_.modifyCoefficient(static_cast<int>(i + stage * resources()), column, -Rate(i));
    }
  }
}

// Trees, basis and prices stay: they are near the new ones. Solve() finds out what the prices prove
// now.
void Packer::Program::RatesChanged() { SetRates(); }

void Packer::Program::ChooseFirstPrices() {
  best_value_ = 0;
  std::vector<Prices> candidates;
  if (!best_.first.empty()) {
    candidates.push_back(best_);
  } else {
    candidates.resize(2);
    for (size_t i = 0; i < resources(); ++i) {
      candidates[0].first.push_back(1);
      candidates[1].first.push_back(1 / Rate(i));
    }
    if (HasSecondStage()) {
      for (Prices& prices : candidates) prices.second = prices.first;
    }
  }
  for (Prices& prices : candidates) {
    Normalize(prices);
    Try(prices, nullptr);
  }
}

Packer::Program::Prices Packer::Program::Blend(const Prices& a, double weight,
                                               const Prices& b) const {
  Prices blend = a;
  for (size_t i = 0; i < resources(); ++i) {
    blend.first[i] = weight * a.first[i] + (1 - weight) * b.first[i];
    if (HasSecondStage()) blend.second[i] = weight * a.second[i] + (1 - weight) * b.second[i];
  }
  return blend;
}

// Scales the prices so that the constraints of the dual program hold: what a second of all
// resources costs is at most what the objective counts it for. Only such prices prove a bound.
void Packer::Program::Normalize(Prices& prices) const {
  double first = 0;
  double second = 0;
  for (size_t i = 0; i < resources(); ++i) {
    first += Rate(i) * prices.first[i];
    if (HasSecondStage()) second += Rate(i) * prices.second[i];
  }
  const double most = EqualStages() ? (first + second) / 2 : std::max(first, second);
  if (most <= 0) return;
  for (double& price : prices.first) price /= most;
  for (double& price : prices.second) price /= most;
}

absl::Status Packer::Program::SolveProgram() {
  // New columns keep the basis primal feasible, so the primal simplex goes on from where it stood.
  // If that fails, the program is solved from a fresh basis.
  lp_.primal();
  if (lp_.status() == 0) return absl::OkStatus();
  lp_.allSlackBasis();
  lp_.dual();
  if (lp_.status() == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the linear program of the trees could not be solved (status ", lp_.status(), ")"));
}

Packer::Program::Prices Packer::Program::ProgramPrices() const {
  Prices prices;
  const double* duals = lp_.dualRowSolution();
  for (size_t i = 0; i < resources(); ++i) prices.first.push_back(std::max(0.0, -duals[i]));
  if (HasSecondStage()) {
    for (size_t i = 0; i < resources(); ++i) {
      prices.second.push_back(std::max(0.0, -duals[i + resources()]));
    }
  }
  Normalize(prices);
  return prices;
}

bool Packer::Program::Add(Role role, size_t root, const WorkerTree& tree, const Loads& loads) {
  if (!known_.insert(absl::HashOf(role, root, tree.parent)).second) return false;
  std::vector<int> rows;
  std::vector<double> values;
  const int offset = role == Role::kBroadcastAfter ? static_cast<int>(resources()) : 0;
  for (const auto& [resource, load] : loads) {
    rows.push_back(resource + offset);
    values.push_back(load);
  }
  rows.push_back(BalanceRow(root, role == Role::kReduce));
  values.push_back(1);
  lp_.addColumn(static_cast<int>(rows.size()), rows.data(), values.data(), 0, COIN_DBL_MAX, 0);
  pool_.push_back({role, root, tree});
  return true;
}

double Packer::Program::Bound(absl::Span<const double> reduce, absl::Span<const double> broadcast,
                              absl::Span<const double> broadcast_after) const {
  double bound = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < reduce.size(); ++i) {
    if (Overlaps()) bound = std::min(bound, reduce[i] + broadcast[i]);
    if (HasSecondStage()) bound = std::min(bound, reduce[i] + broadcast_after[i]);
  }
  return bound;
}

size_t Packer::Program::Try(const Prices& prices, const Prices* program_prices) {
  const PricedTrees reduce = pricer_.Reduce(prices.first);
  const PricedTrees broadcast = Overlaps() ? pricer_.Broadcast(prices.first) : PricedTrees();
  const PricedTrees after = HasSecondStage() ? pricer_.Broadcast(prices.second) : PricedTrees();
  const double value = Bound(reduce.costs, broadcast.costs, after.costs);
  if (value > best_value_) {
    best_value_ = value;
    best_ = prices;
  }
  size_t added = 0;
  const double* duals = lp_.dualRowSolution();
  const auto offer = [&](Role role, const PricedTrees& found) {
    for (size_t root = 0; root < found.trees.size(); ++root) {
      const WorkerTree& tree = found.trees[root];
      const Loads loads = LoadsOf(network_, tree, role == Role::kReduce);
      // A column improves the program only if its reduced cost at the program's own prices is
      // negative. `prices` may be others, so trees that are cheap there need not qualify.
      if (program_prices != nullptr) {
        const std::vector<double>& at =
            role == Role::kBroadcastAfter ? program_prices->second : program_prices->first;
        const double worth = duals[BalanceRow(root, role == Role::kReduce)];
        if (Cost(loads, at) >= worth - kTolerance * lp_.objectiveValue()) continue;
      }
      added += Add(role, root, tree, loads) ? 1 : 0;
    }
  };
  offer(Role::kReduce, reduce);
  offer(Role::kBroadcast, broadcast);
  offer(Role::kBroadcastAfter, after);
  return added;
}

void Packer::Program::AddStars() {
  for (size_t root = 0; root < active_.size(); ++root) {
    WorkerTree star;
    star.root = active_[root];
    star.parent.assign(network_.size(), -1);
    for (const int member : active_) star.parent[member] = star.root;
    Add(Role::kReduce, root, star, LoadsOf(network_, star, true));
    const Loads loads = LoadsOf(network_, star, false);
    if (Overlaps()) Add(Role::kBroadcast, root, star, loads);
    if (HasSecondStage()) Add(Role::kBroadcastAfter, root, star, loads);
  }
}

void Packer::Program::Fill() {
  const size_t steps = pricer_.exact() ? std::clamp(resources(), kFillMin, kFillMax) : kFillRelayed;
  // About the busy time of a resource at the end if the packing were as good as the bound; only
  // relative to it is a load large or small.
  const double target = best_value_ * static_cast<double>(steps);
  std::vector<double> used[2];  // by stage: seconds that the resource is busy
  Prices prices;
  used[0].resize(resources());
  prices.first.resize(resources());
  if (HasSecondStage()) used[1] = used[0], prices.second = prices.first;
  for (size_t step = 0; step < steps; ++step) {
    for (size_t stage = 0; stage < stages(); ++stage) {
      const double most = *std::max_element(used[stage].begin(), used[stage].end());
      std::vector<double>& at = stage == 0 ? prices.first : prices.second;
      for (size_t i = 0; i < resources(); ++i) {
        // Multiplicative weights: prices grow exponentially with the load. The largest exponent is
        // 0, so nothing overflows.
        at[i] = std::exp(kFillSteepness * (used[stage][i] - most) / target) / Rate(i);
      }
    }
    Normalize(prices);
    const PricedTrees reduce = pricer_.Reduce(prices.first, true);
    const PricedTrees broadcast =
        Overlaps() ? pricer_.Broadcast(prices.first, true) : PricedTrees();
    const PricedTrees after = HasSecondStage() ? pricer_.Broadcast(prices.second) : PricedTrees();
    const double value = Bound(reduce.costs, broadcast.costs, after.costs);
    if (value > best_value_) best_value_ = value, best_ = prices;
    // The next share goes to the first root whose two trees are the cheapest of all.
    for (size_t root = 0; root < active_.size(); ++root) {
      const bool overlap = Overlaps() && reduce.costs[root] + broadcast.costs[root] <= value;
      if (!overlap && !(HasSecondStage() && reduce.costs[root] + after.costs[root] <= value)) {
        continue;
      }
      const auto lay = [&](Role role, const WorkerTree& tree) {
        const Loads loads = LoadsOf(network_, tree, role == Role::kReduce);
        std::vector<double>& busy = used[role == Role::kBroadcastAfter ? 1 : 0];
        for (const auto& [resource, load] : loads) {
          busy[static_cast<size_t>(resource)] += load / Rate(static_cast<size_t>(resource));
        }
        Add(role, root, tree, loads);
      };
      const auto know = [&](Role role, const WorkerTree& tree) {
        Add(role, root, tree, LoadsOf(network_, tree, role == Role::kReduce));
      };
      know(Role::kReduce, reduce.shallow[root]);
      if (overlap) know(Role::kBroadcast, broadcast.shallow[root]);
      lay(Role::kReduce, reduce.trees[root]);
      if (overlap) {
        lay(Role::kBroadcast, broadcast.trees[root]);
      } else {
        lay(Role::kBroadcastAfter, after.trees[root]);
      }
      break;
    }
  }
}

// Drops, when there are many trees, the half of the unused ones that are dearest at the program's
// prices. A tree in the basis stays, so the program's value does not change.
void Packer::Program::Forget() {
  if (pool_.size() < 8 * static_cast<size_t>(SumRow())) return;
  std::vector<std::pair<double, int>> unused;
  for (size_t i = 0; i < pool_.size(); ++i) {
    const int column = static_cast<int>(i + FirstTreeColumn());
    if (lp_.getColumnStatus(column) == ClpSimplex::basic) continue;
    unused.emplace_back(-lp_.dualColumnSolution()[column], column);
  }
  std::sort(unused.begin(), unused.end());
  unused.resize(unused.size() / 2);
  std::vector<int> columns;
  for (const auto& [cost, column] : unused) columns.push_back(column);
  std::sort(columns.begin(), columns.end());
  lp_.deleteColumns(static_cast<int>(columns.size()), columns.data());
  std::vector<Column> pool;
  size_t next = 0;
  for (size_t i = 0; i < pool_.size(); ++i) {
    if (next < columns.size() && columns[next] == static_cast<int>(i + FirstTreeColumn())) {
      known_.erase(absl::HashOf(pool_[i].role, pool_[i].root, pool_[i].tree.parent));
      ++next;
      continue;
    }
    pool.push_back(std::move(pool_[i]));
  }
  pool_ = std::move(pool);
}

void Packer::Program::Suggest(const std::vector<TreePair>& pairs, std::vector<double> prices) {
  for (const TreePair& pair : pairs) {
    const size_t root = static_cast<size_t>(
        std::lower_bound(active_.begin(), active_.end(), pair.reduce.root) - active_.begin());
    Add(Role::kReduce, root, pair.reduce, LoadsOf(network_, pair.reduce, true));
    const Loads loads = LoadsOf(network_, pair.broadcast, false);
    if (Overlaps()) Add(Role::kBroadcast, root, pair.broadcast, loads);
    if (HasSecondStage()) Add(Role::kBroadcastAfter, root, pair.broadcast, loads);
  }
  if (prices.size() != resources()) return;
  best_.first = std::move(prices);
  for (double& price : best_.first) price *= scale_;
  if (HasSecondStage()) best_.second = best_.first;
}

absl::StatusOr<Packing> Packer::Program::Solve() {
  const bool anew = best_.first.empty();
  ChooseFirstPrices();
  if (anew) {
    AddStars();
    Fill();
  }
  int round = 1;
  for (;; ++round) {
    SYNCOPATE_RETURN_IF_ERROR(SolveProgram());
    const double value = lp_.objectiveValue();
    if (value - best_value_ <= options_.gap * value || round >= options_.rounds_max) break;
    const Prices program_prices = ProgramPrices();
    // Smoothed prices give better trees, but may give none that the program would take. If its own
    // prices give none either, the program cannot be improved by trees that the pricing finds.
    size_t added = Try(Blend(best_, kSmoothing, program_prices), &program_prices);
    if (added == 0) added = Try(Blend(best_, 0.5, program_prices), &program_prices);
    if (added == 0) added = Try(program_prices, &program_prices);
    if (added == 0) break;
    Forget();
  }
  return Result(round);
}

// Joins the reduce trees and the broadcast trees of each root. Both lists carry the same bytes, so
// matching them from the largest on uses up both, with fewer pairs than there are trees.
std::vector<TreePair> Packer::Program::Pairs() const {
  const double* values = lp_.primalColumnSolution();
  struct Used {
    const Column* column;
    double left;
  };
  std::vector<std::vector<Used>> reduce(active_.size());
  std::vector<std::vector<Used>> broadcast(active_.size());
  for (size_t i = 0; i < pool_.size(); ++i) {
    const double share = values[i + FirstTreeColumn()];
    if (share <= kTolerance) continue;
    auto& lists = pool_[i].role == Role::kReduce ? reduce : broadcast;
    lists[pool_[i].root].push_back({&pool_[i], share});
  }
  std::vector<TreePair> pairs;
  double sum = 0;
  for (size_t root = 0; root < active_.size(); ++root) {
    const auto larger = [](const Used& a, const Used& b) { return a.left > b.left; };
    std::stable_sort(reduce[root].begin(), reduce[root].end(), larger);
    std::stable_sort(broadcast[root].begin(), broadcast[root].end(), larger);
    size_t i = 0;
    size_t j = 0;
    while (i < reduce[root].size() && j < broadcast[root].size()) {
      Used& up = reduce[root][i];
      Used& down = broadcast[root][j];
      const double share = std::min(up.left, down.left);
      if (share > kTolerance) {
        pairs.push_back({up.column->tree, down.column->tree, share,
                         down.column->role == Role::kBroadcastAfter});
        sum += share;
      }
      up.left -= share;
      down.left -= share;
      if (up.left <= kTolerance) ++i;
      if (down.left <= kTolerance) ++j;
    }
  }
  for (TreePair& pair : pairs) pair.share /= sum;
  return pairs;
}

// The pairs of each root begin with its shallowest trees. Every tree is in some pair, unless its
// root has trees of one kind only.
std::vector<TreePair> Packer::Program::KnownPairs() const {
  std::vector<TreePair> pairs;
  std::vector<std::vector<std::pair<int, const Column*>>> reduce(active_.size());
  std::vector<std::vector<std::pair<int, const Column*>>> broadcast(active_.size());
  for (const Column& column : pool_) {
    auto& lists = column.role == Role::kReduce ? reduce : broadcast;
    lists[column.root].emplace_back(DepthOf(column.tree), &column);
  }
  const auto shallower = [](const auto& a, const auto& b) { return a.first < b.first; };
  for (size_t root = 0; root < active_.size(); ++root) {
    if (reduce[root].empty() || broadcast[root].empty()) continue;
    std::stable_sort(reduce[root].begin(), reduce[root].end(), shallower);
    std::stable_sort(broadcast[root].begin(), broadcast[root].end(), shallower);
    const size_t count = std::max(reduce[root].size(), broadcast[root].size());
    for (size_t i = 0; i < count; ++i) {
      const Column& up = *reduce[root][std::min(i, reduce[root].size() - 1)].second;
      const Column& down = *broadcast[root][std::min(i, broadcast[root].size() - 1)].second;
      pairs.push_back({up.tree, down.tree, 0, down.role == Role::kBroadcastAfter});
    }
  }
  return pairs;
}

Packing Packer::Program::Result(int rounds) const {
  Packing packing;
  packing.rounds = rounds;
  packing.pairs = Pairs();
  const double* values = lp_.primalColumnSolution();
  packing.seconds_per_byte = lp_.objectiveValue() / scale_;
  packing.stage_seconds[0] = values[0] / scale_;
  if (HasSecondStage()) packing.stage_seconds[1] = values[EqualStages() ? 0 : 1] / scale_;
  packing.prices = best_.first;
  packing.prices_after = best_.second;
  for (double& price : packing.prices) price /= scale_;
  for (double& price : packing.prices_after) price /= scale_;
  packing.bound = best_value_ / scale_;
  // With relays the trees that were found need not be the cheapest, so what they cost is no bound;
  // a lower bound on the cost of all trees has to be found for the prices.
  if (!pricer_.exact()) {
    const std::vector<double> reduce = pricer_.ReduceBounds(best_.first);
    const std::vector<double> broadcast =
        Overlaps() ? pricer_.BroadcastBounds(best_.first) : std::vector<double>();
    const std::vector<double> after =
        HasSecondStage() ? pricer_.BroadcastBounds(best_.second) : std::vector<double>();
    packing.bound = Bound(reduce, broadcast, after) / scale_;
  }
  return packing;
}

Packer::Packer(const PackingNetwork& network, std::vector<int> active,
               const PackingOptions& options)
    : program_(std::make_unique<Program>(network, std::move(active), options)) {}
Packer::~Packer() = default;
void Packer::Suggest(const std::vector<TreePair>& pairs, std::vector<double> prices) {
  program_->Suggest(pairs, std::move(prices));
}
absl::StatusOr<Packing> Packer::Solve() { return program_->Solve(); }
std::vector<TreePair> Packer::KnownPairs() const { return program_->KnownPairs(); }
void Packer::RatesChanged() { program_->RatesChanged(); }

}  // namespace syncopate::plan
