// One run of `syncopate simulate`: a strategy of the registry in virtual time, on a network or by costs.
#ifndef SYNCOPATE_TOOLS_SIMULATE_RUN_H_
#define SYNCOPATE_TOOLS_SIMULATE_RUN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/compute_pace.h"
#include "model/topology.h"
#include "sim/token_buckets.h"
#include "sim/virtual_cluster.h"
#include "strategy/registry.h"
#include "tools/plan_schedule.h"

namespace syncopate::tools {

// In one simulation. More than a job may have: only programs of all workers are bound by that.
inline constexpr int kSimulatedWorkersMax = 1 << 16;

// As on the command line.
struct SimulateArguments {
  std::string strategy = "bsp";
  ScheduleArguments model;  // the model, its costs and its schedule
  std::string topology;     // a file: transfers move on this network
  std::string lab;          // a file of a lab instead: on the network that it declares
  std::string workers;      // a number or several, as 16,64; empty: as many as the network has
  int iterations = 10;
  int64_t samples = 32;  // of a worker's batch
  PaceOptions pace;      // how long workers compute
  std::string jitter = "0";
  std::vector<std::string> events;  // what happens to workers (simulate_events.h)
  std::string detection = "1s";     // until the others know that a worker died
  std::string delay;                // of a message; empty: the start-up of a transfer
  int64_t seed = 0;
  std::string log;  // a file for all decisions; empty: none
  std::string svg;  // a file for a timeline; empty: none
  bool json = false;
};

struct SimulatedRun {
  int workers = 0;
  ScheduleReport report;
  std::shared_ptr<const Topology> topology;  // null: none was given
  std::vector<strategy::Role> roles = {};    // by rank; empty: all train
  sim::VirtualResult result;

  std::vector<int> servers() const;      // ranks that serve and do not train
  double computing_seconds() const;      // of an iteration by the table
  double waiting_share() const;          // of the time of all workers together that train
  std::vector<int> ended_early() const;  // ranks that died or failed
  // The times between the begins of iterations, of all workers; the last one's to the worker's end.
  std::vector<double> iteration_seconds() const;
};

// What workers run on.
struct SimulatedNetwork {
  std::shared_ptr<const Topology> topology;  // null: transfers cost what the costs say
  std::vector<sim::CapacityBucket> buckets;  // of its links
  // By device, in order: the part of a core that computing there gets; empty: all of one.
  std::vector<double> core_shares;
};

// InvalidArgument says what is missing or wrong.
absl::StatusOr<SimulatedNetwork> NetworkOf(const SimulateArguments& arguments);
// How many workers each run has.
absl::StatusOr<std::vector<int>> WorkersOf(const SimulateArguments& arguments,
                                           const Topology* topology);

absl::StatusOr<SimulatedRun> Simulate(const SimulateArguments& arguments,
                                      const SimulatedNetwork& network, int workers);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_SIMULATE_RUN_H_
