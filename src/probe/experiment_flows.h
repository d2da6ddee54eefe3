// One worker's part in the flows of one experiment: the ends that it has, how far they are, and the
// rates that it saw as a receiver.
#ifndef SYNCOPATE_PROBE_EXPERIMENT_FLOWS_H_
#define SYNCOPATE_PROBE_EXPERIMENT_FLOWS_H_

#include <cstdint>
#include <set>
#include <vector>

#include "probe/flow_ends.h"
#include "probe/measure_protocol.h"
#include "transport/transport.h"

namespace syncopate::probe {

class ExperimentFlows {
 public:
  // No flows: done from the beginning.
  ExperimentFlows() = default;
  // The ends of `instruction` that the worker `rank` of `size` has. Senders send from `begin_ns`
  // until `end_ns`.
  ExperimentFlows(const Instruction& instruction, int rank, int size, FlowMemory memory,
                  int64_t begin_ns, int64_t end_ns);

  bool empty() const { return senders_.empty() && receivers_.empty(); }
  // True if anything moved.
  bool Poll(transport::Session& session, int64_t now_ns);
  // Nothing is left on its way, nor to be confirmed.
  bool done() const { return done_; }
  // The end has been seen by Poll().
  bool time_is_up() const { return time_is_up_; }
  // Of each flow that this worker receives, in the order of the instruction.
  std::vector<FlowsAnswer::Flow> Seen() const;
  // Adds the workers at the other ends of flows that are not done.
  void AddUnfinished(std::set<int>& workers) const;

 private:
  std::vector<FlowSender> senders_;
  std::vector<FlowReceiver> receivers_;
  double seconds_ = 0;
  int64_t begin_ns_ = 0, end_ns_ = 0;
  bool time_is_up_ = false;
  bool done_ = true;
};

}  // namespace syncopate::probe

#endif  // SYNCOPATE_PROBE_EXPERIMENT_FLOWS_H_
