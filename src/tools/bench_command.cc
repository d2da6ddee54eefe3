#include "tools/bench_command.h"

#include <unistd.h>

#include <iostream>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/limits.h"
#include "base/own_path.h"
#include "base/parse.h"
#include "base/progress.h"
#include "base/status.h"
#include "lab/lab.h"
#include "lab/requirements.h"
#include "lab/scoped_lab.h"
#include "lab/spec.h"
#include "model/topology.h"
#include "plan/forest/forest.h"
#include "probe/infer.h"
#include "tools/bench/contestant_process.h"
#include "tools/bench/estimate.h"
#include "tools/bench/lab_plan.h"
#include "tools/bench/launch_plan.h"
#include "tools/bench/loaded_topology.h"
#include "tools/bench/network_bound.h"
#include "tools/bench/options.h"
#include "tools/bench/report.h"
#include "tools/bench/rounds.h"
#include "tools/bench/spawn.h"
#include "tools/bench/workspace.h"
#include "tools/bench_train_command.h"
#include "tools/command_line.h"
#include "tools/interrupt.h"
#include "worker/network.h"

namespace syncopate::tools {
namespace {

using bench::BenchFlags;
using bench::BenchOptions;

constexpr const char* kBenchCommand = "bench";
constexpr int64_t kProbeNsMax = 300'000'000'000;  // its own budget is far less
constexpr const char* kBenchExamples = R"(Examples:
  syncopate bench allreduce -n 4                                 ours alone, 4 KiB to 100 MiB
  syncopate bench allreduce -n 8 -f 16 --against openmpi,gloo    with peers and the memory limit
  syncopate bench broadcast -n 4 -b 1M -e 1M --rounds 9 --against mpich
  syncopate bench allreduce -n 4 -d bfloat16 -o avg --memory heap
  syncopate bench allreduce -n 4 --against all --json > rows.json
  syncopate bench allreduce -n 4 --against before=/builds/old/peers      another build of ours
  syncopate bench allreduce --lab labs/two-racks.toml -e 10M --against openmpi,gloo
  syncopate bench allreduce --lab labs/two-racks.toml --slots 2 -b 10M -e 10M
  syncopate bench allreduce --lab labs/pairs-8.toml --active 0-2,4,7 -b 20M -e 20M --against gloo)";

// What starting takes before anything is measured.
constexpr double kStartSeconds = 1, kStartInLabSeconds = 2;
// A call in a lab, in which all hosts share this machine's cores, takes about this much more than
// its network's bound.
constexpr double kLabCallSeconds = 5e-3, kTimesBound = 1.2;

int Cores() { return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); }

class BenchRun {
 public:
  // `spec` is the lab's; nothing: this machine as it is.
  BenchRun(BenchOptions options, std::optional<lab::Spec> spec, const Clock& clock,
           Environment environment, ProgressOptions progress)
      : options_(std::move(options)),
        spec_(std::move(spec)),
        clock_(clock),
        environment_(std::move(environment)),
        progress_("syncopate bench", progress, clock, std::cerr) {}

