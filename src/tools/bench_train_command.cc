#include "tools/bench_train_command.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/figures.h"
#include "base/limits.h"
#include "base/own_path.h"
#include "base/parse.h"
#include "base/progress.h"
#include "base/status.h"
#include "lab/lab.h"
#include "lab/scoped_lab.h"
#include "lab/spec.h"
#include "schedule/planners.h"
#include "tools/bench/lab_plan.h"
#include "tools/bench/launch_plan.h"
#include "tools/bench/loaded_topology.h"
#include "tools/bench/spawn.h"
#include "tools/bench/train_contest.h"
#include "tools/bench/workspace.h"
#include "tools/command_line.h"
#include "tools/interrupt.h"
#include "train/data/dataset_file.h"
#include "train/data/load.h"
#include "train/options/train_options.h"

namespace syncopate::tools {
namespace {

using bench::LaunchPlan;
using bench::TrainContestant;
using bench::TrainRun;
using train::TrainOptions;

constexpr const char* kBenchTrainCommand = "bench train";
constexpr const char* kDdp = "ddp";
constexpr const char* kTwin = "ddp_twin.py";
constexpr absl::string_view kTwinModels[] = {"mlp", "cnn", "resnet20", "resnet32"};
constexpr const char* kWorker = "syncopate-train";
constexpr const char* kLabInterface = "eth0";
constexpr uint64_t kResultBytesMax = uint64_t{64} << 20;
// Losses of the same job differ by the order of additions only, which training makes larger.
constexpr double kLossDifferenceMax = 0.05;
constexpr int64_t kReports = 5;  // losses that each contestant reports
constexpr int kTrainRoundsMax = 1000;
constexpr const char* kBenchTrainExamples = R"(Examples:
  syncopate bench train -n 4 --data synthetic --against ddp
  syncopate bench train --model cnn --data mnist -n 4 --schedule search,wfbp,none
  syncopate bench train --lab labs/slow-links.toml --model resnet20 --data cifar10 --batch 64 --against ddp
  syncopate bench train --lab labs/slow-links.toml --rounds 5 --against ddp --json > rows.json)";

struct Flags {
  TrainOptions options;
  std::string workers;  // empty: 4, in a lab one for each host
  std::string lab;
  std::string schedules = "search,none";
  std::string against;
  std::string drivers;
  std::string timeout = "10m";
  int rounds = 3;
  bool json = false;
};

class TrainBench {
 public:
  TrainBench(Flags flags, const Clock& clock, Environment environment, ProgressOptions progress)
      : flags_(std::move(flags)),
        clock_(clock),
        environment_(std::move(environment)),
        progress_("syncopate bench train", progress, clock, std::cerr) {}

  absl::Status Run() {
    SYNCOPATE_RETURN_IF_ERROR(ReadFlags());
    SYNCOPATE_ASSIGN_OR_RETURN(workspace_,
                               bench::Workspace::Make(bench::ScratchBase(environment_)));
    SYNCOPATE_RETURN_IF_ERROR(FindPrograms());
    SYNCOPATE_RETURN_IF_ERROR(PrepareData());
    if (spec_) SYNCOPATE_RETURN_IF_ERROR(StartLab());
    const size_t runs = static_cast<size_t>(flags_.rounds) * contestants_.size();
    progress_.Say(
        absl::StrCat(CountOf(runs, "run"), " of ",
                     CountOf(static_cast<uint64_t>(flags_.options.iterations), "iteration"),
                     "; the first will tell how long they take"));
    size_t done = 0;
    for (int round = 0; round < flags_.rounds; ++round) {
      for (size_t i = 0; i < contestants_.size(); ++i) {
        // Another contestant is first in each round.
        const size_t turn = (i + static_cast<size_t>(round)) % contestants_.size();
        progress_.Show(
            absl::StrCat("round ", round + 1, " of ", flags_.rounds, ", ", contestants_[turn].name),
            static_cast<double>(done) / static_cast<double>(runs));
        const int64_t begin_ns = clock_.NowNs();
        SYNCOPATE_RETURN_IF_ERROR(RunOne(contestants_[turn], round));
        if (++done > 1 || runs == 1) continue;
        const double seconds = static_cast<double>(clock_.NowNs() - begin_ns) * 1e-9;
        progress_.Announce(
            seconds * static_cast<double>(runs - 1),
            absl::StrCat(CountOf(runs - 1, "more run"), ", if all take as long as the first"));
      }
    }
    Report();
    return absl::OkStatus();
  }

