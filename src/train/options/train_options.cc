#include "train/options/train_options.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "nlohmann/json.hpp"
#include "schedule/planners.h"
#include "strategy/registry.h"
#include "train/data/load.h"

namespace syncopate::train {
namespace {

using Json = nlohmann::ordered_json;

const std::vector<std::string> kModels = {"mlp",      "cnn",   "resnet20",
                                          "resnet32", "vgg16", "transformer"};

absl::Status CheckOneOf(absl::string_view option, const std::string& name,
                        const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), name) != names.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(option, " ", name, ": there are ", absl::StrJoin(names, ", ")));
}

// Calls `field` with the key and the value of everything that is one number, text or list.
template <typename Options, typename Field>
void ForEachField(Options& o, const Field& field) {
  field("model", o.model);
  field("data", o.data);
  field("seed", o.seed);
  field("batch", o.batch);
  field("batches", o.batches);
  field("accumulate", o.accumulate);
  field("iterations", o.iterations);
  field("epochs", o.epochs);
  field("augment", o.augment);
  field("dropout", o.dropout);
  field("learning_rate", o.rate.base);
  field("warmup", o.rate.warmup);
  field("optimizer", o.optimizer.name);
  field("weight_decay", o.optimizer.weight_decay);
  field("momentum", o.optimizer.momentum);
  field("nesterov", o.optimizer.nesterov);
  field("beta1", o.optimizer.beta1);
  field("beta2", o.optimizer.beta2);
  field("epsilon", o.optimizer.epsilon);
  field("clip_norm", o.clip_norm);
  field("strategy", o.strategy);
  field("data_mode", o.data_mode);
  field("schedule", o.schedule);
  field("evaluate_every", o.evaluate_every);
  field("evaluate_samples", o.evaluate_samples);
  field("run_folder", o.run_folder);
  field("overwrite", o.overwrite);
  field("checkpoint_every", o.checkpoint_every);
  field("resume", o.resume);
  field("report_every", o.report_every);
  field("threads", o.threads);
  field("synthetic_samples", o.synthetic_samples);
}

template <typename Place, typename Field>
void ForEachFieldOfPlace(Place& place, const Field& field) {
  field("ranks", place.ranks);
  field("hosts", place.hosts);
  field("hostfile", place.hostfile);
  field("agent", place.agent);
  field("lab", place.lab);
}

// Takes the field of that name out of the object, if there is one.
auto TakerOf(Json& json) {
  return [&json](const char* key, auto& value) {
    if (!json.contains(key)) return;
    json.at(key).get_to(value);
    json.erase(key);
  };
}

absl::Status RefuseTheRest(const Json& json) {
  if (json.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("there is no option \"", json.begin().key(), "\""));
}

}  // namespace

std::string ToJson(const TrainOptions& options) {
  Json json = Json::object();
  ForEachField(options, [&](const char* key, const auto& value) { json[key] = value; });
  json["rate_shape"] = options.rate.ShapeText();
  if (options.measure_first) json["measure_first"] = true;
  if (!options.log.empty()) json["log"] = options.log;
  if (!options.evaluate.empty()) json["evaluate"] = options.evaluate;
  if (!options.pace.pace.empty()) json["pace"] = options.pace.pace;
  if (!options.pace.slow.empty()) json["slow"] = options.pace.slow;
  if (options.target_accuracy) json["target_accuracy"] = *options.target_accuracy;
  if (options.target_loss) json["target_loss"] = *options.target_loss;
  if (options.place != TrainPlace()) {
    Json& place = json["place"];
    ForEachFieldOfPlace(options.place, [&](const char* key, const auto& value) {
      if (value != std::decay_t<decltype(value)>()) place[key] = value;
    });
  }
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

absl::StatusOr<TrainOptions> ParseTrainOptions(absl::string_view text) {
  try {
    Json json = Json::parse(text.begin(), text.end());
    if (!json.is_object()) return absl::InvalidArgumentError("the options are not a JSON object");
    TrainOptions options;
    ForEachField(options, TakerOf(json));
    if (json.contains("rate_shape")) {
      SYNCOPATE_RETURN_IF_ERROR(ParseShape(json.at("rate_shape").get<std::string>(), options.rate));
      json.erase("rate_shape");
    }
    if (json.contains("place")) {
      Json place = json.at("place");
      if (!place.is_object()) return absl::InvalidArgumentError("\"place\" is not an object");
      ForEachFieldOfPlace(options.place, TakerOf(place));
      SYNCOPATE_RETURN_IF_ERROR(RefuseTheRest(place));
      json.erase("place");
    }
    if (json.contains("measure_first")) {
      options.measure_first = json.at("measure_first").get<bool>();
      json.erase("measure_first");
    }
    TakerOf(json)("log", options.log);
    TakerOf(json)("evaluate", options.evaluate);
    TakerOf(json)("pace", options.pace.pace);
    TakerOf(json)("slow", options.pace.slow);
    for (const auto& [key, target] : {std::pair{"target_accuracy", &options.target_accuracy},
                                      std::pair{"target_loss", &options.target_loss}}) {
      if (!json.contains(key)) continue;
      *target = json.at(key).get<double>();
      json.erase(key);
    }
    SYNCOPATE_RETURN_IF_ERROR(RefuseTheRest(json));
    return options;
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("the options: ", error.what()));
  }
}