  absl::Status Run() {
    SYNCOPATE_ASSIGN_OR_RETURN(workspace_,
                               bench::Workspace::Make(bench::ScratchBase(environment_)));
    SYNCOPATE_ASSIGN_OR_RETURN(self_, OwnPath());
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string folder, OwnFolder());
    SYNCOPATE_ASSIGN_OR_RETURN(drivers_, bench::FindDrivers(options_.drivers, folder));
    if (spec_) SYNCOPATE_RETURN_IF_ERROR(StartLab());
    // All plans are made before the first process starts, so that what is missing is said at once.
    std::vector<std::pair<bench::ContestantSettings, bench::LaunchPlan>> plans;
    for (const std::string& name : options_.contestants) {
      SYNCOPATE_ASSIGN_OR_RETURN(auto plan, PlanFor(name));
      plans.push_back(std::move(plan));
    }
    Announce();
    if (spec_) SYNCOPATE_RETURN_IF_ERROR(LearnNetwork());
    std::vector<std::unique_ptr<bench::Entrant>> entrants;
    for (const auto& [settings, plan] : plans) {
      progress_.Show(absl::StrCat("starting ", settings.name));
      auto entrant = bench::ContestantProcess::Start(settings, plan, clock_);
      if (entrant.ok()) {
        entrants.push_back(*std::move(entrant));
      } else if (settings.name == bench::kOurs || absl::IsCancelled(entrant.status())) {
        return entrant.status();
      } else {
        Warn(entrant.status());
      }
    }
    if (entrants.empty()) return absl::UnavailableError("no contestant started");
    progress_.Clear();
    if (!options_.json) std::cout << TableHead(options_) << std::flush;
    SYNCOPATE_RETURN_IF_ERROR(bench::RunRounds(options_, std::move(entrants), Guess(), Observer()));
    if (wrong_ > 0) {
      return absl::DataLossError(absl::StrCat(wrong_, " elements of our results were wrong"));
    }
    return absl::OkStatus();
  }

 private:
  // Of a call, before anything has run.
  bench::CallGuess Guess() const {
    if (!bound_) return bench::GuessOnHost(options_.workers);
    return [this](uint64_t bytes) {
      const std::optional<double> bound_s = bound_->Seconds(options_.collective, bytes);
      return bound_s ? kLabCallSeconds + kTimesBound * *bound_s
                     : kLabCallSeconds + bench::GuessOnHost(options_.workers)(bytes);
    };
  }

  // Says how long it will take.
  void Announce() {
    const size_t contestants = options_.contestants.size();
    double seconds =
        bench::Estimate(options_, Guess(), contestants).SecondsLeft() +
        static_cast<double>(contestants) * (spec_ ? kStartInLabSeconds : kStartSeconds);
    if (options_.topology == bench::kTopologyProbe) seconds += ProbeSeconds();
    const auto count = [](size_t number, absl::string_view what) {
      return absl::StrCat(number, " ", what, number == 1 ? "" : "s");
    };
    progress_.Announce(seconds, absl::StrCat(count(contestants, "contestant"), ", ",
                                             count(options_.sizes.size(), "size"), ", ",
                                             count(static_cast<size_t>(options_.rounds), "round")));
  }

  double ProbeSeconds() const {
    return probe::DefaultBudgetSeconds(static_cast<int>(lab::WorkerHosts(*spec_).size()));
  }

  absl::Status StartLab() {
    const std::string warning = lab::CpuLimitWarning(*spec_, Cores());
    if (!warning.empty()) Warn(absl::UnavailableError(absl::StrCat("note: ", warning)));
    SYNCOPATE_ASSIGN_OR_RETURN(lab_, lab::ScopedLab::Up(*spec_, workspace_->LabName(), clock_));
    bound_.emplace(*spec_, options_.slots, options_.active);
    place_ = bench::PlaceInLab(**lab_, self_, options_.slots);
    place_->agent = absl::StrCat(workspace_->path(), "/agent");
    if (options_.topology != bench::kTopologyNone) {
      place_->topology = absl::StrCat(workspace_->path(), "/topology.json");
    }
    return WriteFile(place_->agent, bench::AgentScript((*lab_)->name(), self_));
  }

  // What ours shall know of the lab's network, and what is proved of that.
  absl::Status LearnNetwork() {
    SYNCOPATE_RETURN_IF_ERROR(ChooseTopology());
    return Certify();
  }

  // What the forest planner proves of the topology that ours knows.
  absl::Status Certify() {
    if (options_.collective != Collective::kAllReduce || place_->topology.empty()) {
      return absl::OkStatus();
    }
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string text,
                               ReadFile(place_->topology, limits::kTopologyTextBytesMax));
    SYNCOPATE_ASSIGN_OR_RETURN(const Topology topology, ParseTopology(text));
    SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<int> placement,
                               worker::PlaceByHost(topology, place_->host_of));
    std::vector<int> active = options_.active;
    if (active.empty()) {
      active.resize(placement.size());
      std::iota(active.begin(), active.end(), 0);
    }
    SYNCOPATE_ASSIGN_OR_RETURN(
        const plan::ForestPlan plan,
        plan::PlanForest(topology, placement, active, plan::ForestOptions()));
    certified_seconds_per_byte_ = plan.certificate.bound;
    return absl::OkStatus();
  }

  // What ours shall know of the lab's network.
  absl::Status ChooseTopology() {
    if (options_.topology == bench::kTopologyNone) return absl::OkStatus();
    if (options_.topology == bench::kTopologyDeclared) {
      return WriteFile(place_->topology, ToJson(bench::LoadedTopology(*spec_, Cores())));
    }
    if (options_.topology == bench::kTopologyProbe) return Probe();
    absl::StatusOr<std::string> text = ReadFile(options_.topology, limits::kTopologyTextBytesMax);
    absl::Status status = text.ok() ? ParseTopology(*text).status() : text.status();
    if (!status.ok()) return At("--topology", status);
    return WriteFile(place_->topology, *text);
  }

  // Measures the lab before anything else runs in it.
  absl::Status Probe() {
    progress_.ShowTimed(absl::StrCat("probing lab ", spec_->name), ProbeSeconds());
    bench::LaunchPlan plan;
    plan.arguments = {self_, "probe", "--lab", (*lab_)->name(), "--topology-out", place_->topology};
    const absl::Status status =
        bench::RunToEnd(plan, absl::StrCat(workspace_->path(), "/probe.log"),
                        clock_.NowNs() + kProbeNsMax, interrupt_.fd(), clock_);
    if (status.ok() || absl::IsCancelled(status)) return status;
    return At("syncopate probe in the lab", status);
  }

  absl::StatusOr<std::pair<bench::ContestantSettings, bench::LaunchPlan>> PlanFor(
      const std::string& name) {
    bench::ContestantSettings settings;
    settings.name = name;
    settings.workers = options_.workers;
    settings.timeout = options_.timeout;
    settings.interrupt_fd = interrupt_.fd();
    SYNCOPATE_ASSIGN_OR_RETURN(settings.directory, workspace_->MakeFolder(name));
    absl::StatusOr<bench::LaunchPlan> plan = PlanLaunch(name, options_,
                                                        {.drivers = drivers_,
                                                         .directory = settings.directory,
                                                         .environment = environment_,
                                                         .root = geteuid() == 0,
                                                         .cores = Cores(),
                                                         .lab = place_});
    if (!plan.ok()) return At(name, plan.status());
    return std::make_pair(std::move(settings), *std::move(plan));
  }

  bench::RoundsObserver Observer() {
    bench::RoundsObserver observer;
    observer.on_rows = [this](const std::vector<bench::Row>& rows) {
      progress_.Clear();
      for (bench::Row row : rows) {
        const std::optional<double> bound_s =
            bound_ ? bound_->Seconds(options_.collective, row.bytes) : std::nullopt;
        if (bound_s) row.percent_of_bound = *bound_s * 1e6 / row.p50_us * 100;
        if (certified_seconds_per_byte_ > 0) {
          row.percent_of_certificate =
              certified_seconds_per_byte_ * static_cast<double>(row.bytes) * 1e6 / row.p50_us * 100;
        }
        std::cout << (options_.json ? JsonLine(options_, row) : TableLine(options_, row));
        if (row.wrong.value_or(0) == 0) continue;
        if (row.contestant == bench::kOurs) wrong_ += *row.wrong;
        Warn(absl::DataLossError(absl::StrCat(row.contestant, " has ", *row.wrong,
                                              " wrong elements at ", FormatBytes(row.bytes))));
      }
      std::cout << std::flush;
    };
    observer.on_drop = [this](const std::string& name, const absl::Status& why) {
      Warn(absl::UnavailableError(absl::StrCat(why.message(), "; going on without ", name)));
    };
    observer.on_progress = [this](uint64_t bytes, int round, const std::string& name, double part) {
      progress_.Show(absl::StrCat(FormatBytes(bytes), ", ",
                                  round == 0 ? "trial" : absl::StrCat("round ", round), ", ", name),
                     part);
    };
    return observer;
  }

  // Says what went wrong and goes on.
  void Warn(const absl::Status& what) {
    progress_.Clear();
    Say(kBenchCommand, what.message());
  }

  const BenchOptions options_;
  const std::optional<lab::Spec> spec_;
  const Clock& clock_;
  const Environment environment_;
  InterruptScope interrupt_;  // until everything else is cleaned up
  std::unique_ptr<bench::Workspace> workspace_;
  std::unique_ptr<lab::ScopedLab> lab_;  // these three only in a lab
  std::optional<bench::LabPlace> place_;
  std::optional<bench::NetworkBound> bound_;
  double certified_seconds_per_byte_ = 0;  // 0: nothing is proved
  std::string self_;                       // this command's path
  std::string drivers_;
  Progress progress_;
  uint64_t wrong_ = 0;
};