 private:
  absl::Status ReadFlags() {
    workers_ = 4;
    if (!flags_.lab.empty()) {
      SYNCOPATE_ASSIGN_OR_RETURN(spec_, lab::ReadLab(flags_.lab));
      workers_ = static_cast<int>(lab::WorkerHosts(*spec_).size());
    }
    if (!flags_.workers.empty()) {
      const auto workers = ParseInt(flags_.workers, 1, limits::kLocalWorkersMax);
      if (!workers.ok()) return At("-n", workers.status());
      workers_ = static_cast<int>(*workers);
    }
    const absl::StatusOr<int64_t> timeout = ParseDurationNs(flags_.timeout);
    if (!timeout.ok()) return At("--timeout", timeout.status());
    timeout_ns_ = *timeout;
    if (flags_.rounds < 1 || flags_.rounds > kTrainRoundsMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("--rounds ", flags_.rounds, ": expected 1 to ", kTrainRoundsMax));
    }
    for (const absl::string_view schedule : absl::StrSplit(flags_.schedules, ',')) {
      TrainOptions options = flags_.options;
      options.schedule = std::string(schedule);
      SYNCOPATE_RETURN_IF_ERROR(options.Validate(workers_));
      contestants_.push_back({.name = std::string(schedule), .rounds = {}});
    }
    for (const absl::string_view peer : absl::StrSplit(flags_.against, ',', absl::SkipEmpty())) {
      if (peer != kDdp) {
        return absl::InvalidArgumentError(absl::StrCat("--against ", peer, ": there is ddp"));
      }
      if (std::find(std::begin(kTwinModels), std::end(kTwinModels), flags_.options.model) ==
          std::end(kTwinModels)) {
        return absl::InvalidArgumentError(
            absl::StrCat("--model ", flags_.options.model, ": the twin on DDP has ",
                         absl::StrJoin(kTwinModels, ", "), "; without --against any will do"));
      }
      contestants_.push_back({.name = kDdp, .rounds = {}});
    }
    return absl::OkStatus();
  }

