// Transfers are fluids on a topology: each draws on links, capacities, memory and the devices' time as
// its program does (group_flows.h), and all share these max-min fairly (cost/flow_network.h). Links may have
// token buckets (token_buckets.h).
#ifndef SYNCOPATE_SIM_FLUID_BANDWIDTH_H_
#define SYNCOPATE_SIM_FLUID_BANDWIDTH_H_

#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "cost/flow_network.h"
#include "sim/bandwidth.h"
#include "sim/group_flows.h"
#include "sim/token_buckets.h"

namespace syncopate::sim {

class FluidBandwidth : public Bandwidth {
 public:
  explicit FluidBandwidth(std::unique_ptr<GroupFlows> flows,
                          const std::vector<CapacityBucket>& buckets = {});

  absl::StatusOr<double> Add(int transfer, const Travel& travel) override;
  void Begin(double now, int transfer) override;
  void Cancel(double now, int transfer) override;
  double NextEnd() override;
  std::vector<int> TakeEnded(double now) override;
  std::vector<double> LinkBytes() const override { return link_bytes_; }

 private:
  struct Moving {
    std::shared_ptr<const GroupFlow> flow;
    double bytes = 0;
    int number = -1;  // in the network, while it moves there
  };

  void Changed(double now);

  const std::unique_ptr<GroupFlows> flows_;
  cost::FlowNetwork network_;
  std::optional<TokenBuckets> buckets_;
  bool settled_ = true;  // buckets_ know the flows as they are since now_
  double now_ = 0;       // of the last change
  // When the next bucket will be empty, if there are any.
  double bucket_changes_ = std::numeric_limits<double>::infinity();
  std::vector<Moving> transfers_;
  std::vector<int> instant_;  // those that take no time, and have begun
  double instant_at_ = 0;
  std::vector<double> link_bytes_;
};

}  // namespace syncopate::sim

#endif  // SYNCOPATE_SIM_FLUID_BANDWIDTH_H_
