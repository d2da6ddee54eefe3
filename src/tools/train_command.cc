#include "tools/train_command.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/environment.h"
#include "base/limits.h"
#include "base/own_path.h"
#include "base/parse.h"
#include "base/status.h"
#include "lab/spec.h"
#include "launch/host_list.h"
#include "nlohmann/json.hpp"
#include "observe/run_directory.h"
#include "observe/run_lock.h"
#include "strategy/registry.h"
#include "tools/command_line.h"
#include "tools/start_job.h"
#include "tools/train_replay.h"
#include "tools/train_run.h"
#include "train/options/checkpoint_note.h"
#include "train/options/train_options.h"
#include "worker/service_ranks.h"

namespace syncopate::tools {
namespace {

using train::TrainOptions;

constexpr const char* kTrainCommand = "train";
constexpr const char* kTrainExamples = R"(Examples:
  syncopate train --model cnn --data mnist -n 4
  syncopate train --model mlp --data synthetic -n 2 --iterations 200 --json
  syncopate train --model resnet20 --data cifar10 -n 4 --augment --lr 0.1 --rate cosine --epochs 10 --run first
  syncopate train --run first --resume
  syncopate train --model cnn --data mnist --lab labs/two-racks.toml --schedule none --run slow
  syncopate train --model transformer --data text --optimizer adam --lr 0.003 --clip 1 -H node1:2,node2:2
  syncopate train --model mlp --data synthetic -n 4 --log decisions.jsonl
  syncopate train --model cnn --data mnist -n 4 --pace 20ms,800 --slow 3:2
  syncopate train --replay resnet-152 --lab labs/two-racks.toml --bytes-scale 0.025
  syncopate report first --html first.html)";

struct TrainArguments {
  TrainOptions options;
  std::string batches;
  std::string rate_shape = "constant";
  double target_accuracy = -1;
  double target_loss = -1;
  std::string run;
  JobPlace place;
  std::string replay;  // a model whose recorded times are played instead
  std::string bytes_scale = "1";
  std::string time_scale = "1";
  bool json = false;
  bool quiet = false;
  // Options of the job by the key that they have in config.json, to see which were given.
  std::vector<std::pair<std::string, const CLI::Option*>> by_key;
};

// The program that the ranks run: beside this one.
absl::StatusOr<std::string> WorkerProgram(const std::string& self) {
  const std::string program =
      (std::filesystem::path(self).parent_path() / "syncopate-train").string();
  if (access(program.c_str(), X_OK) == 0) return program;
  return absl::UnimplementedError(absl::StrCat(
      "there is no ", program,
      ": this Syncopate was built without training; build it with -DSYNCOPATE_BUILD_TRAIN=ON"));
}

// With --resume the options are those that the run began with, except for what is given now.
absl::StatusOr<TrainOptions> Merge(const TrainArguments& arguments, const TrainOptions& before,
                                   const TrainOptions& now) {
  auto merged = nlohmann::ordered_json::parse(train::ToJson(before));
  const auto given = nlohmann::ordered_json::parse(train::ToJson(now));
  for (const auto& [key, option] : arguments.by_key) {
    if (option->count() > 0 && given.contains(key)) merged[key] = given.at(key);
  }
  merged["resume"] = true;
  merged["overwrite"] = false;
  return train::ParseTrainOptions(merged.dump());
}

absl::StatusOr<TrainOptions> ToOptions(const TrainArguments& arguments) {
  TrainOptions options = arguments.options;
  SYNCOPATE_RETURN_IF_ERROR(train::ParseShape(arguments.rate_shape, options.rate));
  if (!arguments.batches.empty()) {
    options.batch = 0;
    for (const absl::string_view part : absl::StrSplit(arguments.batches, ',')) {
      const absl::StatusOr<int64_t> samples = ParseInt(part, 1, 1 << 20);
      if (!samples.ok()) return At("--batches", samples.status());
      options.batches.push_back(*samples);
      options.batch += *samples;
    }
  }
  if (arguments.target_accuracy >= 0) options.target_accuracy = arguments.target_accuracy;
  if (arguments.target_loss >= 0) options.target_loss = arguments.target_loss;
  return options;
}

// Where to run: what is given now, and for the rest the place of the run that is resumed.
train::TrainPlace ToPlace(const JobPlace& given, const train::TrainPlace& before) {
  // A resumed run may be in another working directory.
  const auto absolute = [](const std::string& path) {
    return path.empty() ? path : std::filesystem::absolute(path).string();
  };
  train::TrainPlace place = before;
  if (given.ranks > 0) place.ranks = given.ranks;
  if (!given.agent.empty()) place.agent = given.agent;
  if (!given.hosts.empty() || !given.hostfile.empty() || !given.lab.empty()) {
    place.hosts = given.hosts;
    place.hostfile = absolute(given.hostfile);
    place.lab = IsLabFile(given.lab) ? absolute(given.lab) : given.lab;
  }
  const bool somewhere = !place.hosts.empty() || !place.hostfile.empty() || !place.lab.empty();
  if (place.ranks == 0 && !somewhere) place.ranks = 1;
  return place;
}

JobPlace ToJobPlace(const train::TrainPlace& place) {
  JobPlace job;
  job.ranks = place.ranks;
  job.hosts = place.hosts;
  job.hostfile = place.hostfile;
  job.agent = place.agent;
  job.lab = place.lab;
  job.declared_topology = true;
  return job;
}

// How many workers there will be, where that can be told without asking anybody.
absl::StatusOr<std::optional<int>> KnownWorkers(const train::TrainPlace& place) {
  if (place.ranks > 0) return place.ranks;
  std::vector<launch::HostSlots> hosts;
  if (!place.hosts.empty()) {
    absl::StatusOr<std::vector<launch::HostSlots>> parsed = launch::ParseHostList(place.hosts);
    if (!parsed.ok()) return At("-H", parsed.status());
    hosts = *std::move(parsed);
  } else if (!place.hostfile.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string text,
                               ReadFile(place.hostfile, limits::kHostFileBytesMax));
    SYNCOPATE_ASSIGN_OR_RETURN(hosts, launch::ParseHostFile(place.hostfile, text));
  } else if (IsLabFile(place.lab)) {
    SYNCOPATE_ASSIGN_OR_RETURN(const lab::Spec spec, lab::ReadLab(place.lab));
    return static_cast<int>(lab::WorkerHosts(spec).size());
  } else {
    return std::nullopt;
  }
  int workers = 0;
  for (const launch::HostSlots& host : hosts) workers += host.slots;
  return workers;
}

