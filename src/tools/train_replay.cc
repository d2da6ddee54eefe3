#include "tools/train_replay.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "adapt/schedule_keeper.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/figures.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/processor_time.h"
#include "base/progress.h"
#include "base/status.h"
#include "observe/breakdown.h"
#include "observe/recorder.h"
#include "schedule/models/model_tables.h"
#include "schedule/planners.h"
#include "schedule/published.h"
#include "schedule/timeline.h"
#include "sync/exchange.h"
#include "sync/replay.h"
#include "tools/bench/statistics.h"
#include "tools/command_line.h"
#include "tools/plan_schedule.h"

namespace syncopate::tools {
namespace {

constexpr char kReplayCommand[] = "replay";
constexpr int kWarmUpFirst = 3;  // iterations of each schedule before all others
constexpr int kWarmUp = 1;       // at the begin of each turn

// Everything that is wrong with the arguments is found before a job starts.
struct ReplayPlan {
  std::vector<TensorTable> tables;
  std::vector<std::string> planners;
  std::optional<Schedule> schedule;  // of a file, instead of planners
  std::optional<cost::CommunicationCosts> costs;
  sync::CostProbeOptions probe;
  schedule::ScheduleOptions planning;
  int iterations = 0;  // a turn
  int rounds = 0;
  bool overlap_forward = false;
  ComputePace pace;  // of this worker
};

absl::StatusOr<TensorTable> LoadModel(const std::string& name) {
  if (!absl::StrContains(name, '.') && !absl::StrContains(name, '/')) {
    absl::StatusOr<TensorTable> table = schedule::MakeModelTable(name);
    if (!table.ok()) return At("--model", table.status());
    return table;
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string text, ReadFile(name, limits::kTensorTextBytesMax));
  absl::StatusOr<TensorTable> table = ParseTensorTable(text);
  if (!table.ok()) return At(name, table.status());
  return table;
}

absl::StatusOr<std::vector<TensorTable>> LoadModels(const ReplayArguments& arguments,
                                                    double bytes_scale) {
  const absl::StatusOr<double> times = ParseDouble(arguments.time_scale, 1e-6, 1e6);
  if (!times.ok()) return At("--time-scale", times.status());
  std::vector<TensorTable> tables;
  for (const absl::string_view name : absl::StrSplit(arguments.models, ',')) {
    SYNCOPATE_ASSIGN_OR_RETURN(const TensorTable table, LoadModel(std::string(name)));
    tables.push_back(Scaled(table, bytes_scale, *times));
    if (const absl::Status status = Validate(tables.back()); !status.ok()) {
      return At("scaled", status);
    }
  }
  return tables;
}

absl::Status ReadSchedules(const std::string& text, ReplayPlan& plan) {
  if (absl::StrContains(text, '.') || absl::StrContains(text, '/')) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string file, ReadFile(text, limits::kTensorTextBytesMax));
    absl::StatusOr<Schedule> schedule = ParseSchedule(file);
    if (!schedule.ok()) return At(text, schedule.status());
    for (const TensorTable& table : plan.tables) {
      const absl::Status fits = Validate(*schedule, table.size());
      if (!fits.ok()) return At(absl::StrCat(text, " for ", table.model), fits);
    }
    plan.schedule = *std::move(schedule);
    return absl::OkStatus();
  }
  for (const schedule::SchedulePlanner& planner : schedule::SchedulePlanners()) {
    if (text == "all") plan.planners.emplace_back(planner.name);
  }
  if (text == "all") return absl::OkStatus();
  plan.planners = absl::StrSplit(text, ',');
  for (const std::string& planner : plan.planners) {
    const absl::Status known =
        schedule::MakeSchedule(planner, plan.tables.front(), schedule::PublishedCosts()).status();
    if (!known.ok()) return At("--schedule", known);
  }
  return absl::OkStatus();
}

