// The list of planners.
#include "plan/collective/planners.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace syncopate::plan {

const std::vector<PlannerInfo>& AllPlanners() {
  using enum Collective;
  static const auto* planners = new std::vector<PlannerInfo>{
      {"ring", kAllReduce, "around a ring: least traffic, neighbours only, many rounds",
       PlanRingAllReduce},
      {"direct", kAllReduce, "every worker reduces its share straight from all peers: two rounds",
       PlanDirectAllReduce},
      {"one-shot", kAllReduce, "everybody sends everything to everybody: one round, tiny buffers",
       PlanOneShotAllReduce},
      {"recursive-doubling", kAllReduce, "partners exchange sums: few rounds, small buffers",
       PlanRecursiveDoublingAllReduce},
      {"halving-doubling", kAllReduce,
       "partners exchange halves: least traffic in few rounds, powers of two",
       PlanHalvingDoublingAllReduce},
      {"double-tree", kAllReduce, "two pipelined binary trees: large buffers, many workers",
       PlanDoubleTreeAllReduce},
      {"hierarchical", kAllReduce, "inside groups, then among them: slow links between groups",
       PlanHierarchicalAllReduce},
      {"parameter-server", kAllReduce, "servers add shares: servers with faster links",
       PlanParameterServerAllReduce},
      {"blink", kAllReduce, "packed trees inside machines, rings between: many links inside",
       PlanBlinkAllReduce},
      {"plink", kAllReduce, "a tree inside each machine, a tree among leaders: many machines",
       PlanPlinkAllReduce},
      {"hierarchical-ring", kAllReduce, "rings inside machines, rings between: neighbours only",
       PlanHierarchicalRingAllReduce},
      {"binomial", kReduce, "along a binomial tree: small buffers", PlanBinomialReduce},
      {"chain", kReduce, "from worker to worker in pieces: large buffers", PlanChainReduce},
      {"direct", kReduce, "everybody straight to the root: one round", PlanDirectReduce},
      {"binomial", kBroadcast, "along a binomial tree: small buffers", PlanBinomialBroadcast},
      {"chain", kBroadcast, "from worker to worker in pieces: large buffers", PlanChainBroadcast},
      {"scatter-all-gather", kBroadcast,
       "the root deals shares that go around a ring: large buffers", PlanScatterAllGatherBroadcast},
      {"direct", kBroadcast, "the root straight to everybody: one round", PlanDirectBroadcast},
      {"ring", kAllGather, "around a ring: neighbours only", PlanRingAllGather},
      {"direct", kAllGather, "everybody straight to everybody: one round", PlanDirectAllGather},
      {"ring", kReduceScatter, "around a ring: neighbours only", PlanRingReduceScatter},
      {"direct", kReduceScatter, "everybody straight to everybody: one round",
       PlanDirectReduceScatter},
      {"direct", kGather, "everybody straight to the root: one round", PlanDirectGather},
      {"binomial", kGather, "along a binomial tree: small blocks, many workers",
       PlanBinomialGather},
      {"direct", kScatter, "the root straight to everybody: one round", PlanDirectScatter},
      {"binomial", kScatter, "along a binomial tree: small blocks, many workers",
       PlanBinomialScatter},
      {"direct", kAllToAll, "everybody straight to everybody, out of a copy", PlanDirectAllToAll},
      {"dissemination", kBarrier, "news spreads over distances 1, 2, 4, ...",
       PlanDisseminationBarrier},
      {"direct", kSendReceive, "one message", PlanDirectSendReceive},
  };
  return *planners;
}

absl::StatusOr<const PlannerInfo*> FindPlanner(Collective collective, absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const PlannerInfo& planner : AllPlanners()) {
    if (planner.collective != collective) continue;
    if (planner.name == name) return &planner;
    names.push_back(planner.name);
  }
  return absl::NotFoundError(absl::StrCat("\"", name, "\" is not an algorithm for ",
                                          Name(collective), "; choose ",
                                          absl::StrJoin(names, ", ")));
}

}  // namespace syncopate::plan