absl::Status Run(const BenchFlags& flags) {
  std::optional<lab::Spec> spec;
  int hosts = 0;
  if (!flags.lab.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(spec, lab::ReadLab(flags.lab));
    hosts = static_cast<int>(lab::WorkerHosts(*spec).size());
  }
  SYNCOPATE_ASSIGN_OR_RETURN(BenchOptions options, bench::ReadFlags(flags, hosts));
  SYNCOPATE_ASSIGN_OR_RETURN(const ProgressOptions progress, ProgressOfThisProcess());
  return BenchRun(std::move(options), std::move(spec), MonotonicClock(), ProcessEnvironment(),
                  progress)
      .Run();
}

int RunBench(const BenchFlags& flags) {
  const absl::Status status = Run(flags);
  return status.ok() ? kDone : Complain(kBenchCommand, status);
}

}  // namespace

void AddBenchCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "bench", "Measure a collective or a training job, here or in a lab, beside peers");
  auto flags = std::make_shared<BenchFlags>();
  command->add_option("collective", flags->collective,
                      "allreduce, broadcast, reduce, allgather, reducescatter, gather, scatter, "
                      "alltoall, barrier or sendrecv");
  command->add_option("-n,--workers", flags->workers,
                      "Workers, one process each (4; in a lab one for each host)");
  command->add_option("-b,--min-bytes", flags->bytes_min, "Smallest buffer")->capture_default_str();
  command->add_option("-e,--max-bytes", flags->bytes_max, "Largest buffer, always measured")
      ->capture_default_str();
  command->add_option("-f,--factor", flags->factor, "Factor from one size to the next")
      ->capture_default_str();
  command->add_option("-d,--type", flags->type, "float32, float64, float16, bfloat16, int32, int64")
      ->capture_default_str();
  command->add_option("-o,--op", flags->op, "sum, avg, wavg, min, max, prod")
      ->capture_default_str();
  command->add_option("--iters", flags->iterations,
                      "Timed calls a round (else about 0.1 s of them, at least 5)");
  command->add_option("-w,--warmup", flags->warmup,
                      "Untimed calls before them (else a tenth as many)");
  command
      ->add_option("-c,--check", flags->check,
                   "Calls a round whose every element is checked; 0: none")
      ->capture_default_str();
  command->add_option("--rounds", flags->rounds, "How often contestants alternate at each size")
      ->capture_default_str();
  command
      ->add_option("--active", flags->active,
                   "Of allreduce: the ranks whose data counts (else all). The others may relay for "
                   "ours; peers run among the active ones only")
      ->type_name("RANKS");
  command->add_option("--against", flags->against,
                      "Peers: openmpi (both its layers; in a lab also its ring), mpich, gloo, all; "
                      "NAME=FOLDER: another build of ours, by the folder of its bench_syncopate");
  command->add_flag("--memory-limit,!--no-memory-limit", flags->memory_limit,
                    "With --against: also what a plain loop over shared memory takes (default on)");
  command->add_flag("--peers-only", flags->peers_only, "Leave ours out");
  command->add_option(
      "--algorithm", flags->algorithm,
      "Algorithm of ours, by name (default: the one with the least predicted time)");
  command->add_option(
      "--gloo-algorithm", flags->gloo_algorithm,
      "ring, bcube, halving-doubling, or quickest: the one that is at each size (the "
      "default; in a lab ring)");
  command
      ->add_option("--memory", flags->memory,
                   "Where our buffers are: arena (shared with the peers) or heap")
      ->capture_default_str();
  command->add_option("--timeout", flags->timeout, "Longest wait for a contestant")
      ->capture_default_str();
  command->add_option("--drivers", flags->drivers,
                      "Folder of the contestants' programs (else beside this command)");
  command->add_option("--lab", flags->lab, "Start this lab, run everything in it, take it down")
      ->type_name("FILE");
  command->add_option("--slots", flags->slots, "In a lab: workers on each host (1)")
      ->type_name("N");
  command
      ->add_option("--topology", flags->topology,
                   "In a lab, what ours knows of the network: as its file declares it (declared, "
                   "the default), as syncopate probe measures it first (probe), nothing (none), or "
                   "a topology's file")
      ->type_name("declared|probe|none|FILE");
  command->add_flag("--json", flags->json, "One JSON object a row and contestant");
  command->footer(kBenchExamples);
  AddBenchTrainCommand(*command, exit_code);
  command->callback([command, flags, &exit_code] {
    if (command->get_subcommands().empty()) exit_code = RunBench(*flags);
  });
}

}  // namespace syncopate::tools