namespace {

// The options with those that do not bear on the course of training at their defaults.
TrainOptions Course(const TrainOptions& options) {
  TrainOptions course = options;
  const TrainOptions usual;
  course.iterations = usual.iterations;
  course.epochs = usual.epochs;
  course.evaluate = usual.evaluate;
  course.evaluate_samples = usual.evaluate_samples;
  course.target_accuracy = usual.target_accuracy;
  course.target_loss = usual.target_loss;
  course.log = usual.log;
  course.pace = usual.pace;
  course.run_folder = usual.run_folder;
  course.overwrite = usual.overwrite;
  course.checkpoint_every = usual.checkpoint_every;
  course.resume = usual.resume;
  course.measure_first = usual.measure_first;
  course.report_every = usual.report_every;
  course.place = usual.place;
  return course;
}

}  // namespace

Digest CourseDigest(const TrainOptions& options, int workers) {
  // Without lockstep a job may go on with fewer workers: those that were left.
  const auto entry = strategy::FindStrategy(options.strategy);
  const bool lockstep = !entry.ok() || (*entry)->lockstep;
  return DigestOf(absl::string_view(
      absl::StrCat(ToJson(Course(options)), lockstep ? absl::StrCat(" workers ", workers) : "")));
}

std::string CourseDifference(const TrainOptions& before, const TrainOptions& now) {
  const Json old_json = Json::parse(ToJson(Course(before)));
  const Json new_json = Json::parse(ToJson(Course(now)));
  std::vector<std::string> differences;
  for (const auto& [key, value] : new_json.items()) {
    if (old_json.at(key) == value) continue;
    differences.push_back(
        absl::StrCat(key, " ", value.dump(), " (before: ", old_json.at(key).dump(), ")"));
  }
  return absl::StrJoin(differences, ", ");
}

EvaluateWhen TrainOptions::EvaluatesWhen(const syncopate::strategy::StrategyEntry& entry) const {
  if (evaluate == "after") return EvaluateWhen::kAfter;
  if (evaluate == "in") return EvaluateWhen::kIn;
  const bool same = entry.lockstep && entry.model == syncopate::strategy::ModelIs::kParameters;
  return evaluate == "beside" || !same ? EvaluateWhen::kBeside : EvaluateWhen::kIn;
}

// What the job cannot do with this strategy.
absl::Status TrainOptions::CheckStrategy(const syncopate::strategy::StrategyEntry& entry) const {
  const auto refuse = [](const auto&... why) {
    return absl::InvalidArgumentError(absl::StrCat(why...));
  };
  if (entry.model == syncopate::strategy::ModelIs::kShards) {
    return refuse("--strategy ", entry.name, ": its model is what servers hold, which cannot be ",
                  "evaluated yet");
  }
  if (evaluate.empty()) return absl::OkStatus();
  SYNCOPATE_RETURN_IF_ERROR(CheckOneOf("--evaluate", evaluate, {"in", "beside", "after"}));
  if (evaluate == "in" &&
      (!entry.lockstep || entry.model != syncopate::strategy::ModelIs::kParameters)) {
    return refuse("--evaluate in: ", entry.name, " does not run in lockstep; beside and after do");
  }
  if (evaluate != "after") return absl::OkStatus();
  if (target_accuracy || target_loss) {
    return refuse("--evaluate after: a target cannot end a run that is evaluated after its end");
  }
  if (run_folder.empty()) return refuse("--evaluate after: snapshots need a folder: give --run");
  return absl::OkStatus();
}