  // What is missing is said before anything starts.
  absl::Status FindPrograms() {
    SYNCOPATE_ASSIGN_OR_RETURN(self_, OwnPath());
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string folder, OwnFolder());
    for (const std::string& path : {absl::StrCat(folder, "/", kWorker),
                                    absl::StrCat(folder, "/../libexec/syncopate/", kWorker)}) {
      if (worker_.empty() && access(path.c_str(), X_OK) == 0) worker_ = path;
    }
    if (worker_.empty()) {
      return absl::NotFoundError(absl::StrCat(
          "there is no ", kWorker, " beside this command; install libtorch-dev and build again"));
    }
    if (contestants_.back().name != kDdp) return absl::OkStatus();
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string drivers,
                               bench::FindDrivers(flags_.drivers, folder));
    twin_ = absl::StrCat(drivers, "/", kTwin);
    LaunchPlan check;
    check.arguments = {twin_, "check"};
    const absl::Status status =
        bench::RunToEnd(check, absl::StrCat(workspace_->path(), "/check.log"),
                        clock_.NowNs() + timeout_ns_, interrupt_.fd(), clock_);
    if (status.ok() || absl::IsCancelled(status)) return status;
    return absl::NotFoundError(absl::StrCat(kDdp, ": ", twin_, ": ", status.message()));
  }

  // Fetches real data before the first run, and gives the twin a file of the same bytes.
  absl::Status PrepareData() {
    train::LoadOptions load;
    SYNCOPATE_ASSIGN_OR_RETURN(load.cache_folder, train::CacheFolder(environment_));
    load.synthetic.train_samples = flags_.options.synthetic_samples;
    load.say = [this](absl::string_view line) { progress_.Say(line); };
    SYNCOPATE_ASSIGN_OR_RETURN(const train::Dataset data,
                               train::LoadDataset(flags_.options.data, load));
    for (const train::DataSource& source : train::DataSources()) {
      if (source.name == flags_.options.data) {
        data_file_ = train::CachedFile(source, load.cache_folder);
      }
    }
    if (!data_file_.empty()) return absl::OkStatus();
    data_file_ = absl::StrCat(workspace_->path(), "/data");
    return train::WriteDatasetFile(data_file_, data);
  }

  absl::Status StartLab() {
    SYNCOPATE_ASSIGN_OR_RETURN(lab_, lab::ScopedLab::Up(*spec_, workspace_->LabName(), clock_));
    const int hosts = static_cast<int>(lab::WorkerHosts(*spec_).size());
    const std::vector<int> slots =
        lab::SpreadSlots(hosts, workers_, (workers_ + hosts - 1) / hosts);
    place_ = bench::PlaceInLab(**lab_, self_, slots);
    place_->topology = absl::StrCat(workspace_->path(), "/topology.json");
    const int cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
    return WriteFile(place_->topology, ToJson(bench::LoadedTopology(*spec_, cores)));
  }

  absl::Status RunOne(TrainContestant& contestant, int round) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string folder, workspace_->MakeFolder(absl::StrCat(
                                                             contestant.name, "-", round + 1)));
    TrainOptions options = flags_.options;
    options.run_folder = folder;
    options.overwrite = true;
    options.evaluate_samples = workers_;  // what is learnt is not asked here
    options.report_every = std::max<int64_t>(1, options.iterations / kReports);
    // A worker a host is no reason to use all cores: all hosts share them.
    options.threads = std::max(1, options.threads);
    LaunchPlan plan;
    plan.arguments = place_ ? bench::LaunchInLab(*place_)
                            : std::vector<std::string>{
                                  self_, "launch", "-n", absl::StrCat(workers_), "--no-tag", "--"};
    if (contestant.name == kDdp) {
      for (const std::string& word :
           {twin_, std::string("train"), std::string("--data-file"), data_file_,
            std::string("--store"), absl::StrCat(folder, "/store"), std::string("--interface"),
            std::string(place_ ? kLabInterface : "lo")}) {
        plan.arguments.push_back(word);
      }
    } else {
      options.schedule = contestant.name;
      // Short jobs are compared here by their iterations after planning.
      options.measure_first = schedule::PlansByMeasurements(options.schedule);
      plan.arguments.insert(plan.arguments.end(), {worker_, folder});
      if (place_) plan.environment["SYNCOPATE_TOPO_FILE"] = place_->topology;
    }
    // Not among the arguments: a list of processes should show who runs, not a page of JSON.
    plan.environment[train::kTrainOptionsVariable] = ToJson(options);
    const absl::Status ended =
        bench::RunToEnd(plan, absl::StrCat(workspace_->path(), "/", contestant.name, ".log"),
                        clock_.NowNs() + timeout_ns_, interrupt_.fd(), clock_);
    if (!ended.ok()) return absl::IsCancelled(ended) ? ended : At(contestant.name, ended);
    absl::StatusOr<TrainRun> run = ReadRun(folder);
    if (!run.ok()) return At(contestant.name, run.status());
    contestant.rounds.push_back(*std::move(run));
    return absl::OkStatus();
  }

  static absl::StatusOr<TrainRun> ReadRun(const std::string& folder) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string summary,
                               ReadFile(absl::StrCat(folder, "/summary.json"), kResultBytesMax));
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string metrics,
                               ReadFile(absl::StrCat(folder, "/metrics.jsonl"), kResultBytesMax));
    SYNCOPATE_ASSIGN_OR_RETURN(observe::Summary parsed, observe::ParseSummary(summary));
    return bench::MakeTrainRun(std::move(parsed), observe::ReadMetrics(metrics));
  }

  void Report() {
    progress_.Clear();
    const std::vector<bench::TrainRow> rows = bench::TrainRows(contestants_);
    if (flags_.json) {
      for (const bench::TrainRow& row : rows) std::cout << bench::TrainJsonLine(row);
    } else {
      const TrainOptions& options = flags_.options;
      std::cout << absl::StrCat("# ", options.model, " on ", options.data, ", batch ",
                                options.batch, " over ",
                                CountOf(static_cast<uint64_t>(workers_), "worker"), ", ",
                                CountOf(static_cast<uint64_t>(options.iterations), "iteration"),
                                ", ", CountOf(static_cast<uint64_t>(flags_.rounds), "round"), "\n")
                << bench::TrainTable(rows);
    }
    std::cout << std::flush;
    for (const bench::TrainRow& row : rows) {
      if (row.loss_difference <= kLossDifferenceMax) continue;
      Say(kBenchTrainCommand,
          absl::StrCat("note: the losses of ", row.contestant, " differ by up to ",
                       static_cast<int>(row.loss_difference * 100), " % from those of ",
                       rows.front().contestant, "; it may not be the same job"));
    }
  }

  const Flags flags_;
  const Clock& clock_;
  const Environment environment_;
  InterruptScope interrupt_;  // until everything else is cleaned up
  int workers_ = 0;
  int64_t timeout_ns_ = 0;
  std::vector<TrainContestant> contestants_;
  std::optional<lab::Spec> spec_;  // these three only in a lab
  std::unique_ptr<bench::Workspace> workspace_;
  std::unique_ptr<lab::ScopedLab> lab_;
  std::optional<bench::LabPlace> place_;
  std::string self_, worker_, twin_;  // paths of programs
  std::string data_file_;
  Progress progress_;
};

