// The linear program over trees behind a packing: the restricted master program of the column
// generation that packing.h describes. It knows rows, columns, their prices and what a solution
// says; which trees become columns is decided in packing.cc.
//
// Its columns are single trees, not pairs: every root has a share, and its reduce trees and its
// broadcast trees must each carry that share. So n trees of each kind stand for all n * n pairs
// that can be made of them.
//
// Inside, rates are divided by the largest of them, so that the numbers that the solver sees are
// near 1. All prices and values here are of these scaled rates; divide by scale() for those of the
// network.
#ifndef SYNCOPATE_PLAN_FOREST_TREE_PROGRAM_H_
#define SYNCOPATE_PLAN_FOREST_TREE_PROGRAM_H_

#include <coin/ClpSimplex.hpp>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "plan/forest/packing.h"
#include "plan/forest/packing_network.h"
#include "plan/forest/worker_tree.h"

namespace syncopate::plan {

// What a tree is for.
enum class TreeRole { kReduce, kBroadcast, kBroadcastAfter };

// Prices of the resources in both stages; the second is empty where there is none.
struct StagePrices {
  std::vector<double> first;
  std::vector<double> second;
};

class TreeProgram {
 public:
  // What is left out of the solution because it is nothing but rounding.
  static constexpr double kTolerance = 1e-9;

  // `network` must outlive this. Roots are named by their index among `roots` active members.
  TreeProgram(const PackingNetwork& network, size_t roots, Stages stages);

  bool HasSecondStage() const { return stages_ != Stages::kOne; }
  bool Overlaps() const { return stages_ != Stages::kSeparate; }
  bool EqualStages() const {
    return stages_ == Stages::kSeparate || stages_ == Stages::kEqualOverlapped;
  }
  size_t stages() const { return HasSecondStage() ? 2 : 1; }
  size_t resources() const { return network_.resources().size(); }
  double scale() const { return scale_; }
  double Rate(size_t resource) const { return network_.resources()[resource].rate / scale_; }

  // Takes the rates of the network again. Trees and basis stay: they are near the new ones.
  void SetRates();
  // Adds a tree as a column; false if it is one already.
  bool Add(TreeRole role, size_t root, const WorkerTree& tree, absl::Span<const TreeLoad> loads);
  // FailedPrecondition if the solver fails.
  absl::Status Solve();
  // Drops, when there are many trees, the half of the unused ones that are dearest at the program's
  // prices. A tree in the basis stays, so the program's value does not change.
  void Forget();

  // Scales prices so that the constraints of the dual program hold: what a second of all resources
  // costs is at most what the objective counts it for. Only such prices prove a bound.
  void Normalize(StagePrices& prices) const;

  // Of the last solution:
  double value() const { return lp_.objectiveValue(); }
  double StageSeconds(size_t stage) const;
  // The prices of the resources, normalized.
  StagePrices Prices() const;
  // What the program would pay at most for another tree of that root.
  double Worth(TreeRole role, size_t root) const {
    return lp_.dualRowSolution()[BalanceRow(root, role == TreeRole::kReduce)];
  }
  // The trees with a share, joined to pairs, whose shares sum to 1.
  std::vector<TreePair> Pairs() const;

  // Pairs of all trees, in use or not; their shares are 0. The pairs of each root begin with its
  // shallowest trees. Every tree is in some pair, unless its root has trees of one kind only.
  std::vector<TreePair> KnownPairs() const;

 private:
  struct Column {
    TreeRole role;
    size_t root;
    WorkerTree tree;
  };

  // The rows, in this order: the resources in the first stage, those in the second, two balances
  // for each root (what its reduce trees carry less its share, what its broadcast trees carry less
  // its share), and the sum of the shares.
  int BalanceRow(size_t root, bool reduce) const {
    return static_cast<int>(stages() * resources() + 2 * root + (reduce ? 0 : 1));
  }
  int SumRow() const { return BalanceRow(roots_, true); }
  // The columns, in this order: the times of the stages, the shares of the roots, the trees.
  size_t TimeColumns() const { return stages_ == Stages::kTwo ? 2 : 1; }
  size_t FirstTreeColumn() const { return TimeColumns() + roots_; }

  const PackingNetwork& network_;
  const size_t roots_;
  const Stages stages_;
  double scale_ = 0;  // rates are divided by it

  ClpSimplex lp_;
  std::vector<Column> pool_;  // of the program's columns from FirstTreeColumn() on
  // The hashes of role, root and tree of the columns in pool_.
  absl::flat_hash_set<size_t> known_;
};

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_FOREST_TREE_PROGRAM_H_
