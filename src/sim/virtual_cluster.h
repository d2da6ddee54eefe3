// Runs one strategy for each of several workers in virtual time.
//
// Workers compute for the times of a tensor table, times a seeded factor of their own; transfers
// take what a cost model says, from the moment at which the last member has started them. Each
// tensor has one number as its parameter and each gradient is a seeded number, so that what a
// strategy does to the parameters can be checked as well as when.
//
// The same seed gives the same run. Events that fall on the same moment come in seeded order.
#ifndef SYNCOPATE_SIM_VIRTUAL_CLUSTER_H_
#define SYNCOPATE_SIM_VIRTUAL_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cost/communication_costs.h"
#include "model/tensor_table.h"
#include "sim/virtual_transfers.h"
#include "strategy/record.h"
#include "strategy/strategy.h"
#include "strategy/witness.h"

namespace syncopate::sim {

// Answers what strategies ask. A pure step: what `ask` of `rank` leads to, for whom, and when.
class Service {
 public:
  struct Answer {
    int rank = 0;
    double at = 0;  // not before now
    strategy::Event event;
  };
  virtual ~Service() = default;
  virtual std::vector<Answer> Ask(double now, int rank, const strategy::AskService& ask) = 0;
};

struct VirtualOptions {
  int workers = 1;
  int iterations = 1;
  uint64_t seed = 0;
  TensorTable table;
  // What transfers and messages cost, whoever takes part.
  cost::CommunicationCosts costs;
  // What transfers of these members (sorted) cost instead; empty: `costs`.
  GroupCosts group_costs;
  // Compute times are multiplied by 1 + a seeded number up to this, anew for each piece of work.
  double jitter = 0;
  // By worker: compute times are multiplied by it; empty: 1.
  std::vector<double> slowness;
  // By worker: samples of its batch; empty: 1. In iteration i it has i * samples_growth more.
  std::vector<uint64_t> samples;
  uint64_t samples_growth = 0;
  // Whether all workers are told the size of all batches together.
  bool all_samples_known = true;
  double learning_rate = 0.1;
  // New values. Each is told to every worker before it begins iteration `from`.
  std::vector<strategy::NewValue> values;
  // A worker that goes: it dies at this time, or leaves in good order after the iteration that it is
  // in then. The others are told after `detection`, times jitter.
  struct Departure {
    int rank = 0;
    double at = 0;
    double detection = 1;
    bool in_good_order = false;
  };
  std::optional<Departure> departure;
  Service* service = nullptr;  // null: asking is an error
  // By worker: who sees what it does; empty: nobody. Not told Began().
  std::vector<strategy::Witness*> witnesses;
  bool keep_log = true;  // VirtualResult::log and told, which take much memory in large runs
};

struct VirtualResult {
  // By worker, all in order: "12.5 gradient-ready 3" and the commands after it, "  start 0: ...".
  std::vector<std::vector<std::string>> log;
  std::vector<std::vector<strategy::Decision>> told;  // by worker, in order; both if they are kept
  std::vector<std::vector<double>> parameters;        // by worker and tensor
  std::vector<std::vector<double>> begun;             // by worker and iteration: when it began
  std::vector<uint64_t> total_samples;                // by worker: of the last SetProgress
  double seconds = 0;                                 // until the last worker ended
  std::vector<absl::Status> status;                   // by worker: OK, or how it failed
};

using StrategyFactory =
    std::function<std::unique_ptr<strategy::Strategy>(const strategy::WorkerInfo&)>;

// Runs until all workers have ended. Errors are faults of the strategy: a command that makes no
// sense (FailedPrecondition), or a state in which nothing can happen any more (Aborted, names who
// waits for what).
absl::StatusOr<VirtualResult> RunVirtually(const VirtualOptions& options,
                                           const StrategyFactory& make);

// The gradient that worker `rank` has for `tensor` in `iteration`, and the parameter that all begin
// with.
double GradientOf(uint64_t seed, int rank, int64_t iteration, int tensor);
double FirstParameter(uint64_t seed, int tensor);

}  // namespace syncopate::sim

#endif  // SYNCOPATE_SIM_VIRTUAL_CLUSTER_H_