absl::StatusOr<ReplayPlan> MakePlan(const ReplayArguments& arguments) {
  ReplayPlan plan;
  const absl::StatusOr<double> bytes = ParseDouble(arguments.bytes_scale, 1e-6, 1e6);
  if (!bytes.ok()) return At("--bytes-scale", bytes.status());
  SYNCOPATE_ASSIGN_OR_RETURN(plan.tables, LoadModels(arguments, *bytes));
  SYNCOPATE_RETURN_IF_ERROR(ReadSchedules(arguments.schedule, plan));
  // Whether there are such ranks shows when the job has begun.
  SYNCOPATE_RETURN_IF_ERROR(ComputePace::Make(arguments.pace, 0, limits::kWorkersMax).status());
  if (!arguments.costs.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(plan.costs, LoadCosts(arguments.costs));
  }
  const absl::StatusOr<int64_t> budget_ns = ParseDurationNs(arguments.costs_time);
  if (!budget_ns.ok()) return At("--costs-time", budget_ns.status());
  plan.probe.budget_seconds = static_cast<double>(*budget_ns) * 1e-9;
  // Buckets hold the same part of the model as without scaling.
  const auto scaled = [&](uint64_t size) {
    return std::max<uint64_t>(1, static_cast<uint64_t>(static_cast<double>(size) * *bytes));
  };
  plan.planning.bucket_bytes = scaled(plan.planning.bucket_bytes);
  plan.planning.first_bucket_bytes = scaled(plan.planning.first_bucket_bytes);
  if (!arguments.bucket.empty()) {
    const absl::StatusOr<uint64_t> bucket = ParseBytes(arguments.bucket, uint64_t{1} << 40);
    if (!bucket.ok()) return At("--bucket", bucket.status());
    plan.planning.bucket_bytes = *bucket;
    plan.planning.first_bucket_bytes = std::min(plan.planning.first_bucket_bytes, *bucket);
  }
  plan.planning.ways_max = arguments.ways;
  plan.planning.overlap_forward = plan.overlap_forward = arguments.overlap_forward;
  plan.rounds = std::min(arguments.rounds, arguments.iterations);
  plan.iterations = (arguments.iterations + plan.rounds - 1) / plan.rounds;
  return plan;
}

// One model by all schedules. Every rank of the job comes here.
class ModelReplay {
 public:
  ModelReplay(Worker& worker, const ReplayPlan& plan, const TensorTable& table, Progress& progress)
      : worker_(worker),
        plan_(plan),
        table_(table),
        progress_(progress),
        recorder_(MonotonicClock(), worker.rank(),
                  ProcessEnvironment()("SYNCOPATE_HOST").value_or("here")) {}

  absl::StatusOr<ReplayedModel> Run() {
    ReplayedModel result;
    result.table = table_;
    if (plan_.costs) {
      result.costs.fit.costs = *plan_.costs;
    } else {
      progress_.ShowTimed(absl::StrCat(table_.model, ", measuring what transfers cost"),
                          plan_.probe.budget_seconds);
      SYNCOPATE_ASSIGN_OR_RETURN(result.costs, sync::MeasureCosts(worker_, plan_.probe));
    }
    progress_.Show(absl::StrCat(table_.model, ", planning"));
    SYNCOPATE_RETURN_IF_ERROR(MakeSchedules(result));
    for (const ReplayedSchedule& row : result.schedules) {
      seconds_left_ += row.predicted_seconds * IterationsOf(plan_);
    }
    seconds_all_ = seconds_left_;
    progress_.Announce(seconds_all_, absl::StrCat(table_.model, " as predicted, ",
                                                  schedules_.size(), " schedules, ", plan_.rounds,
                                                  " rounds of ", plan_.iterations, " iterations"));
    SYNCOPATE_ASSIGN_OR_RETURN(replay_,
                               sync::Replay::Make(worker_, table_, schedules_.front(),
                                                  {.overlap_forward = plan_.overlap_forward,
                                                   .recorder = &recorder_,
                                                   .pace = plan_.pace}));
    for (size_t i = 0; i < schedules_.size(); ++i) {
      SYNCOPATE_RETURN_IF_ERROR(replay_->SetSchedule(schedules_[i]));
      ShowTurn("warming up", result.schedules[i]);
      SYNCOPATE_RETURN_IF_ERROR(replay_->Run(kWarmUpFirst).status());
      seconds_left_ -= kWarmUpFirst * result.schedules[i].predicted_seconds;
    }
    std::vector<std::vector<double>> seconds(schedules_.size());
    cores_.assign(schedules_.size(), {});
    for (int round = 0; round < plan_.rounds; ++round) {
      for (size_t i = 0; i < schedules_.size(); ++i) {
        // Another schedule is first in every round.
        const size_t turn = (i + static_cast<size_t>(round)) % schedules_.size();
        ShowTurn(absl::StrCat("round ", round + 1), result.schedules[turn]);
        SYNCOPATE_RETURN_IF_ERROR(
            TakeTurn(turn, round + 1 == plan_.rounds, result.schedules[turn], seconds[turn]));
        seconds_left_ -= (kWarmUp + plan_.iterations) * result.schedules[turn].predicted_seconds;
      }
    }
    for (size_t i = 0; i < schedules_.size(); ++i) {
      result.schedules[i].measured_seconds = bench::Quantile(seconds[i], 0.5);
      result.schedules[i].cores_busy = cores_[i].Share();
    }
    return result;
  }

