// How transfers in virtual time share the network: when the bytes of each have moved.
//
// Two rules stand behind this interface: transfers with a member in common slow each other down by the
// gamma of the cost model (gamma_bandwidth.h), or all of them are fluids on the links of a topology
// (fluid_bandwidth.h).
#ifndef SYNCOPATE_SIM_BANDWIDTH_H_
#define SYNCOPATE_SIM_BANDWIDTH_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/member_list.h"

namespace syncopate::sim {

// Whose bytes go where.
struct Travel {
  Members members;      // all that move bytes
  bool average = true;  // else bytes go from all of `from` to `to`
  std::vector<int> from;
  int to = -1;
  uint64_t bytes = 0;
};

// Not thread-safe. Transfers are numbers of the caller, which may be used again after their end. Time
// never goes back, and NextEnd() is asked before it goes on.
class Bandwidth {
 public:
  virtual ~Bandwidth() = default;

  // A new transfer, which does not move yet. Returns the seconds of its start-up, in which it uses no
  // bandwidth.
  virtual absl::StatusOr<double> Add(int transfer, const Travel& travel) = 0;
  // The start-up is over, and bytes move from now on.
  virtual void Begin(double now, int transfer) = 0;
  // The transfer, whose bytes move, does not go on.
  virtual void Cancel(double now, int transfer) = 0;

  // When the next transfer ends if nothing else happens; infinity if none moves.
  virtual double NextEnd() = 0;
  // Those that end at `now`, which is at most NextEnd().
  virtual std::vector<int> TakeEnded(double now) = 0;

  // By directed link of the topology: the bytes that crossed it; empty where none is known.
  virtual std::vector<double> LinkBytes() const { return {}; }
};

}  // namespace syncopate::sim

#endif  // SYNCOPATE_SIM_BANDWIDTH_H_
