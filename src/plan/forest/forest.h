// The forest planner: an all-reduce over many trees at once, on any network, with any of the
// workers active, and with a certificate of how good it is. docs/forest.md has the mathematics.
#ifndef SYNCOPATE_PLAN_FOREST_FOREST_H_
#define SYNCOPATE_PLAN_FOREST_FOREST_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/program.h"
#include "model/topology.h"
#include "plan/collective/request.h"
#include "plan/forest/certificate.h"
#include "plan/forest/packing.h"
#include "plan/forest/turns.h"

namespace syncopate::plan {

inline constexpr int kFewPairsMembersMax = 24;

struct ForestOptions {
  Stages stages = Stages::kOne;
  bool relays = true;  // workers that are not active may pass data on
  double gap = 0.005;  // how near to the bound the packing must be
  double loss = 0.01;  // how much slower the plan may become so that it has fewer trees
  // Prefer few deep trees, each of which uses the network evenly, to many shallow ones. It is
  // ignored for more than kFewPairsMembersMax members.
  bool few = false;
  int depth_max = 0;     // the largest depth of a tree; 0: no limit
  int trees_max = 0;     // the largest number of pairs of trees; 0: no limit
  int rounds_max = 400;  // the largest number of rounds of column generation
};

// A part of the network under the plan.
struct ForestLoad {
  NetworkPart part;
  double bytes = 0;        // the bytes that cross it for each byte of data
  double utilisation = 0;  // the part of the plan's time for which it is busy
};

struct ForestPlan {
  int workers = 0;
  std::vector<int> active;
  std::vector<TreePair> pairs;  // over ranks, largest share first
  // Seconds for each byte of a worker's data, with long enough pipelines.
  double seconds_per_byte = 0;
  double stage_seconds[2] = {0, 0};
  double packed_seconds = 0;  // before trees were dropped
  size_t packed_pairs = 0;
  int depth = 0;  // of the deepest tree
  int rounds = 0;
  std::vector<ForestLoad> loads;  // of every link and capacity that carries something
  ForestCertificate certificate;
};

// Plans for one network and set of active workers, and again when rates change.
class ForestPlanner {
 public:
  // InvalidArgument if `active` or `placement` do not fit the topology, which must be valid.
  static absl::StatusOr<ForestPlanner> Make(const Topology& topology,
                                            absl::Span<const int> placement,
                                            absl::Span<const int> active,
                                            const ForestOptions& options);
  ForestPlanner(ForestPlanner&&) = default;
  ForestPlanner& operator=(ForestPlanner&&) = default;

  absl::StatusOr<ForestPlan> Plan();
  // Another version of the topology: Plan() then starts from what it found before.
  // FailedPrecondition if more than rates and latencies differ.
  absl::Status Update(const Topology& topology);

 private:
  ForestPlanner() = default;
  std::vector<int> ActiveMembers() const;
  // Few of the trees that were packed, with shares of their own.
  absl::StatusOr<std::vector<TreePair>> ChooseTrees(const Packing& packing);
  absl::StatusOr<std::vector<TreePair>> ChooseFewTrees(const Packing& packing) const;
  absl::StatusOr<std::vector<TreePair>> KeepFewWithHeadroom(const Packing& packing,
                                                            std::vector<TreePair> candidates,
                                                            const std::vector<TreePair>& found);
  // The network that trees are packed into.
  const PackingNetwork& packed() const { return joined_ != nullptr ? *joined_ : *network_; }
  void MakePacker();
  void JoinWhatTurns();
  bool AllActive() const;
  // How long a plan of few trees may take. If all are active it is near the bound too, not only
  // near the packing.
  double SecondsMax(const Packing& packing) const;
  // Whether the trees of the last plan are still good enough; gives them their best shares then.
  absl::StatusOr<bool> SharesForOldTrees(double seconds_max);
  // For many workers in a network whose links form a tree; nothing for others, or if the plan is
  // not good enough and there is another way.
  absl::StatusOr<std::optional<ForestPlan>> PlanTreeNetwork();
  // The plan of these pairs, with its proof.
  ForestPlan Finish(const Packing& packing, std::vector<TreePair> pairs) const;
  ForestPlan PlanNothing() const;
  ForestPlan Describe(const Packing& packing, std::vector<TreePair> pairs) const;

  Topology topology_;
  std::vector<int> placement_;
  std::vector<int> active_;
  ForestOptions options_;
  std::unique_ptr<PackingNetwork> network_;
  // The network with one link of each kind, if it has many that are alike; else null.
  std::unique_ptr<PackingNetwork> joined_;
  Turns turns_;
  std::unique_ptr<Packer> packer_;  // of packed()
  std::vector<TreePair> pairs_;     // of the last plan, over members, packed into packed()
};

// Make() and Plan() at once.
absl::StatusOr<ForestPlan> PlanForest(const Topology& topology, absl::Span<const int> placement,
                                      absl::Span<const int> active, const ForestOptions& options);

// The program that moves the request's data over the plan's trees, in sub-chunks of about
// `chunk_elements`; each pair owns a range of the elements in proportion to its share. The request
// must be an all-reduce of the plan's workers and active set.
absl::StatusOr<Program> MakeForestProgram(const CollectiveRequest& request, const ForestPlan& plan,
                                          uint64_t chunk_elements);

// The same program for runtimes that cut all data evenly: it has `chunks` chunks of one size (or
// one element more). Each pair owns a whole number of them, as near to its share as that allows.
// Pairs whose share is too small for one are left out, so the plan becomes a little slower.
absl::StatusOr<Program> MakeEvenForestProgram(const CollectiveRequest& request,
                                              const ForestPlan& plan, uint32_t chunks);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_FOREST_FOREST_H_
