// The ellipsoid method with deep cuts (Grötschel, Lovász, Schrijver: Geometric algorithms and
// combinatorial optimization, 1988, chapter 3), and a binary search with it for the best packing.
#include "plan/forest/ellipsoid.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <utility>

namespace syncopate::plan {
namespace {

// Thinner than this, in units of the first ball, and rounding decides what lies inside.
constexpr double kThinnest = 1e-13;

}  // namespace

Ellipsoid::Ellipsoid(std::vector<double> center, double radius)
    : center_(std::move(center)),
      map_(center_.size() * center_.size(), 0),
      log_volume_(static_cast<double>(center_.size()) * std::log(radius)),
      direction_(center_.size()),
      step_(center_.size()) {
  for (size_t i = 0; i < size(); ++i) map_[i * size() + i] = radius;
}

// In the coordinates of the unit ball the cut is a plane at distance `depth` from the centre. The
// smallest ellipsoid around what is left of the ball is known: its centre is moved by `move` away
// from what is cut off, it is longer by `stretch` in all directions, and shorter by `squeeze` across
// the plane. All of this is one change of the map: n^2 operations, and no matrix is inverted.
bool Ellipsoid::Cut(absl::Span<const double> normal, double limit) {
  const double n = static_cast<double>(size());
  // The direction, in the ball, in which normal * x grows most, and how much.
  std::fill(direction_.begin(), direction_.end(), 0.0);
  double excess = -limit;
  double length = 0;
  for (size_t i = 0; i < size(); ++i) {
    if (normal[i] == 0) continue;
    excess += normal[i] * center_[i];
    length += normal[i] * normal[i];
    const double* row = &map_[i * size()];
    for (size_t j = 0; j < size(); ++j) direction_[j] += row[j] * normal[i];
  }
  double width = 0;
  for (const double part : direction_) width += part * part;
  width = std::sqrt(width);
  // Written so that a width that is not a number counts as too thin.
  if (!(width > kThinnest * std::sqrt(length))) return false;
  const double depth = std::max(0.0, excess) / width;  // 0: through the centre, 1: nothing is left
  if (depth >= 1) return false;
  for (double& part : direction_) part /= width;

  const double move = (1 + n * depth) / (n + 1);
  const double stretch = std::sqrt(n * n * (1 - depth * depth) / (n * n - 1));
  const double squeeze = std::sqrt((n - 1) * (1 - depth) / ((n + 1) * (1 + depth)));
  for (size_t i = 0; i < size(); ++i) {
    double* row = &map_[i * size()];
    double step = 0;
    for (size_t j = 0; j < size(); ++j) step += row[j] * direction_[j];
    center_[i] -= move * step;
    const double change = (1 - squeeze) * step;
    for (size_t j = 0; j < size(); ++j) row[j] = stretch * (row[j] - change * direction_[j]);
  }
  log_volume_ += n * std::log(stretch) + std::log(squeeze);
  return true;
}

// Solves map * u = point - centre and looks whether u is in the ball.
bool Ellipsoid::Contains(absl::Span<const double> point) const {
  const size_t n = size();
  std::vector<double> matrix = map_;
  std::vector<double> rest(n);
  for (size_t i = 0; i < n; ++i) rest[i] = point[i] - center_[i];
  // Gauss-Jordan elimination with pivots; only tests ask this, so it need not be quick.
  for (size_t column = 0; column < n; ++column) {
    size_t pivot = column;
    for (size_t row = column; row < n; ++row) {
      if (std::abs(matrix[row * n + column]) > std::abs(matrix[pivot * n + column])) pivot = row;
    }
    for (size_t j = 0; j < n; ++j) std::swap(matrix[pivot * n + j], matrix[column * n + j]);
    std::swap(rest[pivot], rest[column]);
    for (size_t row = 0; row < n; ++row) {
      if (row == column) continue;
      const double factor = matrix[row * n + column] / matrix[column * n + column];
      for (size_t j = column; j < n; ++j) matrix[row * n + j] -= factor * matrix[column * n + j];
      rest[row] -= factor * rest[column];
    }
  }
  double square = 0;
  for (size_t i = 0; i < n; ++i) square += std::pow(rest[i] / matrix[i * n + i], 2);
  return square <= 1 + 1e-9;
}

namespace {

// Algorithm 1 for one root, or for several together. The unknowns are x = capacity * y / scale: all
// of about the same size, and sum(x) <= D / scale.
class EllipsoidPacking {
 public:
  EllipsoidPacking(absl::Span<const double> capacities, absl::Span<const int> roots,
                   const TreePricing& pricing, const EllipsoidOptions& options)
      : capacities_(capacities),
        roots_(roots),
        pricing_(pricing),
        options_(options),
        // An ellipsoid on a line would need formulas of its own.
        dimensions_(std::max<size_t>(capacities.size(), 2)),
        prices_(capacities.size()),
        trees_(roots.size()),
        known_(roots.size()) {}

  void Run() {
    // Any prices become feasible if divided by what their cheapest tree costs: "a large enough D".
    for (size_t i = 0; i < prices_.size(); ++i) prices_[i] = 1 / capacities_[i];
    const double cheapest = Price();
    if (!std::isfinite(cheapest)) return;  // there is no tree
    if (cheapest <= 0) {                   // ... or one that loads nothing
      upper_ = EdgeCosts::kNone;
      return;
    }
    // The prices 1/capacity, divided by what the cheapest tree costs at them, are feasible, and
    // their sum(capacity * price) is the number of resources over that cost: the first upper bound
    // on D.
    scale_ = static_cast<double>(prices_.size()) / cheapest;
    upper_ = scale_;
    double lower = 0;
    Restart(upper_);
    while (upper_ - lower > options_.tolerance * upper_) {
      const double d = (upper_ + lower) / 2;
      // An infeasible D has shrunk the ellipsoid to (nearly) nothing, so the search starts again
      // from the ball that holds everything below the known upper bound.
      if (FindFeasible(d)) {
        upper_ = d;  // what is left of the ellipsoid holds all that is feasible for a smaller D
      } else {
        lower = d;
        Restart(upper_);
      }
    }
  }