absl::Status RunTrainBench(const Flags& flags) {
  SYNCOPATE_ASSIGN_OR_RETURN(const ProgressOptions progress, ProgressOfThisProcess());
  return TrainBench(flags, MonotonicClock(), ProcessEnvironment(), progress).Run();
}

}  // namespace

void AddBenchTrainCommand(CLI::App& bench, int& exit_code) {
  CLI::App* command = bench.add_subcommand(
      "train", "Measure a training job, each schedule and PyTorch's DDP in turns");
  auto flags = std::make_shared<Flags>();
  flags->options.model = "resnet20";
  flags->options.data = "synthetic";
  flags->options.iterations = 30;
  flags->options.rate.base = 0.01;  // losses that depend little on the order of additions
  TrainOptions& options = flags->options;
  command->add_option("--model", options.model, "mlp, cnn, resnet20 or resnet32; ours alone: any")
      ->capture_default_str();
  command->add_option("--data", options.data, "mnist, fashion-mnist, cifar10, synthetic")
      ->capture_default_str();
  command->add_option("--batch", options.batch, "Samples of all workers together")
      ->capture_default_str();
  command->add_option("--iterations", options.iterations, "Of every run")
      ->check(WholeNumberFrom(1))
      ->capture_default_str();
  command->add_option("--lr", options.rate.base, "Learning rate")->capture_default_str();
  command->add_option("--optimizer", options.optimizer.name, "sgd or adam")->capture_default_str();
  command->add_option("--seed", options.seed, "Of the parameters and the order of samples")
      ->capture_default_str();
  command->add_option("--threads", options.threads, "Of every worker (1)");
  command->add_option("-n,--workers", flags->workers,
                      "One process each (4; in a lab one for each host)");
  command->add_option("--lab", flags->lab, "Start this lab, run everything in it, take it down")
      ->type_name("FILE");
  command
      ->add_option("--schedule", flags->schedules,
                   "Ours, separated by commas; all others are compared with the first: search, "
                   "asc-wfbp, mg-wfbp, wfbp, bucket, none")
      ->capture_default_str();
  command->add_option("--against", flags->against, "Peers: ddp");
  command->add_option("--rounds", flags->rounds, "How often the contestants take turns")
      ->capture_default_str();
  command->add_option("--timeout", flags->timeout, "Of every run")->capture_default_str();
  command->add_option("--drivers", flags->drivers,
                      "Folder of the peers' programs (else beside this command)");
  command->add_flag("--json", flags->json, "One JSON object a contestant");
  command->footer(kBenchTrainExamples);
  command->callback([flags, &exit_code] {
    const absl::Status status = RunTrainBench(*flags);
    exit_code = status.ok() ? kDone : Complain(kBenchTrainCommand, status);
  });
}

}  // namespace syncopate::tools
