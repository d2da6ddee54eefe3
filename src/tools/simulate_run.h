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
#include "sim/virtual_cluster.h"
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
  int64_t seed = 0;
  std::string log;  // a file for all decisions; empty: none
  std::string svg;  // a file for a timeline; empty: none
  bool json = false;
};

struct SimulatedRun {
  int workers = 0;
  ScheduleReport report;
  std::shared_ptr<const Topology> topology;  // null: none was given
  sim::VirtualResult result;

  double computing_seconds() const;  // of an iteration by the table
  double waiting_share() const;      // of all workers' time together
  // The times between the begins of iterations, of all workers; the last one's to the end of all.
  std::vector<double> iteration_seconds() const;
};

// How many workers each run has. InvalidArgument says what is missing or wrong.
absl::StatusOr<std::shared_ptr<const Topology>> NetworkOf(const SimulateArguments& arguments);
absl::StatusOr<std::vector<int>> WorkersOf(const SimulateArguments& arguments,
                                           const Topology* topology);

absl::StatusOr<SimulatedRun> Simulate(const SimulateArguments& arguments,
                                      std::shared_ptr<const Topology> topology, int workers);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_SIMULATE_RUN_H_
