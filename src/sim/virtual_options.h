// What a run in virtual time is made from, and what it leaves.
#ifndef SYNCOPATE_SIM_VIRTUAL_OPTIONS_H_
#define SYNCOPATE_SIM_VIRTUAL_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/digest.h"
#include "cost/communication_costs.h"
#include "model/tensor_table.h"
#include "model/topology.h"
#include "sim/group_flows.h"
#include "sim/token_buckets.h"
#include "strategy/record.h"
#include "strategy/registry.h"
#include "strategy/strategy.h"
#include "strategy/witness.h"
#include "syncopate/service.h"

namespace syncopate::sim {

struct VirtualOptions {
  int workers = 1;  // ranks; those that join later among them
  int iterations = 1;
  uint64_t seed = 0;
  TensorTable table;
  // The ranks that serve: they host no service where others can, and averages of all live training ranks
  // are without them.
  std::vector<int> servers;
  // What the training loops of ranks do; empty: all train. One that serves has no strategy: it holds
  // parameters, which others push to and pull from, and hosts no service. It may die, but neither leaves
  // nor joins.
  std::vector<strategy::Role> roles;
  bool Trains(int rank) const {
    return roles.empty() || roles[static_cast<size_t>(rank)] == strategy::Role::kTrains;
  }

  // ---- network

  // What transfers cost, whoever takes part, and messages. With a topology, messages only.
  cost::CommunicationCosts costs;
  // Transfers are fluids on it (sim/group_flows.h), with each rank on the device that `placement` says;
  // null: they cost `costs`.
  std::shared_ptr<const Topology> topology;
  std::vector<int> placement;
  // Capacities of it whose rates are kept by token buckets.
  std::vector<CapacityBucket> buckets;
  // What averages of all ranks run on it; null: what they would run at once.
  std::shared_ptr<const PlannedAverage> planned;
  // Seconds of a message to another worker, those of the service among them. If it is not given, messages
  // of strategies take the start-up of `costs`, and those of the service no time.
  std::optional<double> message_delay;

  // ---- computing

  // By worker, or one for all: an iteration of s samples computes for alpha + beta * s seconds, cut into
  // pieces as the table's times are. Empty: the times of the table.
  struct ComputeLine {
    double alpha = 0;
    double beta = 0;
  };
  std::vector<ComputeLine> compute;
  // Compute times are multiplied by 1 + a seeded number up to this, anew for each piece of work.
  double jitter = 0;
  // By worker: compute times are multiplied by it; empty: 1.
  std::vector<double> slowness;
  // From then on the worker's factor is another one. A piece of work that has begun keeps its time.
  struct Slowdown {
    int rank = 0;
    double from = 0;  // seconds
    double factor = 1;
  };
  std::vector<Slowdown> slowdowns;
  // By worker: samples of its batch; empty: 1. In iteration i it has i * samples_growth more.
  std::vector<uint64_t> samples;
  uint64_t samples_growth = 0;
  // Whether all workers are told the size of all batches together.
  bool all_samples_known = true;

  // ---- mathematics

  double learning_rate = 0.1;
  // Real gradients of a model: by the parameters that the forward pass of this iteration has used, all
  // elements of all tensors in their order. Empty: each tensor has one number, and gradients are seeded.
  using Gradients = std::function<std::vector<double>(int rank, int64_t iteration,
                                                      absl::Span<const double> parameters)>;
  Gradients gradients;
  // What all begin with, as many numbers; empty: seeded.
  std::vector<double> first_parameters;

  // ---- what happens

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
  std::vector<Departure> departures;
  // A rank that is not there before. It begins with the parameters of the first worker that lives then,
  // and is told first who is gone or has not come; the others are told after `detection`, times jitter.
  struct Join {
    int rank = 0;
    double at = 0;
    double detection = 0;
  };
  std::vector<Join> joins;

  // ---- what answers

  // Makes the service that strategies ask, the same for every worker (sim/virtual_service.h), called for
  // those that host or stand by; null: asking is an error. At most limits::kWorkersMax workers, as in a
  // job.
  std::function<std::unique_ptr<Service>(int rank)> make_service;
  // Ranks that may host it, first choice first; empty: those that do not serve, by number. Who joins stands behind
  // them.
  std::vector<int> service_ranks;

  // ---- what is kept

  // By worker: who sees what it does; empty: nobody. Not told Began().
  std::vector<strategy::Witness*> witnesses;
  bool keep_log = true;     // VirtualResult::log and told, which take much memory in large runs
  bool keep_waits = false;  // VirtualResult::waits
};

struct VirtualResult {
  // By worker, all in order: "12.5 gradient-ready 3" and the commands after it, "  start 0: ...".
  std::vector<std::vector<std::string>> log;
  std::vector<std::vector<strategy::Decision>> told;  // by worker, in order; both if they are kept
  std::vector<std::vector<double>> parameters;        // by worker and number
  // By worker: what it holds for others, from their first push or pull on; empty: it was not asked.
  std::vector<std::vector<double>> held;
  std::vector<std::vector<double>> begun;  // by worker and iteration: when it began
  std::vector<uint64_t> total_samples;     // by worker: of the last SetProgress
  double seconds = 0;                      // until the last worker ended
  std::vector<absl::Status> status;        // by worker: OK, or how it failed
  std::vector<int64_t> iterations;         // by worker: whose backward pass has ended
  std::vector<double> ended;               // by worker: when it ended
  // By worker: the seconds in which it could not compute because it waited for others, and each wait if
  // they are kept.
  std::vector<double> waiting;
  std::vector<std::vector<std::pair<double, double>>> waits;
  std::vector<double> link_bytes;  // by link of the topology
  size_t transfers_max = 0;        // that were remembered at once
  Digest digest;                   // of all events, what they led to, and all parameters
};

}  // namespace syncopate::sim

#endif  // SYNCOPATE_SIM_VIRTUAL_OPTIONS_H_