// The folder of that name, taken for this run; without a name a new one.
absl::StatusOr<observe::RunLock> TakeFolder(const std::string& name, const TrainOptions& options) {
  if (name.empty()) {
    return observe::RunLock::TakeNew(
        observe::RunPath(absl::StrCat(options.model, "-", options.data)));
  }
  // Workers may have other working directories.
  const std::string folder = std::filesystem::absolute(observe::RunPath(name)).string();
  SYNCOPATE_ASSIGN_OR_RETURN(observe::RunLock lock, observe::RunLock::Take(folder));
  if (!options.resume && !options.overwrite) {
    SYNCOPATE_RETURN_IF_ERROR(observe::CheckHoldsNoRun(folder));
  }
  return lock;
}

// Says so, if a run that is to be resumed has nothing left to do.
std::optional<int> TellIfNothingIsLeft(const TrainArguments& arguments, const TrainRun& run,
                                       const TrainOptions& before, const TrainOptions& now) {
  const std::optional<observe::Summary> summary = ReadRunSummary(run);
  if (!summary) return std::nullopt;
  const std::string why = WhyNothingIsLeft(*summary, before, now);
  if (why.empty()) return std::nullopt;
  if (arguments.json) std::cout << observe::ToJson(*summary, run.folder) << "\n" << std::flush;
  (arguments.json ? std::cerr : std::cout) << "run " << run.name << ": " << why << "\n"
                                           << std::flush;
  return summary->reached.value_or(true) ? kDone : kFailed;
}

// When the run's summary was written; nothing: it has none.
using SummaryTime = std::optional<std::filesystem::file_time_type>;
SummaryTime SummaryTimeOf(const TrainRun& run) {
  std::error_code error;
  const auto time =
      std::filesystem::last_write_time(absl::StrCat(run.folder, "/summary.json"), error);
  return error ? SummaryTime() : SummaryTime(time);
}

