// Packs reduce and broadcast trees into a network: how the bytes of an all-reduce are spread over
// trees so that the busiest part of the network is done soonest.
//
// A *pair* is a reduce tree and a broadcast tree of one root; it owns a share of the bytes. The
// linear program over all pairs p, with load(p, r) how often p uses resource r of rate c(r):
//     minimise T   subject to   sum of share(p) = 1   and   sum of share(p) load(p, r) <= c(r) T.
// It is solved by column generation: at the LP's prices y(r), the cheapest reduce tree and the
// cheapest broadcast tree of every root become new pairs while they cost less than T. For any
// prices with sum of c(r) y(r) = 1, the least over roots of what its cheapest two trees cost is a
// bound that no packing can be quicker than. docs/forest.md derives both.
#ifndef SYNCOPATE_PLAN_FOREST_PACKING_H_
#define SYNCOPATE_PLAN_FOREST_PACKING_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "plan/forest/packing_network.h"
#include "plan/forest/worker_tree.h"

namespace syncopate::plan {

// Over members of a PackingNetwork. In both trees an edge joins a worker with its parent; the
// reduce tree sends towards the root.
struct TreePair {
  WorkerTree reduce;
  WorkerTree broadcast;
  double share = 0;    // of the bytes
  bool after = false;  // the broadcast belongs to the second stage
};

enum class Stages {
  // Reduce and broadcast overlap from the beginning. Never worse than the others: two stages that
  // last T1 and T2 can always be spread over one of T1 + T2.
  kOne,
  // A stage of T1 in which trees reduce and some already broadcast, then one of T2 in which the
  // rest is broadcast; T1 + T2 is minimised. Equal to kOne, which the tests show.
  kTwo,
  // The published LP (4): all is reduced, then all is broadcast, both stages of one length.
  kSeparate,
  // The published LP (8): as kTwo, but both stages of one length.
  kEqualOverlapped,
};

struct PackingOptions {
  Stages stages = Stages::kOne;
  double gap = 0.002;     // stop when the packing is proved to be this near to the bound
  int rounds_max = 2000;  // of column generation
};

struct Packing {
  std::vector<TreePair> pairs;  // with a share; the shares sum to 1
  double seconds_per_byte = 0;  // T, or T1 + T2
  double stage_seconds[2] = {0, 0};
  // The best prices found, of the first and the second stage (empty for kOne), and the bound on
  // seconds_per_byte that they prove.
  std::vector<double> prices;
  std::vector<double> prices_after;
  double bound = 0;
  int rounds = 0;
};

// How often trees load a resource.
struct TreeLoad {
  int resource = 0;
  double times = 0;
};
// The loads of a tree, and of both trees of a pair, sorted by resource and each resource once.
std::vector<TreeLoad> LoadsOf(const PackingNetwork& network, const WorkerTree& tree, bool reduce);
std::vector<TreeLoad> LoadsOf(const PackingNetwork& network, const TreePair& pair);

// Keeps the linear program, so that it can be solved again from where it stood.
class Packer {
 public:
  // `network` must outlive this. `active`: sorted members.
  Packer(const PackingNetwork& network, std::vector<int> active, const PackingOptions& options);
  ~Packer();

  // Pairs to begin with, and prices that are thought to be near the best ones.
  void Suggest(const std::vector<TreePair>& pairs, std::vector<double> prices);
  // FailedPrecondition if the solver fails.
  absl::StatusOr<Packing> Solve();
  // Pairs of all trees that were met, in use or not; their shares are 0.
  std::vector<TreePair> KnownPairs() const;
  // After the network's rates have changed: keeps trees and basis.
  void RatesChanged();

 private:
  class Generation;
  std::unique_ptr<Generation> generation_;
};

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_FOREST_PACKING_H_
