// A live campaign: many faults in real jobs on the hosts of emulated clusters, some jobs side by
// side. tests/campaign --live starts it. Needs root.
//
// The process forks a *lane* for each job that runs at a time. A lane has a lab of its own and one
// thread, from which it forks workers. Whatever ends, all below it ends, and the labs are taken down.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/parse.h"
#include "base/progress.h"
#include "lab/lab_testing.h"
#include "lab/scoped_lab.h"
#include "lab/spec.h"
#include "live/job.h"
#include "live/plan.h"
#include "live/results.h"
#include "live/training.h"
#include "tests/forked.h"

namespace syncopate::live {
namespace {

constexpr uint64_t kFaultsMax = 1'000'000;
constexpr int kLanesMax = 8;
constexpr int kNoRoot = 77;            // the exit code by which the test knows that it was skipped
constexpr uint64_t kFailuresMax = 50;  // more of them tell nothing new

struct Settings {
  uint64_t faults = 100;
  uint64_t seed = 1;
  int lanes = 2;
  std::string resume;
  std::string only;  // "JOB.CASE"
  std::string logs;
};

// What the lanes share.
struct Tally {
  std::atomic<uint64_t> next_job{0};
  std::atomic<uint64_t> cases{0};     // that are judged
  std::atomic<uint64_t> underway{0};  // of jobs that run
  std::atomic<uint64_t> failures{0};
};

std::string RepeatCommand(uint64_t seed, const Outcome& outcome) {
  return absl::StrCat("tests/campaign --live --seed ", seed, " --case ", outcome.job, ".",
                      outcome.number);
}

void PrintFailure(uint64_t seed, const JobPlan& plan, const Outcome& outcome) {
  std::string text = absl::StrCat(Describe(plan), "\n  case ", outcome.number, ": ",
                                  Describe(plan.cases[static_cast<size_t>(outcome.number)]), "\n");
  for (const std::string& failure : outcome.failures) absl::StrAppend(&text, "  ", failure, "\n");
  absl::StrAppend(&text, "  repeat it by: ", RepeatCommand(seed, outcome), "\n");
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

absl::StatusOr<std::unique_ptr<lab::ScopedLab>> MakeLab(int lane) {
  absl::StatusOr<lab::Spec> spec = lab::ParseLab(
      lab::TwoRacksToml("campaign", kHosts / 2, kNetworkRate, kNetworkRate), "the campaign's lab");
  if (!spec.ok()) return spec.status();
  return lab::ScopedLab::Up(*spec, absl::StrCat("campaign-", getppid(), "-", lane),
                            MonotonicClock());
}

std::string LogPath(const Settings& settings, uint64_t job) {
  return settings.logs.empty() ? "" : absl::StrCat(settings.logs, "/job-", job, ".log");
}

// Runs jobs until there were faults enough; returns the exit code of its process.
int RunLane(int lane, const Settings& settings, const std::set<uint64_t>& done, Results& results,
            Tally& tally) {
  absl::StatusOr<std::unique_ptr<lab::ScopedLab>> lab = MakeLab(lane);
  if (!lab.ok()) {
    std::fprintf(stderr, "campaign: %s\n", lab.status().ToString().c_str());
    return 2;
  }
  while (tally.cases + tally.underway < settings.faults && tally.failures < kFailuresMax) {
    const uint64_t number = tally.next_job++;
    if (done.count(number) > 0) continue;
    const JobPlan plan = MakeJob(settings.seed, number);
    if (plan.operation == Operation::kTraining && TrainingProgram().empty()) continue;
    tally.underway += plan.cases.size();
    const std::vector<Outcome> outcomes = RunJob(***lab, plan, {.log = LogPath(settings, number)});
    tally.underway -= plan.cases.size();
    tally.cases += outcomes.size();
    if (const absl::Status added = results.Add(outcomes); !added.ok()) {
      std::fprintf(stderr, "campaign: %s\n", added.ToString().c_str());
      return 2;
    }
    for (const Outcome& outcome : outcomes) {
      if (outcome.failures.empty()) continue;
      ++tally.failures;
      PrintFailure(settings.seed, plan, outcome);
    }
  }
  return 0;
}

// Repeats a job up to one of its cases.
int RunOnly(const Settings& settings, uint64_t number, int last) {
  const JobPlan plan = MakeJob(settings.seed, number);
  if (last >= static_cast<int>(plan.cases.size())) {
    std::fprintf(stderr, "campaign: --case: %s; there is no case %d\n", Describe(plan).c_str(),
                 last);
    return 2;
  }
  absl::StatusOr<std::unique_ptr<lab::ScopedLab>> lab = MakeLab(0);
  if (!lab.ok()) {
    std::fprintf(stderr, "campaign: %s\n", lab.status().ToString().c_str());
    return 2;
  }
  std::printf("%s\n", Describe(plan).c_str());
  for (int i = 0; i <= last; ++i) {
    std::printf("  case %d: %s\n", i, Describe(plan.cases[static_cast<size_t>(i)]).c_str());
  }
  std::fflush(stdout);
  const std::vector<Outcome> outcomes =
      RunJob(***lab, plan, {.cases = last + 1, .log = LogPath(settings, number)});
  bool held = true;
  for (const Outcome& outcome : outcomes) {
    std::printf("case %d: noticed after %ld ms, sentries held up for %ld ms at most, data %s\n",
                outcome.number, outcome.noticed_ms, outcome.pause_ms, outcome.data.c_str());
    if (!outcome.failures.empty()) PrintFailure(settings.seed, plan, outcome);
    held = held && outcome.failures.empty();
  }
  return held ? 0 : 1;
}

// Tells how far it is until all lanes have ended; false if one did not end well.
bool WatchLanes(const Settings& settings, Forked& lanes, const Tally& tally) {
  absl::StatusOr<ProgressOptions> options =
      ProgressOptionsFor(ProcessEnvironment(), isatty(STDERR_FILENO) != 0);
  Progress progress("campaign", options.value_or(ProgressOptions()), MonotonicClock(), std::cerr);
  bool well = true;
  const auto runs = [](pid_t pid) { return pid > 0; };
  while (std::any_of(lanes.pids().begin(), lanes.pids().end(), runs)) {
    progress.Show(absl::StrCat(tally.cases.load(), " of ", settings.faults, " faults, ",
                               tally.failures.load(), " failures"),
                  std::min(1.0, static_cast<double>(tally.cases.load()) /
                                    static_cast<double>(settings.faults)));
    for (const int code : lanes.Join(absl::Seconds(1))) well = well && (code == 0 || code == -1);
  }
  return well;
}

int RunCampaign(Settings settings) {
  if (settings.resume.empty()) {
    settings.resume = absl::StrCat("/tmp/syncopate-campaign-", getpid(), ".jsonl");
  }
  absl::StatusOr<Results> results = Results::Open(settings.resume, settings.seed);
  if (!results.ok()) {
    std::fprintf(stderr, "campaign: %s\n", std::string(results.status().message()).c_str());
    return 2;
  }
  std::fprintf(stderr, "campaign: results are in %s (--resume)\n", settings.resume.c_str());
  if (TrainingProgram().empty()) {
    std::fprintf(stderr,
                 "campaign: there will be no training: syncopate_train_worker is not built\n");
  }
  Shared<Tally> tally;
  std::set<uint64_t> done;
  for (const Outcome& outcome : results->outcomes()) done.insert(outcome.job);
  tally->cases = results->outcomes().size();
  const int64_t begin_ns = MonotonicClock().NowNs();
  bool well = false;
  {
    Forked lanes;
    for (int lane = 0; lane < settings.lanes; ++lane) {
      lanes.Fork([&] { return RunLane(lane, settings, done, *results, *tally); });
    }
    well = WatchLanes(settings, lanes, *tally);
  }
  absl::StatusOr<Results> all = Results::Open(settings.resume, settings.seed);
  if (!all.ok()) {
    std::fprintf(stderr, "campaign: %s\n", all.status().ToString().c_str());
    return 2;
  }
  std::printf("%s%.0f minutes\n", Table(all->outcomes()).c_str(),
              static_cast<double>(MonotonicClock().NowNs() - begin_ns) / 6e10);
  bool held = true;
  for (const Outcome& outcome : all->outcomes()) {
    if (outcome.failures.empty()) continue;
    held = false;
    std::printf("failed: %s: %s\n", RepeatCommand(settings.seed, outcome).c_str(),
                outcome.failures.front().c_str());
  }
  if (const absl::Status held_up = CheckHeldUp(all->outcomes()); !held_up.ok()) {
    held = false;
    std::printf("failed: %s\n", std::string(held_up.message()).c_str());
  }
  return !well ? 2 : held ? 0 : 1;
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Strikes real jobs on emulated clusters with faults, and counts what became of them.");
  Settings settings;
  app.add_option("--faults", settings.faults, "How many faults")
      ->check(CLI::Range(uint64_t{1}, kFaultsMax))
      ->capture_default_str();
  app.add_option("--seed", settings.seed, "Which campaign")->capture_default_str();
  app.add_option("--lanes", settings.lanes, "How many jobs run at a time")
      ->check(CLI::Range(1, kLanesMax))
      ->capture_default_str();
  app.add_option("--resume", settings.resume,
                 "Keep the results in this file, and go on with those that it has");
  app.add_option("--case", settings.only, "Repeat one case: JOB.CASE");
  app.add_option("--logs", settings.logs, "Keep what the workers say in files of this folder");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (geteuid() != 0) {
    std::fprintf(stderr, "campaign: emulated clusters need root\n");
    return kNoRoot;
  }
  if (settings.only.empty()) return RunCampaign(settings);
  const std::vector<std::string> parts = absl::StrSplit(settings.only, '.');
  const absl::StatusOr<int64_t> job = ParseInt(parts[0], 0, 1'000'000'000);
  const absl::StatusOr<int64_t> number =
      parts.size() == 2 ? ParseInt(parts[1], 0, kCasesMax) : absl::StatusOr<int64_t>(-1);
  if (!job.ok() || !number.ok() || *number < 0) {
    std::fprintf(stderr, "campaign: --case \"%s\" is not JOB.CASE, as 12.3\n",
                 settings.only.c_str());
    return 2;
  }
  return RunOnly(settings, static_cast<uint64_t>(*job), static_cast<int>(*number));
}

}  // namespace
}  // namespace syncopate::live

int main(int argc, char** argv) { return syncopate::live::Main(argc, argv); }
