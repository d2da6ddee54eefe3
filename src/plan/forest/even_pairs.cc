#include "plan/forest/even_pairs.h"

#include <algorithm>
#include <cmath>

namespace syncopate::plan {
namespace {

// The part of the time that one more edge on the way to the root may cost.
constexpr double kDepthWeight = 0.002;
constexpr double kLeastGain = 1e-6;
constexpr int kMovesPerWorker = 8;

class Search {
 public:
  Search(const PackingNetwork& network, const std::vector<int>& active,
         const std::vector<int>& roots)
      : network_(network), active_(active), busy_(network.resources().size(), 0) {
    for (const int root : roots) {
      WorkerTree star;
      star.root = root;
      star.parent.assign(network.size(), -1);
      for (const int member : active) star.parent[member] = root;
      pairs_.push_back({star, star, 1.0 / static_cast<double>(roots.size()), false});
      for (const int member : active) {
        if (member == root) continue;
        Load(true, member, root, 1);
        Load(false, member, root, 1);
      }
    }
    // Busy times are of the order of one when the load is even.
    for (const double busy : busy_) scale_ = std::max(scale_, busy);
    scale_ = std::max(
        scale_ * static_cast<double>(roots.size()) / static_cast<double>(active.size()), 1e-300);
  }

  std::vector<TreePair> Run() {
    for (const TreePair& pair : pairs_) {
      depths_ += DepthOfTree(pair.reduce) + DepthOfTree(pair.broadcast);
    }
    double now = Value(depths_);
    for (size_t move = 0; move < kMovesPerWorker * active_.size() * pairs_.size(); ++move) {
      if (!Improve(now)) break;
    }
    return pairs_;
  }

 private:
  struct Move {
    WorkerTree* tree = nullptr;
    bool reduce = false;
    int worker = 0;
    int parent = 0;
  };

  // A resource's busy time grows by `times` uses on the edge between a worker and its parent.
  void Load(bool reduce, int worker, int parent, double times) {
    for (const int resource :
         reduce ? network_.Loads(worker, parent) : network_.Loads(parent, worker)) {
      busy_[resource] += times / network_.resources()[resource].rate;
    }
  }

  // The norm of the busy times, with the power 8, a smooth stand-in for their maximum: the maximum itself
  // does not change while several resources are equally busy, so no single move would seem to help. The
  // busiest count most, but the others are not forgotten.
  // `depths`: of all trees together.
  double Value(int depths) const {
    double value = 0;
    for (const double busy : busy_) {
      const double square = busy * busy / (scale_ * scale_);
      value += square * square * square * square;
    }
    return std::pow(value, 1.0 / 8) *
           (1 + kDepthWeight * depths / static_cast<double>(pairs_.size()));
  }

  // As DepthOf(), without memory of its own: the search asks after every move that it tries.
  int DepthOfTree(const WorkerTree& tree) {
    depth_.assign(tree.parent.size(), -1);
    depth_[tree.root] = 0;
    int most = 0;
    for (const int worker : active_) {
      int above = 0;  // edges up to one whose depth is known
      int at = worker;
      for (; depth_[at] < 0; at = tree.parent[at]) ++above;
      int depth = depth_[at] + above;
      most = std::max(most, depth);
      for (at = worker; depth_[at] < 0; at = tree.parent[at]) depth_[at] = depth--;
    }
    return most;
  }

  static bool IsBelow(const WorkerTree& tree, int worker, int above) {
    for (int at = worker; at != tree.root; at = tree.parent[at]) {
      if (at == above) return true;
    }
    return above == tree.root;
  }

  // Makes the best move of one worker to another parent, if there is one that helps.
  bool Improve(double& now) {
    double best = now * (1 - kLeastGain);
    int best_depths = depths_;
    Move chosen;
    for (TreePair& pair : pairs_) {
      for (const bool reduce : {true, false}) {
        WorkerTree& tree = reduce ? pair.reduce : pair.broadcast;
        const int others = depths_ - DepthOfTree(tree);
        for (const int worker : active_) {
          if (worker == tree.root) continue;
          const int before = tree.parent[worker];
          for (const int parent : active_) {
            if (parent == before || IsBelow(tree, parent, worker)) continue;
            Make({&tree, reduce, worker, parent});
            const int depths = others + DepthOfTree(tree);
            const double value = Value(depths);
            if (value < best) {
              best = value;
              best_depths = depths;
              chosen = {&tree, reduce, worker, parent};
            }
            Make({&tree, reduce, worker, before});
          }
        }
      }
    }
    if (chosen.tree == nullptr) return false;
    Make(chosen);
    now = best;
    depths_ = best_depths;
    return true;
  }

  void Make(const Move& move) {
    Load(move.reduce, move.worker, move.tree->parent[move.worker], -1);
    move.tree->parent[move.worker] = move.parent;
    Load(move.reduce, move.worker, move.parent, 1);
  }

  const PackingNetwork& network_;
  const std::vector<int>& active_;
  std::vector<TreePair> pairs_;
  std::vector<double> busy_;  // by resource: seconds for each byte of every pair
  double scale_ = 0;
  int depths_ = 0;          // of all trees together
  std::vector<int> depth_;  // by worker, of one tree
};

}  // namespace

std::vector<TreePair> FindEvenPairs(const PackingNetwork& network, const std::vector<int>& active,
                                    const std::vector<int>& roots) {
  return Search(network, active, roots).Run();
}

}  // namespace syncopate::plan