  double bound() const { return upper_; }
  int steps() const { return steps_; }
  int pricings() const { return pricings_; }
  std::vector<std::vector<WorkerTree>>& trees() { return trees_; }

 private:
  using SparseLoad = std::vector<std::pair<size_t, double>>;  // resource, number of uses

  void Restart(double d) {
    const double limit = d / scale_;
    // The ball around all x >= 0 with sum(x) <= limit.
    ellipsoid_ = std::make_unique<Ellipsoid>(
        std::vector<double>(dimensions_, limit / static_cast<double>(dimensions_ + 1)), limit);
  }

  // Looks for prices with sum(capacity * price) <= d under which every tree costs at least 1.
  bool FindFeasible(double d) {
    for (int k = 0; k < options_.iterations; ++k) {
      ++steps_;
      // Cuts from the cheapest to find to the dearest: a negative price, then a sum that is too
      // large, then a known tree that costs less than 1, and only then a tree that has to be
      // searched for.
      const std::vector<double>& x = ellipsoid_->center();
      const size_t lowest = std::min_element(x.begin(), x.end()) - x.begin();
      if (x[lowest] < 0) {
        normal_.assign(dimensions_, 0);
        normal_[lowest] = -1;
        if (!ellipsoid_->Cut(normal_, 0)) return false;
        continue;
      }
      double sum = 0;
      for (const double part : x) sum += part;
      if (sum * scale_ > d) {
        normal_.assign(dimensions_, 1);
        if (!ellipsoid_->Cut(normal_, d / scale_)) return false;
        continue;
      }
      for (size_t i = 0; i < prices_.size(); ++i) prices_[i] = x[i] * scale_ / capacities_[i];
      if (MostViolated() >= 1 && Price() >= 1) return true;
      // sum(load * price) >= 1 for the tree whose loads were left in cut_.
      normal_.assign(dimensions_, 0);
      for (size_t i = 0; i < prices_.size(); ++i) normal_[i] = -cut_[i] * scale_ / capacities_[i];
      if (!ellipsoid_->Cut(normal_, -1)) return false;
    }
    return false;
  }

  // The cost of the cheapest tree that is already known; its loads go to cut_.
  double MostViolated() {
    double least = EdgeCosts::kNone;
    const SparseLoad* cheapest = nullptr;
    for (const SparseLoad& load : loads_) {
      double cost = 0;
      for (const auto& [resource, uses] : load) cost += uses * prices_[resource];
      if (cost >= least) continue;
      least = cost;
      cheapest = &load;
    }
    cut_.assign(prices_.size(), 0);
    if (cheapest == nullptr) return least;
    for (const auto& [resource, uses] : *cheapest) cut_[resource] = uses;
    return least;
  }

  // The cost of the cheapest tree of all; its loads go to cut_, and all that were found to trees_.
  double Price() {
    double least = EdgeCosts::kNone;
    for (size_t i = 0; i < roots_.size(); ++i) {
      double cost = EdgeCosts::kNone;
      std::vector<double> load(prices_.size(), 0);
      WorkerTree tree = pricing_(prices_, roots_[i], &cost, &load);
      ++pricings_;
      if (!std::isfinite(cost)) continue;
      if (cost < least) {
        least = cost;
        cut_ = load;
      }
      if (!known_[i].insert(tree.parent).second) continue;
      trees_[i].push_back(std::move(tree));
      SparseLoad& sparse = loads_.emplace_back();
      for (size_t resource = 0; resource < load.size(); ++resource) {
        if (load[resource] != 0) sparse.emplace_back(resource, load[resource]);
      }
    }
    return least;
  }

  const absl::Span<const double> capacities_;
  const absl::Span<const int> roots_;
  const TreePricing& pricing_;
  const EllipsoidOptions& options_;
  const size_t dimensions_;
  double scale_ = 1;
  double upper_ = 0;
  std::unique_ptr<Ellipsoid> ellipsoid_;
  std::vector<double> prices_;
  std::vector<double> normal_;
  std::vector<double> cut_;
  std::vector<std::vector<WorkerTree>> trees_;     // by root
  std::vector<std::set<std::vector<int>>> known_;  // by root: the parents in these trees
  std::vector<SparseLoad> loads_;                  // of all these trees
  int steps_ = 0;
  int pricings_ = 0;
};

}  // namespace

EllipsoidTrees PackByEllipsoid(absl::Span<const double> capacities, absl::Span<const int> roots,
                               const TreePricing& pricing, const EllipsoidOptions& options) {
  EllipsoidTrees result;
  const size_t together = options.roots_together ? std::max<size_t>(roots.size(), 1) : 1;
  for (size_t first = 0; first < roots.size(); first += together) {
    EllipsoidPacking packing(capacities, roots.subspan(first, together), pricing, options);
    packing.Run();
    for (std::vector<WorkerTree>& trees : packing.trees()) result.trees.push_back(std::move(trees));
    result.bounds.push_back(packing.bound());
    result.steps += packing.steps();
    result.pricings += packing.pricings();
  }
  return result;
}

}  // namespace syncopate::plan
