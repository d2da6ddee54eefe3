#include "plan/forest/packing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/status.h"
#include "plan/forest/pricing.h"
#include "plan/forest/tree_program.h"

namespace syncopate::plan {
namespace {

// How much of the best prices is kept when new ones are tried. Without it, the prices of successive
// linear programs oscillate, and the trees found at them are of little use.
constexpr double kSmoothing = 0.85;
// The number of small shares that Fill() lays down one after the other, and how steeply the price
// of a resource grows with its load. Without these first trees column generation takes hundreds of
// rounds. Where workers relay, a tree takes much longer to find, and kFillRelayed shares must do.
constexpr size_t kFillMin = 100;
constexpr size_t kFillMax = 300;
constexpr size_t kFillRelayed = 40;
constexpr double kFillSteepness = 40;

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

// The column generation: it asks the program over the trees that are known for its prices and the
// pricing for trees that are cheaper at them, until the prices prove that no trees would help.
class Packer::Generation {
 public:
  Generation(const PackingNetwork& network, std::vector<int> active, const PackingOptions& options)
      : network_(network),
        active_(std::move(active)),
        options_(options),
        pricer_(network, active_),
        program_(network, active_.size(), options.stages) {}

  void Suggest(const std::vector<TreePair>& pairs, std::vector<double> prices);
  absl::StatusOr<Packing> Solve();
  std::vector<TreePair> KnownPairs() const { return program_.KnownPairs(); }
  // The prices stay too. Solve() finds out what they prove now.
  void RatesChanged() { program_.SetRates(); }

 private:
  size_t resources() const { return program_.resources(); }
  // Prices to begin with: equal ones, or such that all resources are worth the same.
  void ChooseFirstPrices();
  StagePrices Blend(const StagePrices& a, double weight, const StagePrices& b) const;
  // Finds the cheapest trees at these prices. They may improve the bound, and those that would
  // improve the program are added to it. Returns how many were added.
  size_t Try(const StagePrices& prices, const StagePrices* program_prices);
  // Finds first trees: lays the bytes down in small shares, each on the trees that are cheapest
  // while prices grow with the load.
  void Fill();
  // Adds the trees in which every root exchanges directly with all others: the shallowest there
  // are.
  void AddStars();
  // The least, over roots, of what a reduce tree and a broadcast tree cost together.
  double Bound(absl::Span<const double> reduce, absl::Span<const double> broadcast,
               absl::Span<const double> broadcast_after) const;
  Packing Result(int rounds) const;