absl::StatusOr<int> RunWorkers(const TrainArguments& arguments, const TrainRun& run,
                               const TrainOptions& options) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string self, OwnPath());
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string worker, WorkerProgram(self));
  setenv(train::kTrainOptionsVariable, train::ToJson(options).c_str(), 1);
  std::vector<std::string> program = {worker, run.folder};
  if (arguments.json) program.push_back("--json");
  if (!arguments.quiet) {
    program.push_back(isatty(STDERR_FILENO) == 1 ? "--progress" : "--lines");
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const strategy::StrategyEntry* entry,
                             strategy::FindStrategy(options.strategy));
  JobPlace place = ToJobPlace(options.place);
  place.goes_on = entry->survives;
  const SummaryTime before = SummaryTimeOf(run);
  SYNCOPATE_ASSIGN_OR_RETURN(const int code, RunProgramAsJob(place, kTrainCommand, program));
  // A job that goes on without lost workers has reached its end when its run is written, whatever
  // became of some of its ranks.
  const SummaryTime after = SummaryTimeOf(run);
  const bool reached_end = entry->survives && after && after != before;
  return TellEnd(run, options, arguments.json, reached_end ? kDone : code);
}

// What is wrong with the hosts of services is told here, once, rather than by every rank.
absl::Status CheckServiceRanks(const TrainOptions& options, std::optional<int> workers) {
  SYNCOPATE_ASSIGN_OR_RETURN(const strategy::StrategyEntry* entry,
                             strategy::FindStrategy(options.strategy));
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<int> ranks,
                             worker::ServiceRanksFromEnvironment(ProcessEnvironment()));
  const absl::Status status = worker::ServiceOrder(std::move(ranks), entry->servers(),
                                                   workers.value_or(limits::kWorkersMax))
                                  .status();
  return entry->server < 0 ? status : At(absl::StrCat("--strategy ", entry->name), status);
}