  // All iterations of one schedule.
  static int IterationsOf(const ReplayPlan& plan) {
    return kWarmUpFirst + plan.rounds * (kWarmUp + plan.iterations);
  }

 private:
  void ShowTurn(absl::string_view what, const ReplayedSchedule& row) {
    progress_.Show(absl::StrCat(table_.model, ", ", what, ", ", row.name),
                   seconds_all_ > 0 ? 1 - seconds_left_ / seconds_all_ : 0);
  }

  absl::Status MakeSchedules(ReplayedModel& result) {
    const cost::CommunicationCosts& costs = result.costs.fit.costs;
    if (plan_.schedule) schedules_.push_back(*plan_.schedule);
    for (const std::string& planner : plan_.planners) {
      adapt::KeeperPolicy policy;
      policy.planning = plan_.planning;
      SYNCOPATE_ASSIGN_OR_RETURN(
          const auto keeper,
          adapt::ScheduleKeeper::Make(sync::ExchangeOf(worker_), table_, planner, costs, policy));
      schedules_.push_back(keeper->schedule());
    }
    schedule::TimelineOptions options;
    options.overlap_forward = plan_.overlap_forward;
    for (const Schedule& schedule : schedules_) {
      SYNCOPATE_ASSIGN_OR_RETURN(const schedule::IterationTimeline timeline,
                                 schedule::PredictTimeline(table_, costs, schedule, options));
      ReplayedSchedule row;
      row.name = schedule.planner;
      row.transfers = static_cast<int>(schedule.transfers.size());
      row.at_once_max = timeline.at_once_max;
      row.predicted_seconds = timeline.iteration_seconds;
      result.schedules.push_back(std::move(row));
    }
    return absl::OkStatus();
  }

  // Some iterations by one schedule.
  absl::Status TakeTurn(size_t which, bool last, ReplayedSchedule& row,
                        std::vector<double>& all_seconds) {
    SYNCOPATE_RETURN_IF_ERROR(replay_->SetSchedule(schedules_[which]));
    SYNCOPATE_RETURN_IF_ERROR(replay_->Run(kWarmUp).status());
    recorder_.TakeNew();
    const absl::StatusOr<ProcessorTime> before = ReadProcessorTime();
    const int64_t begin_ns = MonotonicClock().NowNs();
    SYNCOPATE_ASSIGN_OR_RETURN(std::vector<double> seconds, replay_->Run(plan_.iterations));
    const int64_t end_ns = MonotonicClock().NowNs();
    CoresUsed used;
    if (const auto after = ReadProcessorTime(); before.ok() && after.ok()) {
      used = {*before, *after};
      cores_[which].Add(used);
    }
    // The workers wait for each other in every iteration, so their mean is what one takes.
    SYNCOPATE_RETURN_IF_ERROR(
        worker_.world().AllReduce(Array::Of(seconds.data(), seconds.size()), ReduceOp::kAverage));
    row.rounds.push_back(bench::Quantile(seconds, 0.5));
    all_seconds.insert(all_seconds.end(), seconds.begin(), seconds.end());
    if (!last) return absl::OkStatus();
    row.summary.strategy = "bsp";
    row.summary.schedule = row.name;
    row.summary.workers = worker_.size();
    row.summary.iterations = plan_.iterations;
    row.summary.seconds = static_cast<double>(end_ns - begin_ns) * 1e-9;
    row.summary.cores_busy = used.Share();
    return Summarise(row.summary);
  }

  // Sums up the spans of the turn that has just ended. Which rank was late can be told only where
  // the hosts share a clock, as those of a lab do.
  absl::Status Summarise(observe::Summary& summary) {
    WorkerTrace trace = recorder_.Trace();
    trace.spans = recorder_.TakeNew();
    trace.dropped = trace.dropped_bytes = 0;
    trace.dropped_first = trace.dropped_last = -1;
    SYNCOPATE_ASSIGN_OR_RETURN(
        const std::vector<std::string> texts,
        adapt::TextsOfAll(sync::ExchangeOf(worker_), "trace", Encode(trace)));
    std::vector<WorkerTrace> traces;
    for (const std::string& text : texts) {
      SYNCOPATE_ASSIGN_OR_RETURN(traces.emplace_back(), DecodeTrace(text));
    }
    SYNCOPATE_ASSIGN_OR_RETURN(const observe::Breakdown costs, observe::BreakDown(traces));
    observe::SetCosts(costs, &summary);
    return absl::OkStatus();
  }