absl::StatusOr<strategy::DataMode> DataModeOf(const TrainOptions& options) {
  using strategy::DataMode;
  static constexpr std::pair<absl::string_view, DataMode> kModes[] = {
      {"in-step", DataMode::kInStep},
      {"independent", DataMode::kIndependent},
      {"epochs", DataMode::kRanges}};
  SYNCOPATE_ASSIGN_OR_RETURN(const strategy::StrategyEntry* entry,
                             strategy::FindStrategy(options.strategy));
  std::vector<std::string> allowed;
  for (const auto& [name, mode] : kModes) {
    // Ranges leave workers with different numbers of iterations.
    const bool allows =
        mode == entry->data ||
        (!entry->lockstep &&
         (mode == DataMode::kIndependent || (mode == DataMode::kRanges && !entry->ends_together)));
    if (allows && name == options.data_mode) return mode;
    if (allows) allowed.emplace_back(name);
  }
  if (options.data_mode.empty()) return entry->data;
  return absl::InvalidArgumentError(absl::StrCat("--data-mode ", options.data_mode, ": strategy ",
                                                 options.strategy, " has ",
                                                 absl::StrJoin(allowed, ", ")));
}

absl::Status TrainOptions::Validate(int workers) const {
  const auto refuse = [](const auto&... why) {
    return absl::InvalidArgumentError(absl::StrCat(why...));
  };
  const auto entry = syncopate::strategy::FindStrategy(strategy);
  if (!entry.ok()) return refuse("--strategy ", strategy, ": ", entry.status().message());
  SYNCOPATE_RETURN_IF_ERROR(CheckStrategy(**entry));
  const auto mode = DataModeOf(*this);
  if (!mode.ok()) return mode.status();
  if (*mode == syncopate::strategy::DataMode::kRanges &&
      (iterations > 0 || epochs != std::floor(epochs))) {
    return refuse(
        "--data-mode epochs: whole epochs are dealt out: give --epochs 1, 2, ... and no "
        "--iterations");
  }
  SYNCOPATE_RETURN_IF_ERROR(CheckOneOf("--model", model, kModels));
  SYNCOPATE_RETURN_IF_ERROR(CheckOneOf("--data", data, DatasetNames()));
  std::vector<std::string> planners;
  for (const schedule::SchedulePlanner& planner : schedule::SchedulePlanners())
    planners.emplace_back(planner.name);
  SYNCOPATE_RETURN_IF_ERROR(CheckOneOf("--schedule", schedule, planners));
  const bool text = data == "text" || data == "synthetic-text";
  if (text != (model == "transformer")) {
    return refuse("--data ", data, ": ", model, " reads ",
                  text ? "images" : "text (text, synthetic-text)");
  }
  if (batch < workers) {
    return refuse("--batch ", batch, " is less than a sample for each of ", workers, " workers");
  }
  if (!batches.empty()) {
    if (batches.size() != static_cast<size_t>(workers)) {
      return refuse("--batches has ", batches.size(), " entries for ", workers, " workers");
    }
    if (*std::min_element(batches.begin(), batches.end()) < 1) {
      return refuse("--batches: every worker needs at least one sample");
    }
    if (std::accumulate(batches.begin(), batches.end(), int64_t{0}) != batch) {
      return refuse("--batches do not add up to --batch ", batch);
    }
  }
  if (accumulate < 1) return refuse("--accumulate ", accumulate, " is less than 1");
  if (iterations < 0 || (iterations == 0 && epochs <= 0)) {
    return refuse("there must be at least one iteration: --iterations or --epochs");
  }
  if (report_every < 1) return refuse("--report-every ", report_every, " is less than 1");
  if (clip_norm < 0) return refuse("--clip ", clip_norm, " is negative");
  if ((checkpoint_every > 0 || resume) && run_folder.empty()) {
    return refuse("checkpoints need a folder to be in: give --run");
  }
  SYNCOPATE_RETURN_IF_ERROR(ComputePace::Make(pace, 0, workers).status());
  SYNCOPATE_RETURN_IF_ERROR(optimizer.Validate());
  return rate.Validate();
}

}  // namespace syncopate::train