absl::Status CheckOptions(const TrainOptions& options, std::optional<int> workers) {
  SYNCOPATE_RETURN_IF_ERROR(options.Validate(workers.value_or(1)));
  SYNCOPATE_RETURN_IF_ERROR(CheckServiceRanks(options, workers));
  if (!options.resume || !workers) return absl::OkStatus();
  const absl::StatusOr<train::CheckpointNote> note = train::ReadCheckpointNote(options.run_folder);
  if (!note.ok()) return At("--resume", note.status());
  const absl::Status as_many = train::CheckWorkers(*note, *workers);
  if (as_many.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--resume: ", as_many.message()));
}

// A job without lockstep that has lost workers goes on with those that are left, unless -n says otherwise.
void TakeWorkersOfCheckpoint(TrainOptions& options) {
  const auto entry = strategy::FindStrategy(options.strategy);
  const auto note = train::ReadCheckpointNote(options.run_folder);
  if (!entry.ok() || (*entry)->lockstep || !note.ok()) return;
  options.place.ranks = note->workers;
}

// The job's options: a run that is resumed must be there, a new one gets a folder only when its
// options are known to be good.
absl::StatusOr<int> RunTrain(const TrainArguments& arguments) {
  SYNCOPATE_RETURN_IF_ERROR(ProgressOfThisProcess().status());  // SYNCOPATE_PROGRESS may be wrong
  SYNCOPATE_ASSIGN_OR_RETURN(TrainOptions options, ToOptions(arguments));
  TrainRun run{.name = arguments.run,
               .folder = std::filesystem::absolute(observe::RunPath(arguments.run)).string()};
  TrainOptions before;
  std::optional<observe::RunLock> lock;
  if (options.resume) {
    if (run.name.empty()) {
      return absl::InvalidArgumentError("--resume: which run? name it with --run");
    }
    SYNCOPATE_RETURN_IF_ERROR(ReadRunOptions(run).status());  // no folder is made for a resume
    SYNCOPATE_ASSIGN_OR_RETURN(observe::RunLock taken, TakeFolder(run.name, options));
    lock.emplace(std::move(taken));
    SYNCOPATE_ASSIGN_OR_RETURN(before, ReadRunOptions(run));
    SYNCOPATE_ASSIGN_OR_RETURN(options, Merge(arguments, before, options));
  }
  options.place = ToPlace(arguments.place, before.place);
  // The hosts of a lab share this machine's cores.
  if (!options.place.lab.empty() && options.threads == 0) options.threads = 1;
  options.run_folder = run.folder;
  if (options.resume && arguments.place.ranks == 0) TakeWorkersOfCheckpoint(options);
  // Workers may have other working directories.
  if (!options.log.empty()) options.log = std::filesystem::absolute(options.log).string();
  if (options.resume) {
    const std::optional<int> told = TellIfNothingIsLeft(arguments, run, before, options);
    if (told) return *told;
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<int> workers, KnownWorkers(options.place));
  SYNCOPATE_RETURN_IF_ERROR(CheckOptions(options, workers));
  if (!lock) {
    SYNCOPATE_ASSIGN_OR_RETURN(observe::RunLock taken, TakeFolder(run.name, options));
    lock.emplace(std::move(taken));
    run.folder = options.run_folder = std::filesystem::absolute(lock->path()).string();
    if (run.name.empty()) run.name = std::filesystem::path(run.folder).filename().string();
  }
  return RunWorkers(arguments, run, options);
}

ReplayArguments ToReplay(const TrainArguments& arguments) {
  ReplayArguments replay;
  replay.models = arguments.replay;
  replay.schedule = arguments.options.schedule;
  replay.bytes_scale = arguments.bytes_scale;
  replay.time_scale = arguments.time_scale;
  if (arguments.options.iterations > 0) {
    replay.iterations = static_cast<int>(arguments.options.iterations);
  }
  replay.pace = arguments.options.pace;
  replay.json = arguments.json;
  replay.place = arguments.place;
  return replay;
}

void AddJobOptions(CLI::App& command, TrainArguments& arguments) {
  TrainOptions& o = arguments.options;
  const auto add = [&](const char* key, const char* flags, auto& value, const char* help) {
    CLI::Option* option = command.add_option(flags, value, help)->capture_default_str();
    arguments.by_key.emplace_back(key, option);
    return option;
  };
  const auto add_flag = [&](const char* key, const char* flags, bool& value, const char* help) {
    arguments.by_key.emplace_back(key, command.add_flag(flags, value, help));
  };
  add("model", "--model", o.model, "mlp, cnn, resnet20, resnet32, vgg16 or transformer");
  add("data", "--data", o.data, "mnist, fashion-mnist, cifar10, text, synthetic or synthetic-text");
  add("seed", "--seed", o.seed, "Seed of all random numbers");
  add("batch", "--batch", o.batch, "Samples of all workers together in an iteration");
  add("batches", "--batches", arguments.batches,
      "Samples of each worker in an iteration, instead of --batch")
      ->type_name("N,N,...");
  add("accumulate", "--accumulate", o.accumulate, "Parts in which a worker computes its batch");
  add("iterations", "--iterations", o.iterations,
      "Number of iterations; 0: as many as --epochs gives");
  add("epochs", "--epochs", o.epochs, "Number of passes over the training data");
  add_flag("augment", "--augment", o.augment, "Flip and move images at random");
  add("dropout", "--dropout", o.dropout, "Dropout probability, in models that have dropout layers");
  add("optimizer", "--optimizer", o.optimizer.name, "sgd or adam");
  add("learning_rate", "--lr", o.rate.base, "Learning rate");
  add("warmup", "--warmup", o.rate.warmup, "Iterations in which the rate rises to --lr");
  add("rate_shape", "--rate", arguments.rate_shape,
      "Course of the rate: constant, cosine, step:1000,2000 or step:1000,2000x0.5");
  add("momentum", "--momentum", o.optimizer.momentum, "Momentum of sgd");
  add_flag("nesterov", "--nesterov", o.optimizer.nesterov, "sgd: use Nesterov momentum");
  add("weight_decay", "--weight-decay", o.optimizer.weight_decay, "Added to the gradient");
  add("clip_norm", "--clip", o.clip_norm, "Largest norm of the whole gradient; 0: any");
  const std::string strategies =
      absl::StrCat("How workers synchronize: ", strategy::StrategyList());
  add("strategy", "--strategy", o.strategy, strategies.c_str());
  add("data_mode", "--data-mode", o.data_mode,
      "Where samples come from: in-step, independent, or epochs that are exact at unequal speed; "
      "default: as the strategy has it");
  add("schedule", "--schedule", o.schedule,
      "Which gradients travel together and when: none, wfbp, mg-wfbp, bucket, asc-wfbp or search");
  add_flag("measure_first", "--measure-first", o.measure_first,
           "Measure communication costs before the first iteration, however long that takes; "
           "default: within 3 % of the run, put off until it fits");
  AddPaceOptions(command, o.pace);
  for (const char* key : {"pace", "slow"}) {
    arguments.by_key.emplace_back(key, command.get_option(absl::StrCat("--", key)));
  }
  add("evaluate", "--evaluate", o.evaluate,
      "When to evaluate: in the run, beside it on a thread of one worker, or after it from "
      "snapshots; default: as the strategy needs")
      ->type_name("in|beside|after")
      ->default_str("");
  add("evaluate_every", "--evaluate-every", o.evaluate_every,
      "Iterations between evaluations; 0: one at the end");
  add("evaluate_samples", "--evaluate-samples", o.evaluate_samples,
      "Test samples in each evaluation; 0: all");
  add("target_accuracy", "--target-accuracy", arguments.target_accuracy,
      "Stop when an evaluation reaches it (0 to 1)")
      ->default_str("");
  add("target_loss", "--target-loss", arguments.target_loss,
      "Stop when an evaluation's loss is at or below this")
      ->default_str("");
  add("checkpoint_every", "--checkpoint-every", o.checkpoint_every,
      "Iterations between checkpoints, in the run's folder; 0: none");
  add("report_every", "--report-every", o.report_every, "Iterations between lines of progress");
  add("threads", "--threads", o.threads, "Threads of each worker; 0: its share of the cores");
  add("synthetic_samples", "--synthetic-samples", o.synthetic_samples,
      "Number of training samples of synthetic data");
}

}  // namespace

void AddTrainCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(kTrainCommand, "Train a model with several workers");
  auto arguments = std::make_shared<TrainArguments>();
  AddJobOptions(*command, *arguments);
  command
      ->add_option("--run", arguments->run,
                   "Folder for what the run leaves: a path, or a name for runs/NAME; default: "
                   "runs/MODEL-DATA-1, or the next number")
      ->type_name("RUN");
  command->add_flag("--overwrite", arguments->options.overwrite,
                    "Replace what an earlier run left there");
  command->add_flag("--resume", arguments->options.resume,
                    "Go on from the run's last checkpoint, with its options, workers, hosts or lab "
                    "where none are given");
  AddJobPlaceOptions(*command, arguments->place);
  command
      ->add_option("--replay", arguments->replay,
                   "Train nothing: play this model's recorded times and send its real bytes; see "
                   "syncopate replay")
      ->type_name("MODEL");
  command
      ->add_option("--bytes-scale", arguments->bytes_scale,
                   "--replay: multiply the bytes of every tensor by this factor")
      ->capture_default_str();
  command
      ->add_option("--time-scale", arguments->time_scale,
                   "--replay: multiply the computing time of every tensor by this factor")
      ->capture_default_str();
  arguments->by_key.emplace_back(
      "log", command
                 ->add_option("--log", arguments->options.log,
                              "Write every decision, transfer and update to this file, one JSON "
                              "object a line; a resumed run appends to it")
                 ->type_name("FILE"));
  command->add_flag("--json", arguments->json, "End with one JSON object instead of a table");
  command->add_flag("--quiet", arguments->quiet,
                    "No lines of progress, on a terminal or every 30 s elsewhere");
  command->footer(kTrainExamples);
  command->callback([arguments, &exit_code] {
    if (!arguments->replay.empty()) {
      if (!arguments->options.log.empty()) {
        exit_code =
            Complain(kTrainCommand, absl::InvalidArgumentError("--log: a replay writes none"));
        return;
      }
      exit_code = RunReplay(ToReplay(*arguments));
      return;
    }
    const absl::StatusOr<int> code = RunTrain(*arguments);
    exit_code = code.ok() ? *code : Complain(kTrainCommand, code.status());
  });
}

}  // namespace syncopate::tools