  // The processor time of this host over several stretches: when they began and ended, added up.
  struct CoresUsed {
    ProcessorTime begin = {}, end = {};

    void Add(const CoresUsed& other) {
      for (auto [sum, more] : {std::pair(&begin, &other.begin), std::pair(&end, &other.end)}) {
        sum->total += more->total;
        sum->idle += more->idle;
        sum->stolen += more->stolen;
      }
    }
    // Nothing if they were shorter than the kernel counts.
    std::optional<double> Share() const {
      if (end.total == begin.total) return std::nullopt;
      return BusyShare(begin, end);
    }
  };

  Worker& worker_;
  const ReplayPlan& plan_;
  const TensorTable& table_;
  Progress& progress_;
  double seconds_all_ = 0;  // of all iterations, as predicted
  double seconds_left_ = 0;
  observe::Recorder recorder_;
  std::vector<Schedule> schedules_;
  std::vector<CoresUsed> cores_;  // by schedule, in its measured iterations
  std::unique_ptr<sync::Replay> replay_;
};

std::vector<std::string> JobWords(const ReplayArguments& arguments) {
  std::vector<std::string> words = {kReplayCommand, "--model", arguments.models, "--schedule",
                                    arguments.schedule};
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  add("--bytes-scale", arguments.bytes_scale);
  add("--time-scale", arguments.time_scale);
  add("--costs", arguments.costs);
  add("--costs-time", arguments.costs_time);
  add("--bucket", arguments.bucket);
  add("--iterations", absl::StrCat(arguments.iterations));
  add("--rounds", absl::StrCat(arguments.rounds));
  if (arguments.ways > 0) add("--ways", absl::StrCat(arguments.ways));
  if (arguments.overlap_forward) words.push_back("--overlap-forward");
  for (const std::string& pace : arguments.pace.pace) add("--pace", pace);
  for (const std::string& slow : arguments.pace.slow) add("--slow", slow);
  if (arguments.json) words.push_back("--json");
  return words;
}

// What is known before the job has measured anything.
void AnnounceAll(const ReplayPlan& plan, Progress& progress) {
  const size_t schedules = plan.schedule ? 1 : plan.planners.size();
  double seconds = 0;
  for (const TensorTable& table : plan.tables) {
    if (!plan.costs) seconds += plan.probe.budget_seconds;
    seconds += static_cast<double>(schedules) * ModelReplay::IterationsOf(plan) *
               (table.forward_seconds() + table.backward_seconds());
  }
  progress.Announce(seconds, absl::StrCat("at least: ", CountOf(plan.tables.size(), "model"), ", ",
                                          CountOf(schedules, "schedule"),
                                          "; waiting for transfers comes on top"));
}

absl::StatusOr<int> Run(const ReplayArguments& arguments) {
  SYNCOPATE_ASSIGN_OR_RETURN(ReplayPlan plan, MakePlan(arguments));
  if (arguments.place.given()) {
    JobPlace place = arguments.place;
    place.declared_topology = true;
    return RunAsJob(place, JobWords(arguments));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(ProgressOptions style, ProgressOfThisProcess());
  SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<Worker> worker, Worker::Start());
  SYNCOPATE_ASSIGN_OR_RETURN(plan.pace,
                             ComputePace::Make(arguments.pace, worker->rank(), worker->size()));
  if (worker->rank() != 0) style.style = ProgressOptions::Style::kSilent;
  Progress progress("syncopate replay", style, MonotonicClock(), std::cerr);
  AnnounceAll(plan, progress);
  std::vector<ReplayedModel> models;
  for (const TensorTable& table : plan.tables) {
    SYNCOPATE_ASSIGN_OR_RETURN(ReplayedModel model,
                               ModelReplay(*worker, plan, table, progress).Run());
    progress.Clear();
    if (worker->rank() == 0 && !arguments.json) std::cout << ToTable(model) << std::flush;
    models.push_back(std::move(model));
  }
  if (worker->rank() == 0 && arguments.json) std::cout << ToJson(models, worker->size());
  std::cout.flush();
  return kDone;
}

