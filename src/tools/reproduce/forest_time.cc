#include "tools/reproduce/forest_time.h"

#include <numeric>
#include <utility>

#include "base/status.h"
#include "plan/forest/packing.h"
#include "plan/forest/packing_network.h"
#include "plan/forest/symmetry.h"

namespace syncopate::tools::reproduce {

ForestTimer MakeForestTimer(const Clock& clock) {
  return [&clock](const Topology& topology, absl::Span<const int> placement,
                  const std::vector<int>& active, bool separate,
                  uint64_t bytes) -> absl::StatusOr<ForestTime> {
    const int64_t begin_ns = clock.NowNs();
    std::vector<int> ranks(placement.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    SYNCOPATE_ASSIGN_OR_RETURN(const plan::PackingNetwork whole,
                               plan::PackingNetwork::Make(topology, placement, ranks));
    const plan::PackingNetwork network =
        plan::JoinImages(whole, active, plan::SymmetryCandidates(topology, placement));
    plan::PackingOptions options;
    options.gap = 0.001;
    options.stages = separate ? plan::Stages::kSeparate : plan::Stages::kOne;
    SYNCOPATE_ASSIGN_OR_RETURN(const plan::Packing packing,
                               plan::Packer(network, active, options).Solve());
    ForestTime time;
    time.plan_seconds = static_cast<double>(clock.NowNs() - begin_ns) * 1e-9;
    time.seconds = packing.seconds_per_byte * static_cast<double>(bytes);
    time.bound_seconds = packing.bound * static_cast<double>(bytes);
    return time;
  };
}

}  // namespace syncopate::tools::reproduce