  const PackingNetwork& network_;
  const std::vector<int> active_;
  const PackingOptions options_;
  const Pricer pricer_;
  TreeProgram program_;
  // The prices with the best bound so far.
  StagePrices best_;
  double best_value_ = 0;  // of the pricing at best_; a bound if the pricing is exact
};

void Packer::Generation::ChooseFirstPrices() {
  best_value_ = 0;
  std::vector<StagePrices> candidates;
  if (!best_.first.empty()) {
    candidates.push_back(best_);
  } else {
    candidates.resize(2);
    for (size_t i = 0; i < resources(); ++i) {
      candidates[0].first.push_back(1);
      candidates[1].first.push_back(1 / program_.Rate(i));
    }
    if (program_.HasSecondStage()) {
      for (StagePrices& prices : candidates) prices.second = prices.first;
    }
  }
  for (StagePrices& prices : candidates) {
    program_.Normalize(prices);
    Try(prices, nullptr);
  }
}

StagePrices Packer::Generation::Blend(const StagePrices& a, double weight,
                                      const StagePrices& b) const {
  StagePrices blend = a;
  for (size_t i = 0; i < resources(); ++i) {
    blend.first[i] = weight * a.first[i] + (1 - weight) * b.first[i];
    if (program_.HasSecondStage())
      blend.second[i] = weight * a.second[i] + (1 - weight) * b.second[i];
  }
  return blend;
}

double Packer::Generation::Bound(absl::Span<const double> reduce,
                                 absl::Span<const double> broadcast,
                                 absl::Span<const double> broadcast_after) const {
  double bound = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < reduce.size(); ++i) {
    if (program_.Overlaps()) bound = std::min(bound, reduce[i] + broadcast[i]);
    if (program_.HasSecondStage()) bound = std::min(bound, reduce[i] + broadcast_after[i]);
  }
  return bound;
}

size_t Packer::Generation::Try(const StagePrices& prices, const StagePrices* program_prices) {
  const PricedTrees reduce = pricer_.Reduce(prices.first);
  const PricedTrees broadcast =
      program_.Overlaps() ? pricer_.Broadcast(prices.first) : PricedTrees();
  const PricedTrees after =
      program_.HasSecondStage() ? pricer_.Broadcast(prices.second) : PricedTrees();
  const double value = Bound(reduce.costs, broadcast.costs, after.costs);
  if (value > best_value_) {
    best_value_ = value;
    best_ = prices;
  }
  size_t added = 0;
  const auto offer = [&](TreeRole role, const PricedTrees& found) {
    for (size_t root = 0; root < found.trees.size(); ++root) {
      const WorkerTree& tree = found.trees[root];
      const Loads loads = LoadsOf(network_, tree, role == TreeRole::kReduce);
      // A column improves the program only if its reduced cost at the program's own prices is
      // negative. `prices` may be others, so trees that are cheap there need not qualify.
      if (program_prices != nullptr) {
        const std::vector<double>& at =
            role == TreeRole::kBroadcastAfter ? program_prices->second : program_prices->first;
        const double worth = program_.Worth(role, root);
        if (Cost(loads, at) >= worth - TreeProgram::kTolerance * program_.value()) continue;
      }
      added += program_.Add(role, root, tree, loads) ? 1 : 0;
    }
  };
  offer(TreeRole::kReduce, reduce);
  offer(TreeRole::kBroadcast, broadcast);
  offer(TreeRole::kBroadcastAfter, after);
  return added;
}

void Packer::Generation::AddStars() {
  for (size_t root = 0; root < active_.size(); ++root) {
    WorkerTree star;
    star.root = active_[root];
    star.parent.assign(network_.size(), -1);
    for (const int member : active_) star.parent[member] = star.root;
    program_.Add(TreeRole::kReduce, root, star, LoadsOf(network_, star, true));
    const Loads loads = LoadsOf(network_, star, false);
    if (program_.Overlaps()) program_.Add(TreeRole::kBroadcast, root, star, loads);
    if (program_.HasSecondStage()) program_.Add(TreeRole::kBroadcastAfter, root, star, loads);
  }
}

void Packer::Generation::Fill() {
  const size_t steps = pricer_.exact() ? std::clamp(resources(), kFillMin, kFillMax) : kFillRelayed;
  // About the busy time of a resource at the end if the packing were as good as the bound; only
  // relative to it is a load large or small.
  const double target = best_value_ * static_cast<double>(steps);
  std::vector<double> used[2];  // by stage: seconds that the resource is busy
  StagePrices prices;
  used[0].resize(resources());
  prices.first.resize(resources());
  if (program_.HasSecondStage()) used[1] = used[0], prices.second = prices.first;
  for (size_t step = 0; step < steps; ++step) {
    for (size_t stage = 0; stage < program_.stages(); ++stage) {
      const double most = *std::max_element(used[stage].begin(), used[stage].end());
      std::vector<double>& at = stage == 0 ? prices.first : prices.second;
      for (size_t i = 0; i < resources(); ++i) {
        // Multiplicative weights: prices grow exponentially with the load. The largest exponent is
        // 0, so nothing overflows.
        at[i] = std::exp(kFillSteepness * (used[stage][i] - most) / target) / program_.Rate(i);
      }
    }
    program_.Normalize(prices);
    const PricedTrees reduce = pricer_.Reduce(prices.first, true);
    const PricedTrees broadcast =
        program_.Overlaps() ? pricer_.Broadcast(prices.first, true) : PricedTrees();
    const PricedTrees after =
        program_.HasSecondStage() ? pricer_.Broadcast(prices.second) : PricedTrees();
    const double value = Bound(reduce.costs, broadcast.costs, after.costs);
    if (value > best_value_) best_value_ = value, best_ = prices;
    // The next share goes to the first root whose two trees are the cheapest of all.
    for (size_t root = 0; root < active_.size(); ++root) {
      const bool overlap =
          program_.Overlaps() && reduce.costs[root] + broadcast.costs[root] <= value;
      if (!overlap &&
          !(program_.HasSecondStage() && reduce.costs[root] + after.costs[root] <= value)) {
        continue;
      }
      const auto lay = [&](TreeRole role, const WorkerTree& tree) {
        const Loads loads = LoadsOf(network_, tree, role == TreeRole::kReduce);
        std::vector<double>& busy = used[role == TreeRole::kBroadcastAfter ? 1 : 0];
        for (const auto& [resource, load] : loads) {
          busy[static_cast<size_t>(resource)] +=
              load / program_.Rate(static_cast<size_t>(resource));
        }
        program_.Add(role, root, tree, loads);
      };
      const auto know = [&](TreeRole role, const WorkerTree& tree) {
        program_.Add(role, root, tree, LoadsOf(network_, tree, role == TreeRole::kReduce));
      };
      know(TreeRole::kReduce, reduce.shallow[root]);
      if (overlap) know(TreeRole::kBroadcast, broadcast.shallow[root]);
      lay(TreeRole::kReduce, reduce.trees[root]);
      if (overlap) {
        lay(TreeRole::kBroadcast, broadcast.trees[root]);
      } else {
        lay(TreeRole::kBroadcastAfter, after.trees[root]);
      }
      break;
    }
  }
}

void Packer::Generation::Suggest(const std::vector<TreePair>& pairs, std::vector<double> prices) {
  for (const TreePair& pair : pairs) {
    const size_t root = static_cast<size_t>(
        std::lower_bound(active_.begin(), active_.end(), pair.reduce.root) - active_.begin());
    program_.Add(TreeRole::kReduce, root, pair.reduce, LoadsOf(network_, pair.reduce, true));
    const Loads loads = LoadsOf(network_, pair.broadcast, false);
    if (program_.Overlaps()) program_.Add(TreeRole::kBroadcast, root, pair.broadcast, loads);
    if (program_.HasSecondStage())
      program_.Add(TreeRole::kBroadcastAfter, root, pair.broadcast, loads);
  }
  if (prices.size() != resources()) return;
  best_.first = std::move(prices);
  for (double& price : best_.first) price *= program_.scale();
  if (program_.HasSecondStage()) best_.second = best_.first;
}

absl::StatusOr<Packing> Packer::Generation::Solve() {
  const bool anew = best_.first.empty();
  ChooseFirstPrices();
  if (anew) {
    AddStars();
    Fill();
  }
  int round = 1;
  for (;; ++round) {
    SYNCOPATE_RETURN_IF_ERROR(program_.Solve());
    const double value = program_.value();
    if (value - best_value_ <= options_.gap * value || round >= options_.rounds_max) break;
    const StagePrices program_prices = program_.Prices();
    // Smoothed prices give better trees, but may give none that the program would take. If its own
    // prices give none either, the program cannot be improved by trees that the pricing finds.
    size_t added = Try(Blend(best_, kSmoothing, program_prices), &program_prices);
    if (added == 0) added = Try(Blend(best_, 0.5, program_prices), &program_prices);
    if (added == 0) added = Try(program_prices, &program_prices);
    if (added == 0) break;
    program_.Forget();
  }
  return Result(round);
}

Packing Packer::Generation::Result(int rounds) const {
  Packing packing;
  packing.rounds = rounds;
  packing.pairs = program_.Pairs();
  packing.seconds_per_byte = program_.value() / program_.scale();
  packing.stage_seconds[0] = program_.StageSeconds(0) / program_.scale();
  if (program_.HasSecondStage())
    packing.stage_seconds[1] = program_.StageSeconds(1) / program_.scale();
  packing.prices = best_.first;
  packing.prices_after = best_.second;
  for (double& price : packing.prices) price /= program_.scale();
  for (double& price : packing.prices_after) price /= program_.scale();
  packing.bound = best_value_ / program_.scale();
  // With relays the trees that were found need not be the cheapest, so what they cost is no bound;
  // a lower bound on the cost of all trees has to be found for the prices.
  if (!pricer_.exact()) {
    const std::vector<double> reduce = pricer_.ReduceBounds(best_.first);
    const std::vector<double> broadcast =
        program_.Overlaps() ? pricer_.BroadcastBounds(best_.first) : std::vector<double>();
    const std::vector<double> after =
        program_.HasSecondStage() ? pricer_.BroadcastBounds(best_.second) : std::vector<double>();
    packing.bound = Bound(reduce, broadcast, after) / program_.scale();
  }
  return packing;
}

Packer::Packer(const PackingNetwork& network, std::vector<int> active,
               const PackingOptions& options)
    : generation_(std::make_unique<Generation>(network, std::move(active), options)) {}
Packer::~Packer() = default;
void Packer::Suggest(const std::vector<TreePair>& pairs, std::vector<double> prices) {
  generation_->Suggest(pairs, std::move(prices));
}
absl::StatusOr<Packing> Packer::Solve() { return generation_->Solve(); }
std::vector<TreePair> Packer::KnownPairs() const { return generation_->KnownPairs(); }
void Packer::RatesChanged() { generation_->RatesChanged(); }

}  // namespace syncopate::plan
