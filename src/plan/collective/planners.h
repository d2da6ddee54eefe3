// The planners of collectives: each a pure function from a request to a program, one algorithm a
// file. docs/collectives.md says what each is good for and what it costs.
//
// A planner answers every valid request: any number of workers, any active subset, any root,
// buffers that are empty or smaller than the number of workers. A request or options that are not
// valid give InvalidArgument, as does a program that would be larger than programs may be.
#ifndef SYNCOPATE_PLAN_COLLECTIVE_PLANNERS_H_
#define SYNCOPATE_PLAN_COLLECTIVE_PLANNERS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/program.h"
#include "plan/collective/request.h"

namespace syncopate::plan {

using Planner =
    std::function<absl::StatusOr<Program>(const CollectiveRequest&, const PlannerOptions&)>;

struct PlannerInfo {
  absl::string_view name;  // "ring"; also Program::algorithm of what it makes
  Collective collective = Collective::kAllReduce;
  std::string summary;  // one line for people
  Planner plan;
};

// All of them, grouped by collective. Of several for one collective, the first is a sound choice
// where nothing is known about the network.
const std::vector<PlannerInfo>& AllPlanners();

// The planner of that name, or NotFound with the names that exist for the collective.
absl::StatusOr<const PlannerInfo*> FindPlanner(Collective collective, absl::string_view name);

// ring.cc: around a ring of workers, each share in options.pieces pieces, in options.order.
absl::StatusOr<Program> PlanRingAllReduce(const CollectiveRequest&, const PlannerOptions&);
absl::StatusOr<Program> PlanRingReduceScatter(const CollectiveRequest&, const PlannerOptions&);
absl::StatusOr<Program> PlanRingAllGather(const CollectiveRequest&, const PlannerOptions&);

// direct.cc: every pair of workers that must exchange data does so in one message.
absl::StatusOr<Program> PlanDirectAllReduce(const CollectiveRequest&, const PlannerOptions&);
absl::StatusOr<Program> PlanDirectReduceScatter(const CollectiveRequest&, const PlannerOptions&);
absl::StatusOr<Program> PlanDirectAllGather(const CollectiveRequest&, const PlannerOptions&);
absl::StatusOr<Program> PlanDirectBroadcast(const CollectiveRequest&, const PlannerOptions&);
absl::StatusOr<Program> PlanDirectReduce(const CollectiveRequest&, const PlannerOptions&);
absl::StatusOr<Program> PlanDirectGather(const CollectiveRequest&, const PlannerOptions&);
absl::StatusOr<Program> PlanDirectScatter(const CollectiveRequest&, const PlannerOptions&);
absl::StatusOr<Program> PlanDirectAllToAll(const CollectiveRequest&, const PlannerOptions&);
absl::StatusOr<Program> PlanDirectSendReceive(const CollectiveRequest&, const PlannerOptions&);

// one_shot.cc: everybody sends everything to everybody and adds all of it, in one round.
absl::StatusOr<Program> PlanOneShotAllReduce(const CollectiveRequest&, const PlannerOptions&);

// recursive_doubling.cc: partners at distances 1, 2, 4, ... exchange their sums.
absl::StatusOr<Program> PlanRecursiveDoublingAllReduce(const CollectiveRequest&,
                                                       const PlannerOptions&);

// halving_doubling.cc: partners exchange halves of what is left, then collect them in reverse.
absl::StatusOr<Program> PlanHalvingDoublingAllReduce(const CollectiveRequest&,
                                                     const PlannerOptions&);

// double_tree.cc: half of the data through each of two binary trees, options.pieces pieces each.
absl::StatusOr<Program> PlanDoubleTreeAllReduce(const CollectiveRequest&, const PlannerOptions&);

// hierarchical.cc: shares inside the groups of options.levels, then among the groups, and back;
// options.pieces pieces of the data follow each other through the levels.
absl::StatusOr<Program> PlanHierarchicalAllReduce(const CollectiveRequest&, const PlannerOptions&);

// parameter_server.cc: each of options.servers adds its share of the data and hands it out.
absl::StatusOr<Program> PlanParameterServerAllReduce(const CollectiveRequest&,
                                                     const PlannerOptions&);

// blink.cc: along trees inside the machines, which are the groups of options.levels[0], and around
// rings between them; options.pieces pieces follow each other.
absl::StatusOr<Program> PlanBlinkAllReduce(const CollectiveRequest&, const PlannerOptions&);

// plink.cc: one tree inside each machine, one among the machines' leaders.
absl::StatusOr<Program> PlanPlinkAllReduce(const CollectiveRequest&, const PlannerOptions&);

// hierarchical_ring.cc: around rings inside the machines and between them.
absl::StatusOr<Program> PlanHierarchicalRingAllReduce(const CollectiveRequest&,
                                                      const PlannerOptions&);

// binomial.cc: along a binomial tree.
absl::StatusOr<Program> PlanBinomialBroadcast(const CollectiveRequest&, const PlannerOptions&);
absl::StatusOr<Program> PlanBinomialReduce(const CollectiveRequest&, const PlannerOptions&);
absl::StatusOr<Program> PlanBinomialGather(const CollectiveRequest&, const PlannerOptions&);
absl::StatusOr<Program> PlanBinomialScatter(const CollectiveRequest&, const PlannerOptions&);

// chain.cc: from worker to worker in options.pieces pieces, in options.order with the root first
// (reduce: last).
absl::StatusOr<Program> PlanChainBroadcast(const CollectiveRequest&, const PlannerOptions&);
absl::StatusOr<Program> PlanChainReduce(const CollectiveRequest&, const PlannerOptions&);

// scatter_all_gather.cc: the root deals out shares, which then go around a ring.
absl::StatusOr<Program> PlanScatterAllGatherBroadcast(const CollectiveRequest&,
                                                      const PlannerOptions&);

// dissemination.cc: a barrier in which news spreads over distances 1, 2, 4, ...
absl::StatusOr<Program> PlanDisseminationBarrier(const CollectiveRequest&, const PlannerOptions&);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_COLLECTIVE_PLANNERS_H_
