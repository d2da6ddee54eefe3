// What a training job is asked to do. Without LibTorch, so that the command can read and check it.
#ifndef SYNCOPATE_TRAIN_OPTIONS_TRAIN_OPTIONS_H_
#define SYNCOPATE_TRAIN_OPTIONS_TRAIN_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/digest.h"
#include "model/compute_pace.h"
#include "strategy/registry.h"
#include "train/options/learning_rate.h"
#include "train/options/optimizer_options.h"

namespace syncopate::train {

// Where the workers run, as on the command line.
struct TrainPlace {
  int ranks = 0;                       // 0: as many as the hosts have slots
  std::string hosts, hostfile, agent;  // as `syncopate launch` has them
  std::string lab;                     // the name of one that is up, or a file

  friend bool operator==(const TrainPlace&, const TrainPlace&) = default;
};

// When the model is evaluated while a job runs (--evaluate-every). At the end it is in any case.
enum class EvaluateWhen : uint8_t {
  kIn,      // in the run, by all workers, which stand still
  kBeside,  // beside it: the worker that writes the run evaluates a copy while all train on
  kAfter,   // after it: workers write snapshots, which are evaluated when the run has ended
};

struct TrainOptions {
  std::string model = "cnn";
  std::string data = "mnist";
  uint64_t seed = 1;

  int64_t batch = 64;            // samples of all workers together in an iteration
  std::vector<int64_t> batches;  // by worker, where they differ; their sum is `batch` then
  int64_t accumulate = 1;        // parts that a worker's batch is computed in, one after the other
  int64_t iterations = 0;        // 0: as many as `epochs` have
  double epochs = 1;
  bool augment = false;
  double dropout = 0;

  LearningRate rate;
  OptimizerOptions optimizer;
  double clip_norm = 0;  // 0: gradients are not clipped

  std::string strategy = "bsp";
  std::string data_mode;  // in-step, independent or epochs; empty: as the strategy has it
  std::string schedule = "search";
  PaceOptions pace;            // how long workers compute, in experiments
  bool measure_first = false;  // measure communication costs before the first iteration

  std::string evaluate;                   // "in", "beside", "after"; empty: as the strategy needs
  int64_t evaluate_every = 0;             // iterations; 0: at the end only
  int64_t evaluate_samples = 0;           // of the test data; 0: all
  std::optional<double> target_accuracy;  // training ends when an evaluation reaches it
  std::optional<double> target_loss;

  std::string log;               // the file for decisions, transfers and updates; empty: none
  std::string run_folder;        // empty: nothing is written
  bool overwrite = false;        // what a run before left in run_folder
  int64_t checkpoint_every = 0;  // iterations; 0: no checkpoints
  bool resume = false;           // go on from the last checkpoint in run_folder
  int64_t report_every = 10;     // iterations between lines of progress and of metrics
  int threads = 0;               // of LibTorch in this worker; 0: its share of the cores
  int64_t synthetic_samples = 4000;
  TrainPlace place;  // for the run's config.json, so that the run can go on there

  // InvalidArgument names the option.
  absl::Status Validate(int workers) const;
  // In the run where workers are in lockstep and have the same parameters, else beside it, unless
  // `evaluate` says otherwise.
  EvaluateWhen EvaluatesWhen(const syncopate::strategy::StrategyEntry& entry) const;

 private:
  absl::Status CheckStrategy(const syncopate::strategy::StrategyEntry& entry) const;
};

// Where the samples of such a job come from. InvalidArgument if the strategy allows no such choice:
// in lockstep it is the strategy's own; without it each worker may draw its own samples, and where
// workers need not end after the same iteration, samples may be dealt out as well.
absl::StatusOr<strategy::DataMode> DataModeOf(const TrainOptions& options);

// The variable by which the options come to the workers, as JSON.
inline constexpr char kTrainOptionsVariable[] = "SYNCOPATE_TRAIN_OPTIONS";

// As one line of JSON: how they come to the workers, and a run's config.json.
// ParseTrainOptions(ToJson(o)) == o; it refuses unknown keys.
std::string ToJson(const TrainOptions& options);
absl::StatusOr<TrainOptions> ParseTrainOptions(absl::string_view json);

// The digest of all that two runs must have in common to compute the same: not of where they write,
// when they report or how far they go.
Digest CourseDigest(const TrainOptions& options, int workers);
// What of that differs, for people: "batch 64 (before: 32), model ...".
std::string CourseDifference(const TrainOptions& before, const TrainOptions& now);

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_OPTIONS_TRAIN_OPTIONS_H_
