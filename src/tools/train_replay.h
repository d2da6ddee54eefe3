// `syncopate replay`, which `syncopate train --replay` is another name for: plays the training of
// models that this machine could not train, by one schedule or by several in turn, and compares
// what was predicted with what was measured in the same job.
#ifndef SYNCOPATE_TOOLS_TRAIN_REPLAY_H_
#define SYNCOPATE_TOOLS_TRAIN_REPLAY_H_

#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "model/compute_pace.h"
#include "model/tensor_table.h"
#include "observe/summary.h"
#include "sync/cost_probe.h"
#include "tools/start_job.h"

namespace syncopate::tools {

// As on the command line.
struct ReplayArguments {
  std::string models;             // "resnet-152,bert-base", or the file of a table
  std::string schedule = "all";   // planners, "all", or the file of a schedule
  std::string bytes_scale = "1";  // a factor of the bytes of every tensor
  std::string time_scale = "1";   // a factor of the computing time of every tensor
  std::string costs;              // a file, or "a,b,gamma2,..."; empty: measured in the job
  std::string bucket;             // size of buckets; empty: 25M, scaled as the bytes are
  std::string costs_time = "5s";  // how long to measure them
  int iterations = 20;            // of each schedule
  int rounds = 4;                 // in which schedules take turns
  int ways = 0;                   // search: most transfers at once; 0: as many as measured
  bool overlap_forward = false;
  PaceOptions pace;
  bool json = false;
  JobPlace place;
};

// What one schedule did to one model.
struct ReplayedSchedule {
  std::string name;
  int transfers = 0;
  int at_once_max = 0;           // by the model
  double predicted_seconds = 0;  // an iteration
  double measured_seconds = 0;   // the median
  std::vector<double> rounds;    // the median of each
  // How busy the cores of this host were in its measured iterations, 0 to 1; nothing if that is not known.
  std::optional<double> cores_busy;
  observe::Summary summary;  // of the last round

  double Off() const { return measured_seconds / predicted_seconds - 1; }
};

struct ReplayedModel {
  TensorTable table;
  sync::CostMeasurement costs;
  std::vector<ReplayedSchedule> schedules;
};

// How many times as fast `quick` is as `slow`, round by round.
struct SpeedUp {
  double p50 = 0, min = 0, max = 0;
};
SpeedUp SpeedUpOf(const ReplayedSchedule& quick, const ReplayedSchedule& slow);

std::string ToTable(const ReplayedModel& model);
std::string ToJson(const std::vector<ReplayedModel>& models, int workers);

// The exit code. Starts itself as a job where a place is given, otherwise every rank of a job comes
// here, and rank 0 prints. In no job it is one worker alone.
int RunReplay(const ReplayArguments& arguments);

// --pace and --slow, which training has as well.
void AddPaceOptions(CLI::App& command, PaceOptions& pace);
// The options but those of the place.
void AddReplayOptions(CLI::App& command, ReplayArguments& arguments);
void AddReplayCommand(CLI::App& app, int& exit_code);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_TRAIN_REPLAY_H_
