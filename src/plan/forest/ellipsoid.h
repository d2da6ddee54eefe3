// The ellipsoid method, and the tree packing that the paper builds on it (its Algorithm 1): kept to
// compare column generation with.
#ifndef SYNCOPATE_PLAN_FOREST_ELLIPSOID_H_
#define SYNCOPATE_PLAN_FOREST_ELLIPSOID_H_

#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "plan/forest/worker_tree.h"

namespace syncopate::plan {

// An ellipsoid around the points that some linear inequalities leave over. It is kept as an affine
// map of the unit ball, which rounding cannot turn into something else; a cut is one rank-one
// change of the map.
class Ellipsoid {
 public:
  // A ball. At least two dimensions.
  Ellipsoid(std::vector<double> center, double radius);

  const std::vector<double>& center() const { return center_; }
  // The logarithm of the volume, relative to the unit ball's.
  double log_volume() const { return log_volume_; }
  bool Contains(absl::Span<const double> point) const;

  // Shrinks to the smallest ellipsoid around the part in which normal * x <= limit. The centre must
  // not be inside that part. False if the part is empty or too thin to tell: then nothing changes.
  bool Cut(absl::Span<const double> normal, double limit);

 private:
  size_t size() const { return center_.size(); }

  std::vector<double> center_;
  std::vector<double> map_;  // by row: the points are center + map * u, |u| <= 1
  double log_volume_ = 0;
  std::vector<double> direction_;
  std::vector<double> step_;
};

struct EllipsoidOptions {
  int iterations = 2000;    // of the ellipsoid per value of D
  double tolerance = 0.01;  // the binary search ends when D is known up to this part of it
  // Search once for the trees of all roots together, where the paper takes the roots one by one.
  bool roots_together = false;
};

// The cheapest tree for `root` when each use of resource r costs prices[r] >= 0; its cost (infinity
// if there is none), and how often it uses each resource.
using TreePricing = std::function<WorkerTree(const std::vector<double>& prices, int root,
                                             double* cost, std::vector<double>* load)>;

struct EllipsoidTrees {
  std::vector<std::vector<WorkerTree>> trees;  // by position among the roots, each tree once
  // The bound on the sum of the weights of the trees of one root, as its binary search left it;
  // with roots_together the first is the bound for all. Right if the pricing is exact.
  std::vector<double> bounds;
  int steps = 0;     // of the ellipsoid, in all
  int pricings = 0;  // calls of the pricing
};

// The trees that the search for the least D meets for which prices y >= 0 with
// sum(capacity * y) <= D exist under which no tree costs less than 1. A linear program over these
// trees then gives their weights. Capacities are positive.
EllipsoidTrees PackByEllipsoid(absl::Span<const double> capacities, absl::Span<const int> roots,
                               const TreePricing& pricing, const EllipsoidOptions& options);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_FOREST_ELLIPSOID_H_
