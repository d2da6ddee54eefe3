// lab_groups: groups of workers that change every iteration average a played model, live or in virtual
// time. tests/simulator_beside_lab compares the two.
//
//   lab_groups --simulate labs/two-racks.toml            in virtual time
//   lab_groups --declare labs/two-racks.toml >net.json   what jobs in that lab should plan by
//   SYNCOPATE_TOPO_FILE=net.json syncopate lab run --no-tag -- lab_groups
//                                                        live, by a job
//
// Prints one JSON object with the mean of all workers of each iteration, and medians of all and of each round.
#include <unistd.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/parse.h"
#include "base/status.h"
#include "lab/lab.h"
#include "lab/spec.h"
#include "model/tensor_table.h"
#include "model/topology.h"
#include "nlohmann/json.hpp"
#include "schedule/models/model_tables.h"
#include "strategy/registry.h"
#include "strategy/sample_strategies_testing.h"
#include "sync/replay.h"
#include "syncopate/syncopate.h"
#include "tools/bench/loaded_topology.h"
#include "tools/bench/statistics.h"
#include "tools/simulate_run.h"

namespace syncopate {
namespace {

constexpr char kStrategy[] = "shuffled-groups";
constexpr int kWarmUp = 3;  // iterations

struct Settings {
  std::string model = "resnet-50";
  std::string simulate, declare;  // files of labs
  std::string bytes_scale = "1", time_scale = "1";
  int group = 3;
  int iterations = 12;  // a round
  int rounds = 3;
  uint64_t seed = 1;
};

absl::Status Register(const Settings& settings) {
  return strategy::AddStrategy(
      {.name = kStrategy,
       .about = "groups that change every iteration average their parameters",
       .lockstep = false,
       .moves = strategy::Moves::kParameters,
       .make = [settings](const strategy::StrategyOptions& options)
           -> absl::StatusOr<std::unique_ptr<strategy::Strategy>> {
         return std::make_unique<strategy::ShuffledGroups>(
             strategy::WorkerInfo{options.rank, options.size, options.table.size()}, settings.group,
             settings.seed);
       }});
}

// All in one transfer, which the strategy passes over.
Schedule WholeModel(const TensorTable& table) {
  Schedule schedule;
  schedule.planner = "whole";
  schedule.transfers.push_back({.first = 0, .last = table.size() - 1});
  return schedule;
}

// Of iterations that all workers have averaged, since groups differ; without those to warm up.
nlohmann::json Medians(const Settings& settings, std::vector<double> seconds) {
  seconds.erase(seconds.begin(), seconds.begin() + kWarmUp);
  nlohmann::json rounds = nlohmann::json::array();
  for (auto round = seconds.begin(); round != seconds.end(); round += settings.iterations) {
    rounds.push_back(1e3 * tools::bench::Quantile({round, round + settings.iterations}, 0.5));
  }
  return {{"iteration_seconds", seconds},
          {"median_ms", 1e3 * tools::bench::Quantile(seconds, 0.5)},
          {"rounds_ms", rounds}};
}

absl::Status Play(const Settings& settings) {
  SYNCOPATE_ASSIGN_OR_RETURN(const TensorTable model, schedule::MakeModelTable(settings.model));
  SYNCOPATE_ASSIGN_OR_RETURN(const double bytes, ParseDouble(settings.bytes_scale, 1e-6, 1e6));
  SYNCOPATE_ASSIGN_OR_RETURN(const double times, ParseDouble(settings.time_scale, 1e-6, 1e6));
  const TensorTable table = Scaled(model, bytes, times);
  SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<Worker> worker, Worker::Start());
  SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<sync::Replay> replay,
                             sync::Replay::Make(*worker, table, WholeModel(table),
                                                {.overlap_forward = true, .strategy = kStrategy}));
  // All at once: at the end of a run workers wait for their last transfers, and the next would begin without any.
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<double> seconds,
                             replay->Run(kWarmUp + settings.rounds * settings.iterations));
  SYNCOPATE_RETURN_IF_ERROR(
      worker->world().AllReduce(Array::Of(seconds.data(), seconds.size()), ReduceOp::kAverage));
  if (worker->rank() != 0) return absl::OkStatus();
  nlohmann::json json = Medians(settings, std::move(seconds));
  json["workers"] = worker->size();
  std::cout << json << std::endl;
  return absl::OkStatus();
}

// The same iterations as live, with the same groups.
absl::Status SimulateGroups(const Settings& settings) {
  tools::SimulateArguments arguments;
  arguments.strategy = kStrategy;
  arguments.model.model = settings.model;
  arguments.model.schedule = "none";
  arguments.model.scale_bytes = settings.bytes_scale;
  arguments.model.scale_times = settings.time_scale;
  arguments.lab = settings.simulate;
  arguments.iterations = kWarmUp + settings.rounds * settings.iterations;
  SYNCOPATE_ASSIGN_OR_RETURN(const tools::SimulatedNetwork network, tools::NetworkOf(arguments));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<int> workers,
                             tools::WorkersOf(arguments, network.topology.get()));
  SYNCOPATE_ASSIGN_OR_RETURN(const tools::SimulatedRun run,
                             tools::Simulate(arguments, network, workers.front()));
  std::vector<double> means(static_cast<size_t>(arguments.iterations), 0);
  for (size_t rank = 0; rank < run.result.begun.size(); ++rank) {
    const std::vector<double>& begun = run.result.begun[rank];
    for (size_t i = 0; i < begun.size(); ++i) {
      const double end = i + 1 < begun.size() ? begun[i + 1] : run.result.ended[rank];
      means[i] += (end - begun[i]) / run.workers;
    }
  }
  nlohmann::json json = Medians(settings, std::move(means));
  json["workers"] = run.workers;
  json["digest"] = run.result.digest.ToString();
  std::cout << json << std::endl;
  return absl::OkStatus();
}

absl::Status Declare(const Settings& settings) {
  SYNCOPATE_ASSIGN_OR_RETURN(const lab::Spec spec, lab::ReadLab(settings.declare));
  const int cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  std::cout << ToJson(tools::bench::LoadedTopology(spec, cores)) << std::endl;
  return absl::OkStatus();
}

}  // namespace
}  // namespace syncopate

int main(int argc, char** argv) {
  syncopate::Settings settings;
  CLI::App app("Groups that change every iteration, live or in virtual time");
  app.add_option("--model", settings.model)->capture_default_str();
  app.add_option("--simulate", settings.simulate, "In virtual time, in the lab of this file");
  app.add_option("--declare", settings.declare, "Print the network of this file of a lab");
  app.add_option("--bytes-scale", settings.bytes_scale)->capture_default_str();
  app.add_option("--time-scale", settings.time_scale)->capture_default_str();
  app.add_option("--group", settings.group)->check(CLI::Range(2, 64))->capture_default_str();
  app.add_option("--iterations", settings.iterations, "Of a round")->capture_default_str();
  app.add_option("--rounds", settings.rounds)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  absl::Status status = syncopate::Register(settings);
  if (status.ok()) {
    status = !settings.simulate.empty()  ? syncopate::SimulateGroups(settings)
             : !settings.declare.empty() ? syncopate::Declare(settings)
                                         : syncopate::Play(settings);
  }
  if (status.ok()) return 0;
  std::cerr << "lab_groups: " << status << "\n";
  return 1;
}
