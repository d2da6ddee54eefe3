// A network for tests: flows share it as max-min fairness says, only not quite fairly, and what is
// measured is a little off, sometimes far off.
#ifndef SYNCOPATE_PROBE_SIMULATED_ORACLE_H_
#define SYNCOPATE_PROBE_SIMULATED_ORACLE_H_

#include <string>
#include <vector>

#include "base/random.h"
#include "model/topology.h"
#include "probe/oracle.h"

namespace syncopate::probe {

struct SimulatedNoise {
  // Every rate is off by up to this part, both ways.
  double spread = 0.02;
  // A flow gets up to this many times what an equal one gets.
  double unfairness = 2;
  // This part of the flows is measured at 0.3 to 0.8 of its rate.
  double outliers = 0.01;
  // What an experiment takes besides its length.
  double overhead_seconds = 0.02;
};

// Worker i is on the topology's i-th device.
class SimulatedOracle final : public Oracle {
 public:
  SimulatedOracle(const Topology& topology, const SimulatedNoise& noise, uint64_t seed);

  int size() const override { return static_cast<int>(devices_.size()); }
  std::string HostOf(int worker) const override;
  absl::StatusOr<double> Latency(int from, int to) override;
  absl::StatusOr<std::vector<double>> Rates(absl::Span<const Flow> flows, double seconds) override;
  double Stolen(int) const override { return 0; }
  void Wait(double seconds) override { elapsed_ += seconds; }
  double Elapsed() const override { return elapsed_; }

 private:
  // What a flow draws on: links, then capacities.
  std::vector<int> ResourcesOf(const Flow& flow) const;

  const Topology topology_;
  const SimulatedNoise noise_;
  const std::vector<int> devices_;
  Random random_;
  double elapsed_ = 0;
};

}  // namespace syncopate::probe

#endif  // SYNCOPATE_PROBE_SIMULATED_ORACLE_H_
