// The clusters and active sets with which Zhang, Wu and Li evaluate tree packing ("Near-optimal
// topology-adaptive parameter synchronization in distributed DNN training"). What the text leaves
// open, and what is assumed here instead, is said beside each part and in docs/forest-figures.md.
#ifndef SYNCOPATE_PLAN_FOREST_PAPER_TOPOLOGIES_H_
#define SYNCOPATE_PLAN_FOREST_PAPER_TOPOLOGIES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/topology.h"

namespace syncopate::plan {

// How the GPUs of a machine are joined (Figure 3(a) and (b), of which there is no text).
enum class InsideNetwork {
  kPairs,     // every pair has a full-duplex link of its own; the default for 4 GPUs
  kSwitches,  // two PCIe switches with half of the GPUs each, a link between them
  // The hybrid cube mesh of a DGX-1, 8 GPUs: A-D and E-H fully joined, and A-E, B-F, C-G, D-H, one
  // link of the given rate each. Pairs without a link send through the GPU between them.
  kCubeMesh,
};
absl::string_view Name(InsideNetwork inside);  // "pairs", "switches", "cube-mesh"

// What a rate between machines belongs to (Figure 3(d)).
enum class BetweenNetwork {
  kGpuPairs,      // every ordered pair of GPUs of different machines has it for itself
  kMachinePairs,  // all GPU pairs of an ordered pair of machines share it
  kSharedNics,    // all that leaves a machine shares it, and all that enters
};
absl::string_view Name(BetweenNetwork between);  // "gpu-pairs", "machine-pairs", "shared-nics"
absl::StatusOr<BetweenNetwork> ParseBetweenNetwork(absl::string_view name);

struct PaperCluster {
  int machines = 4;
  int gpus = 4;  // in each
  InsideNetwork inside = InsideNetwork::kPairs;
  double inside_rate = 12.5e9;  // bytes/s of a link, each direction
  BetweenNetwork between = BetweenNetwork::kGpuPairs;
  double between_rate = 1.25e9;  // bytes/s, each direction
};

// With 4 GPUs the links inside carry 100 Gb/s (PCIe), with 8 they are a cube mesh of 300 Gb/s
// (NVLink).
PaperCluster MakePaperCluster(int machines, int gpus, BetweenNetwork between,
                              double between_gigabits);

// Devices "m0.A", "m0.B", ..., "m1.A", ... on hosts "m0", "m1", ...; worker machine * gpus + i is
// on the i-th GPU of its machine. Latencies are zero, as in the paper's model. InvalidArgument for
// counts below 1 or above 26 GPUs, rates that are not positive, a cube mesh without 8 GPUs, or more
// links than a topology may have.
absl::StatusOr<Topology> PaperTopology(const PaperCluster& cluster);

// Some of a cluster's workers, by a code for each machine, as in Figures 5 and 6: a number k is the
// first k GPUs, "2G" is A and G, "3G" is A, B, G and "4H" is A, B, G, H. InvalidArgument for other
// codes, GPUs that the machine does not have, or if nobody is active.
struct ActiveSet {
  std::string name;  // "(4,3,2,1)"
  std::vector<int> workers;
};
absl::StatusOr<ActiveSet> MakeActiveSet(const PaperCluster& cluster,
                                        absl::Span<const std::string> codes);

// The sets that we use where the text does not list those of its figures: of four machines with
// four GPUs (Figures 5 and 7), and of eight machines with eight (Figure 6).
const std::vector<std::vector<std::string>>& ActiveCodesOfFourByFour();
const std::vector<std::vector<std::string>>& ActiveCodesOfEightByEight();

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_FOREST_PAPER_TOPOLOGIES_H_