constexpr char kReplayFooter[] =
    "Nothing is computed: tensors wait as long as their layers take on a GPU, and real bytes "
    "move.\n"
    "Predicted times come from the costs that the same job measures first.\n"
    "\n"
    "Examples:\n"
    "  syncopate replay --model resnet-152 -n 4 --bytes-scale 0.05 --time-scale 0.1\n"
    "  syncopate replay --model resnet-152,bert-base --lab labs/two-racks.toml --bytes-scale "
    "0.025\n"
    "  syncopate replay --model vgg-16 -H h0,h1 --schedule search,bucket --json";

}  // namespace

int RunReplay(const ReplayArguments& arguments) {
  const absl::StatusOr<int> code = Run(arguments);
  return code.ok() ? *code : Complain(kReplayCommand, code.status());
}

void AddPaceOptions(CLI::App& command, PaceOptions& pace) {
  // Entries have commas of their own.
  command
      .add_option(
          "--pace", pace.pace,
          "Experiments on few cores: each iteration of a worker takes DELAY and its samples "
          "at RATE a second, waiting where computing is quicker; a list gives workers paces of "
          "their own, as \"20ms,800;3:20ms,400;4-6:0s,90\", and may be repeated; a replay's "
          "batch is one sample, and its predictions do not count it")
      ->type_name("[RANKS:]DELAY,RATE[;...]")
      ->allow_extra_args(false);
  command
      .add_option(
          "--slow", pace.slow,
          "Experiments: these workers sleep in each iteration K times as long as they compute; a "
          "list as \"0-1:1;3:2\", may be repeated")
      ->type_name("RANKS:K[;...]")
      ->allow_extra_args(false);
}

void AddReplayOptions(CLI::App& command, ReplayArguments& arguments) {
  AddPaceOptions(command, arguments.pace);
  const std::string names =
      absl::StrJoin(schedule::SchedulePlanners(), ", ",
                    [](std::string* out, const schedule::SchedulePlanner& planner) {
                      absl::StrAppend(out, planner.name);
                    });
  command
      .add_option("--schedule", arguments.schedule,
                  absl::StrCat(names, "; several as wfbp,search, all, or the file of one"))
      ->capture_default_str();
  command
      .add_option("--bytes-scale", arguments.bytes_scale,
                  "Multiply the bytes of every tensor by this factor")
      ->capture_default_str();
  command
      .add_option("--time-scale", arguments.time_scale,
                  "Multiply the computing time of every tensor by this factor")
      ->capture_default_str();
  command.add_option("--costs", arguments.costs,
                     "Plan by these costs, as `plan --costs` (measured in the job)");
  command.add_option("--costs-time", arguments.costs_time, "How long to measure costs")
      ->capture_default_str();
  command.add_option("--bucket", arguments.bucket, "Size of buckets (25M, scaled as the bytes)");
  command.add_option("--iterations", arguments.iterations, "Measured iterations of each schedule")
      ->check(WholeNumber(1, 100'000))
      ->capture_default_str();
  command.add_option("--rounds", arguments.rounds, "Rounds in which the schedules take turns")
      ->check(WholeNumber(1, 1000))
      ->capture_default_str();
  command
      .add_option("--ways", arguments.ways,
                  "search: most transfers at once (default: as many as were measured)")
      ->check(WholeNumber(1, limits::kBesideMax + 1));
  command.add_flag("--overlap-forward", arguments.overlap_forward,
                   "The next forward of a layer waits for its own tensors only");
}

void AddReplayCommand(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ReplayArguments>();
  CLI::App* command = app.add_subcommand(
      kReplayCommand, "Play the training of large models by their recorded times");
  const std::string models = absl::StrJoin(schedule::KnownModels(), ", ",
                                           [](std::string* out, const schedule::KnownModel& model) {
                                             absl::StrAppend(out, model.name);
                                           });
  command
      ->add_option("--model", arguments->models,
                   absl::StrCat(models, "; several with commas; or the file of a tensor table"))
      ->required();
  AddReplayOptions(*command, *arguments);
  command->add_flag("--json", arguments->json, "Print one JSON object");
  AddJobPlaceOptions(*command, arguments->place);
  command->footer(kReplayFooter);
  command->callback([arguments, &exit_code] { exit_code = RunReplay(*arguments); });
}

}  // namespace syncopate::tools
