// One worker's part of a training job: prepares data, model and synchronizer, runs the iterations,
// and gathers what the run took.
//
// Where workers could fail differently (data, model, checkpoint, folder) they agree on the outcome
// first (SideChannel::Agree): a worker that returned alone would leave the others waiting in the
// next collective. Rank 0 writes the run's folder and speaks to people.
#include "train/trainer.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/environment.h"
#include "base/figures.h"
#include "base/parse.h"
#include "base/processor_time.h"
#include "base/sleep.h"
#include "base/status.h"
#include "model/compute_pace.h"
#include "observe/breakdown.h"
#include "observe/recorder.h"
#include "observe/run_directory.h"
#include "observe/run_reader.h"
#include "observe/timeline_file.h"
#include "observe/trace_parts.h"
#include "strategy/registry.h"
#include "sync/assemble.h"
#include "sync/decision_log.h"
#include "sync/synchronizer.h"
#include "torch/gradient_hooks.h"
#include "torch/kept_schedule.h"
#include "train/batch.h"
#include "train/checkpoint.h"
#include "train/checkpoint_set.h"
#include "train/data/load.h"
#include "train/model_file.h"
#include "train/models.h"
#include "train/seconds_left.h"
#include "train/side_channel.h"
#include "train/step_replica.h"

namespace syncopate::train {
namespace {

using observe::ScopedSpan;
using observe::Summary;

constexpr uint64_t kConfigBytesMax = uint64_t{1} << 20;
// After this long rank 0 says how far it has come, though no report is due: iterations are long.
constexpr int64_t kSilenceNsMax = 10'000'000'000;

std::string HostName() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

class Trainer {
 public:
  Trainer(Worker& worker, const TrainOptions& options,
          const std::function<void(absl::string_view)>& say, int64_t began_ns)
      : worker_(worker),
        options_(options),
        say_(say),
        recorder_(MonotonicClock(), worker.rank(), HostName()),
        began_ns_(began_ns),
        pace_(ComputePace()) {}

  absl::StatusOr<Summary> Run() {
    SYNCOPATE_RETURN_IF_ERROR(Prepare());
    SYNCOPATE_RETURN_IF_ERROR(Loop());
    return Conclude();
  }

 private:
  bool first() const { return worker_.rank() == 0; }
  double PartSeconds() const {
    return static_cast<double>(MonotonicClock().NowNs() - began_ns_) * 1e-9;
  }
  // Since the run began, without the time between its parts.
  double Seconds() const { return earlier_.seconds + PartSeconds(); }

  absl::Status Prepare();
  absl::Status Resume();
  absl::Status OpenLog();
  absl::Status MakeFolder();
  absl::Status Loop();
  absl::Status Iterate();
  absl::Status Need(int tensor);
  absl::Status Evaluate();
  absl::Status Save();
  // A moment, and how much of the time up to it was no part of an iteration.
  struct Mark {
    int64_t at_ns = 0;
    int64_t outside_ns = 0;
    int64_t iteration = 0;
  };
  Mark Now() const {
    return {MonotonicClock().NowNs(),
            recorder_.TotalNs(SpanKind::kEvaluate) + recorder_.TotalNs(SpanKind::kCheckpoint) +
                recorder_.TotalNs(SpanKind::kMeasure),
            iteration_};
  }
  // The seconds between two marks without what was no part of an iteration.
  static double InsideSeconds(const Mark& from, const Mark& to) {
    return static_cast<double>(to.at_ns - from.at_ns - (to.outside_ns - from.outside_ns)) * 1e-9;
  }
  observe::WallTime WallTime(double seconds) const;
  double SecondsLeftNow() const {
    return SecondsLeft({.elapsed_ns = MonotonicClock().NowNs() - loop_begin_.at_ns,
                        .done = iteration_ - loop_begin_.iteration,
                        .left = iterations_ - iteration_});
  }
  // `more`: what is known besides how far it has come.
  void SayProgress(absl::string_view more) {
    said_ns_ = MonotonicClock().NowNs();
    say_(absl::StrFormat("iteration %d of %d, %s%.0f s left", iteration_, iterations_, more,
                         SecondsLeftNow()));
  }
  absl::Status Report();
  absl::Status WriteState(uint64_t bytes_sent);
  absl::StatusOr<Summary> Conclude();
  absl::Status Append(observe::Metric metric) {
    if (!folder_) return absl::OkStatus();
    metric.iteration = iteration_;
    metric.seconds = Seconds();
    return folder_->Append(metric);
  }
  // Hooks run inside of LibTorch and cannot return an error, so Iterate() looks here after each
  // pass.
  void Note(const absl::Status& status) {
    if (failure_.ok()) failure_ = status;
  }

  Worker& worker_;
  const TrainOptions& options_;
  const std::function<void(absl::string_view)>& say_;
  observe::Recorder recorder_;
  const int64_t began_ns_;

  std::optional<SideChannel> side_;
  Dataset data_;
  std::shared_ptr<Model> model_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<WorkerCourse> course_;
  std::unique_ptr<StepReplica> steps_;
  std::unique_ptr<adapt::ScheduleKeeper> keeper_;
  std::unique_ptr<sync::DecisionLog> log_;  // null: none is wanted
  std::unique_ptr<sync::Synchronizer> synchronizer_;
  std::unique_ptr<torch::GradientHooks> hooks_;
  std::vector<std::vector<int>> tensors_of_layer_;
  LearningRate rate_;
  int64_t iterations_ = 0;  // in all

  std::optional<observe::RunDirectory> folder_;  // on rank 0 only
  observe::EarlierParts earlier_;                // of a run that is resumed, on rank 0 only
  std::optional<observe::TimelineFile> timeline_;
  observe::RunState state_;
  std::string config_;
  absl::Status failure_;  // the first error of a hook

  int64_t iteration_ = 0;   // done so far
  bool training_ = false;   // the forward pass that runs is one of training
  bool sending_ = false;    // gradients that get ready are complete
  double loss_ = 0;         // of this worker's last batch
  int64_t last_batch_ = 0;  // how many samples it had
  std::optional<Evaluation> evaluation_;
  bool evaluated_ = false;  // after the last iteration
  std::optional<bool> reached_;
  int64_t said_ns_ = 0;         // when the last line of progress was said
  Mark reported_;               // the last report
  Mark loop_begin_, loop_end_;  // of the iterations
  // Of this host's processors when the iterations began and ended; null: the host does not tell.
  std::optional<ProcessorTime> processors_begin_, processors_end_;
  PacedIteration pace_;
};

absl::Status Trainer::Prepare() {
  SYNCOPATE_RETURN_IF_ERROR(options_.Validate(worker_.size()));
  const int cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  // Workers of one host share its cores.
  at::set_num_threads(options_.threads > 0 ? options_.threads
                                           : std::max(1, cores / worker_.local_size()));
  SYNCOPATE_ASSIGN_OR_RETURN(SideChannel side, SideChannel::Make(worker_));
  side_.emplace(std::move(side));
  SYNCOPATE_ASSIGN_OR_RETURN(const observe::ClockOffset clock, side_->CompareClocks());
  recorder_.SetClockOffset(clock.offset_ns, clock.error_ns);

  LoadOptions load;
  SYNCOPATE_ASSIGN_OR_RETURN(load.cache_folder, CacheFolder(ProcessEnvironment()));
  load.synthetic.train_samples = options_.synthetic_samples;
  if (first()) load.say = say_;
  absl::StatusOr<Dataset> data = LoadDataset(options_.data, load);
  SYNCOPATE_RETURN_IF_ERROR(side_->Agree(data.status()));
  data_ = *std::move(data);
  auto model = MakeModel({options_.model, data_.info.sample_shape, data_.info.classes,
                          options_.seed, options_.dropout});
  SYNCOPATE_RETURN_IF_ERROR(side_->Agree(model.status()));
  model_ = *std::move(model);
  // All workers made the same model from one seed. From here on their random numbers differ, since
  // dropout must differ between workers.
  at::manual_seed(MixSeed(options_.seed, static_cast<uint64_t>(worker_.rank())));
  SYNCOPATE_ASSIGN_OR_RETURN(optimizer_,
                             MakeOptimizer(options_.optimizer, model_->ParameterTensors()));
  // Unless batches are given, the global batch is cut evenly, and the first ranks get the
  // remainder.
  std::vector<int64_t> batches = options_.batches;
  for (int rank = 0; batches.size() < static_cast<size_t>(worker_.size()); ++rank) {
    batches.push_back(options_.batch / worker_.size() +
                      (rank < options_.batch % worker_.size() ? 1 : 0));
  }
  if (options_.batch > data_.train.samples) {
    return absl::InvalidArgumentError(absl::StrCat("--batch ", options_.batch, ": ", options_.data,
                                                   " has ", data_.train.samples, " samples"));
  }
  iterations_ =
      options_.iterations > 0
          ? options_.iterations
          : std::max<int64_t>(
                1, std::llround(options_.epochs *
                                static_cast<double>(data_.train.samples / options_.batch)));
  SYNCOPATE_ASSIGN_OR_RETURN(const strategy::StrategyEntry* entry,
                             strategy::FindStrategy(options_.strategy));
  SYNCOPATE_ASSIGN_OR_RETURN(WorkerCourse course,
                             WorkerCourse::Make({.data = entry->data,
                                                 .rank = worker_.rank(),
                                                 .batches = batches,
                                                 .samples = data_.train.samples,
                                                 .seed = options_.seed,
                                                 .iterations = iterations_}));
  course_ = std::make_unique<WorkerCourse>(std::move(course));
  rate_ = options_.rate;
  rate_.iterations = iterations_;
  SYNCOPATE_ASSIGN_OR_RETURN(const ComputePace pace,
                             ComputePace::Make(options_.pace, worker_.rank(), worker_.size()));
  pace_ = PacedIteration(pace);

  SYNCOPATE_RETURN_IF_ERROR(torch::BroadcastTensors(side_->group(), model_->ParameterTensors()));
  SYNCOPATE_RETURN_IF_ERROR(torch::BroadcastTensors(side_->group(), model_->buffers()));
  config_ = CourseDigest(options_, worker_.size()).ToString();
  if (options_.resume) {
    SYNCOPATE_RETURN_IF_ERROR(side_->Agree(Resume()));
    if (first()) say_(absl::StrCat("goes on after iteration ", iteration_));
  }
  if (!options_.run_folder.empty()) {
    SYNCOPATE_RETURN_IF_ERROR(side_->Agree(first() ? MakeFolder() : absl::OkStatus()));
    SYNCOPATE_ASSIGN_OR_RETURN(
        observe::TimelineFile timeline,
        observe::RunDirectory::CreateTimeline(options_.run_folder, recorder_.Trace(), 0));
    timeline_ = std::move(timeline);
  }
  // The synchronizer numbers tensors in the order of the layers, so that a layer's forward pass
  // waits for its own tensors only.
  std::vector<torch::NamedTensor> named;
  tensors_of_layer_.resize(model_->layers().size());
  for (const ModelParameter& parameter : model_->ordered_parameters()) {
    tensors_of_layer_[static_cast<size_t>(parameter.layer)].push_back(
        static_cast<int>(named.size()));
    named.push_back({parameter.name, parameter.tensor});
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const TensorTable table, torch::TableOf(options_.model, named));
  steps_ = std::make_unique<StepReplica>(model_->ParameterTensors(), *optimizer_,
                                         options_.clip_norm, *course_);
  SYNCOPATE_ASSIGN_OR_RETURN(keeper_, torch::MakeKeeper(worker_, table, options_.schedule,
                                                        {.overlap_forward = options_.clip_norm == 0,
                                                         .measure_first = options_.measure_first,
                                                         .recorder = &recorder_,
                                                         .first_iteration = iteration_}));
  SYNCOPATE_RETURN_IF_ERROR(OpenLog());
  strategy::StrategyOptions values;
  values.seed = options_.seed;
  values.schedule = std::make_shared<Schedule>(keeper_->schedule());
  values.update_together = options_.clip_norm > 0;
  SYNCOPATE_ASSIGN_OR_RETURN(
      synchronizer_,
      sync::MakeSynchronizer(
          worker_, table, *steps_, options_.strategy, values,
          {.recorder = &recorder_, .first_iteration = iteration_, .witness = log_.get()}));
  hooks_ = std::make_unique<torch::GradientHooks>(model_->ParameterTensors(), [this](int tensor) {
    if (sending_ && failure_.ok()) Note(synchronizer_->Gradient(tensor));
  });
  model_->SetBeforeLayer([this](int layer) {
    if (!training_) return;
    for (const int tensor : tensors_of_layer_[static_cast<size_t>(layer)]) {
      if (failure_.ok()) Note(Need(tensor));
    }
  });
  return absl::OkStatus();
}

// The digest of the options guards against a run that goes on differently from how it began; the
// old config.json serves only to name the difference.
absl::Status Trainer::Resume() {
  const auto refuse = [&](const absl::Status& why) {
    return absl::InvalidArgumentError(
        absl::StrCat("--resume from ", options_.run_folder, ": ", why.message()));
  };
  const absl::StatusOr<Checkpoint> checkpoint = LoadFromSet(options_.run_folder, side_->exchange());
  if (!checkpoint.ok()) return refuse(checkpoint.status());
  if (checkpoint->config != config_) {
    const auto text = ReadFile(absl::StrCat(options_.run_folder, "/config.json"), kConfigBytesMax);
    const absl::StatusOr<TrainOptions> before =
        text.ok() ? ParseTrainOptions(*text) : text.status();
    const std::string difference = before.ok() ? CourseDifference(*before, options_) : "";
    return refuse(absl::FailedPreconditionError(absl::StrCat(
        "it began with other options", difference.empty() ? "" : absl::StrCat(": ", difference),
        "; give the same ones, or begin anew in another folder")));
  }
  const absl::Status status = Restore(*checkpoint, options_.model, config_, *model_, *optimizer_);
  if (!status.ok()) return refuse(status);
  iteration_ = checkpoint->iteration;
  if (iteration_ > iterations_) {
    return refuse(absl::FailedPreconditionError(
        absl::StrCat("its checkpoint is at iteration ", iteration_, ", and this job would end at ",
                     iterations_, "; ask for more by --iterations or --epochs")));
  }
  return course_->sampler().SetPosition(checkpoint->sampler);
}

// The workers of a host share one file. The first of them empties it, unless a run goes on, before
// the others write.
absl::Status Trainer::OpenLog() {
  if (options_.log.empty()) return absl::OkStatus();
  for (const bool first_of_host : {true, false}) {
    absl::Status status;
    if ((worker_.local_rank() == 0) == first_of_host) {
      auto log =
          sync::DecisionLog::Open(options_.log, worker_.rank(), first_of_host && !options_.resume);
      status = At("--log", log.status());
      if (log.ok()) log_ = *std::move(log);
    }
    SYNCOPATE_RETURN_IF_ERROR(side_->Agree(status));
  }
  return absl::OkStatus();
}

absl::Status Trainer::MakeFolder() {
  SYNCOPATE_ASSIGN_OR_RETURN(
      observe::RunDirectory folder,
      observe::RunDirectory::Create(options_.run_folder,
                                    options_.resume      ? observe::ExistingRun::kContinue
                                    : options_.overwrite ? observe::ExistingRun::kReplace
                                                         : observe::ExistingRun::kRefuse));
  folder_ = std::move(folder);
  SYNCOPATE_RETURN_IF_ERROR(folder_->WriteConfig(ToJson(options_)));
  if (!options_.resume) return absl::OkStatus();
  earlier_ = folder_->earlier();
  earlier_.resumed_at.push_back(iteration_);
  observe::Metric resumed = observe::ResumeEvent(iteration_);
  resumed.seconds = earlier_.seconds;
  return folder_->Append(resumed);
}

// Waiting for others is no computing.
absl::Status Trainer::Need(int tensor) {
  if (!pace_.waits()) return synchronizer_->Need(tensor);
  const int64_t before_ns = MonotonicClock().NowNs();
  const absl::Status status = synchronizer_->Need(tensor);
  pace_.Held(MonotonicClock().NowNs() - before_ns);
  return status;
}

absl::Status Trainer::Iterate() {
  const int number = static_cast<int>(iteration_);
  const int64_t samples = course_->batch();
  SYNCOPATE_RETURN_IF_ERROR(synchronizer_->Begin(static_cast<uint64_t>(samples),
                                                 static_cast<uint64_t>(course_->all_samples())));
  pace_.Begin(MonotonicClock().NowNs());
  SampleBatch picked;
  {
    const ScopedSpan span(&recorder_, SpanKind::kLoad, number);
    SYNCOPATE_ASSIGN_OR_RETURN(picked, course_->Next());
  }
  // A batch is computed in parts to save memory. Gradients add up in .grad(), so they are complete,
  // and may be sent, only in the last part's backward pass.
  const int64_t parts = std::min<int64_t>(options_.accumulate, std::max<int64_t>(samples, 1));
  loss_ = 0;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t begin = samples * part / parts, end = samples * (part + 1) / parts;
    Batch batch;
    {
      const ScopedSpan span(&recorder_, SpanKind::kLoad, number);
      batch = MakeBatch(
          data_.info, data_.train,
          absl::MakeConstSpan(picked.samples)
              .subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)),
          {options_.augment ? kFlipAndCrop : Augmentation{}, options_.seed, picked.epoch});
    }
    at::Tensor loss;
    {
      const ScopedSpan span(&recorder_, SpanKind::kForward, number);
      training_ = part == 0;  // the parameters stay as they are in the other parts
      loss = Loss(model_->Forward(batch.inputs), batch.labels);
      training_ = false;
    }
    SYNCOPATE_RETURN_IF_ERROR(failure_);
    if (part == 0) {
      // The forward pass has waited for every tensor, so all updates of the last iteration are
      // done: the rate may change and the gradients may be dropped.
      steps_->SetRate(rate_.RateAt(course_->RateIteration(iteration_)));
      for (const at::Tensor& parameter : model_->ParameterTensors())
        parameter.mutable_grad() = at::Tensor();
    }
    const ScopedSpan span(&recorder_, SpanKind::kBackward, number);
    if (part == parts - 1) {
      SYNCOPATE_RETURN_IF_ERROR(synchronizer_->BackwardBegins());
      sending_ = true;
    }
    const double share = static_cast<double>(end - begin) / static_cast<double>(samples);
    (parts == 1 ? loss : loss * share).backward();
    sending_ = false;
    loss_ += loss.item<double>() * share;
    if (part == parts - 1 && pace_.waits()) {
      SleepUntil(pace_.EndNs(MonotonicClock().NowNs(), static_cast<double>(samples)));
    }
  }
  SYNCOPATE_RETURN_IF_ERROR(failure_);
  SYNCOPATE_RETURN_IF_ERROR(synchronizer_->EndBackward());
  if (!std::isfinite(loss_)) {
    return absl::OutOfRangeError(absl::StrCat("the loss of worker ", worker_.rank(),
                                              " is no number after iteration ", iteration_,
                                              "; try a smaller --lr or --clip"));
  }
  last_batch_ = samples;
  ++iteration_;
  return absl::OkStatus();
}

absl::Status Trainer::Loop() {
  loop_begin_ = reported_ = Now();
  if (const auto now = ReadProcessorTime(); now.ok()) processors_begin_ = *now;
  said_ns_ = loop_begin_.at_ns;
  while (!course_->Ended(iteration_) && !reached_.value_or(false)) {
    SYNCOPATE_RETURN_IF_ERROR(Iterate());
    evaluated_ = false;
    if (iteration_ % options_.report_every == 0 || course_->Ended(iteration_)) {
      SYNCOPATE_RETURN_IF_ERROR(Report());
    } else if (first() && MonotonicClock().NowNs() - said_ns_ >= kSilenceNsMax) {
      SayProgress("");
    }
    if (options_.evaluate_every > 0 && iteration_ % options_.evaluate_every == 0) {
      SYNCOPATE_RETURN_IF_ERROR(Evaluate());
    }
    if (options_.checkpoint_every > 0 && iteration_ % options_.checkpoint_every == 0) {
      SYNCOPATE_RETURN_IF_ERROR(Save());
    }
    SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<Schedule> planned,
                               torch::KeepSchedule(*keeper_, *synchronizer_));
    if (!planned) continue;  // rank 0 plans
    const std::string text =
        absl::StrCat("planned ", options_.schedule, ": ",
                     CountOf(planned->transfers.size(), "transfer"), "; ", keeper_->reason());
    say_(text);
    SYNCOPATE_RETURN_IF_ERROR(Append({.kind = "event", .values = {}, .text = text}));
  }
  SYNCOPATE_RETURN_IF_ERROR(synchronizer_->Finish());
  loop_end_ = Now();
  if (const auto now = ReadProcessorTime(); now.ok()) processors_end_ = *now;
  if (keeper_->waits_for_costs()) {
    SYNCOPATE_RETURN_IF_ERROR(
        Append({.kind = "event",
                .values = {},
                .text = absl::StrCat("not planned ", options_.schedule, ": ", keeper_->reason())}));
  }
  // The summary has the loss and the accuracy of the last iteration, whatever --evaluate-every
  // says.
  if (!evaluated_) SYNCOPATE_RETURN_IF_ERROR(Evaluate());
  return absl::OkStatus();
}

// Every worker takes part in the sum; only rank 0 reports.
absl::Status Trainer::Report() {
  if (log_ != nullptr) SYNCOPATE_RETURN_IF_ERROR(At("--log", log_->status()));
  if (timeline_) SYNCOPATE_RETURN_IF_ERROR(timeline_->Append(recorder_.TakeNew()));
  const double samples = static_cast<double>(last_batch_);
  SYNCOPATE_ASSIGN_OR_RETURN(
      const std::vector<double> sums,
      side_->Sum({loss_ * samples, samples, static_cast<double>(synchronizer_->bytes_sent())}));
  if (!first()) return absl::OkStatus();
  const double loss = sums[0] / sums[1];
  const Mark now = Now();
  const double each = InsideSeconds(reported_, now) / static_cast<double>(std::max<int64_t>(
                                                          1, now.iteration - reported_.iteration));
  reported_ = now;
  SayProgress(absl::StrFormat("loss %.4f, %.1f ms an iteration, %.0f samples/s, ", loss, each * 1e3,
                              static_cast<double>(options_.batch) / each));
  SYNCOPATE_RETURN_IF_ERROR(
      Append({.kind = "train",
              .values = {{"loss", loss},
                         {"learning_rate", rate_.RateAt(course_->RateIteration(iteration_ - 1))},
                         {"iteration_ms", each * 1e3}},
              .text = ""}));
  if (!folder_) return absl::OkStatus();
  state_.iteration_seconds = each;
  state_.loss = loss;
  return WriteState(static_cast<uint64_t>(sums[2]));
}

// `bytes_sent`: by all workers.
absl::Status Trainer::WriteState(uint64_t bytes_sent) {
  state_.run = options_.run_folder;
  state_.workers = worker_.size();
  state_.iterations = static_cast<uint64_t>(iteration_);
  state_.bytes_sent = bytes_sent;
  state_.seconds = Seconds();
  if (evaluation_) state_.accuracy = evaluation_->accuracy;
  return folder_->WritePrometheus(state_);
}

// All updates must be done first, so that all workers evaluate the same parameters. Buffers, such
// as the statistics of batch norm, are each worker's own and are averaged.
absl::Status Trainer::Evaluate() {
  SYNCOPATE_RETURN_IF_ERROR(synchronizer_->Finish());
  const ScopedSpan span(&recorder_, SpanKind::kEvaluate, static_cast<int>(iteration_ - 1));
  SYNCOPATE_RETURN_IF_ERROR(torch::AverageTensors(side_->group(), model_->buffers()));
  const int64_t samples = options_.evaluate_samples > 0
                              ? std::min(options_.evaluate_samples, data_.test.samples)
                              : data_.test.samples;
  // Each worker evaluates its part of the test samples; a worker may have none.
  const int64_t begin = samples * worker_.rank() / worker_.size();
  const int64_t end = samples * (worker_.rank() + 1) / worker_.size();
  Split part = {.samples = end - begin, .inputs = {}, .labels = {}};
  const auto cut = [&](absl::Span<const uint8_t> bytes) {
    const size_t each = bytes.size() / static_cast<size_t>(data_.test.samples);
    return bytes.subspan(static_cast<size_t>(begin) * each,
                         static_cast<size_t>(end - begin) * each);
  };
  part.inputs = cut(data_.test.inputs);
  part.labels = cut(data_.test.labels);
  Evaluation own;
  if (part.samples > 0) own = train::Evaluate(*model_, data_.info, part);
  const double weight = static_cast<double>(part.samples);
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<double> sums,
                             side_->Sum({own.loss * weight, own.accuracy * weight, weight}));
  evaluation_ = {.loss = sums[0] / sums[2], .accuracy = sums[1] / sums[2], .samples = samples};
  evaluated_ = true;
  if (options_.target_accuracy || options_.target_loss) {
    reached_ = (!options_.target_accuracy || evaluation_->accuracy >= *options_.target_accuracy) &&
               (!options_.target_loss || evaluation_->loss <= *options_.target_loss);
  }
  if (!first()) return absl::OkStatus();
  say_(absl::StrFormat("iteration %d: test loss %.4f, accuracy %.2f %%", iteration_,
                       evaluation_->loss, 100 * evaluation_->accuracy));
  return Append({.kind = "evaluate",
                 .values = {{"loss", evaluation_->loss}, {"accuracy", evaluation_->accuracy}},
                 .text = ""});
}

// The checkpoint is of a moment at which no update is pending, so that a resumed run goes on bit
// for bit as this one.
absl::Status Trainer::Save() {
  SYNCOPATE_RETURN_IF_ERROR(synchronizer_->Finish());
  const ScopedSpan span(&recorder_, SpanKind::kCheckpoint, static_cast<int>(iteration_ - 1));
  Checkpoint checkpoint = Capture(*model_, *optimizer_);
  checkpoint.model = options_.model;
  checkpoint.config = config_;
  checkpoint.iteration = iteration_;
  checkpoint.sampler = course_->sampler().position();
  return SaveToSet(options_.run_folder, side_->exchange(), checkpoint);
}

// The time before the loop, in it and after it, each without what was no part of an iteration;
// `seconds` is all of it.
observe::WallTime Trainer::WallTime(double seconds) const {
  const auto seconds_of = [this](SpanKind kind) {
    return static_cast<double>(recorder_.TotalNs(kind)) * 1e-9;
  };
  observe::WallTime wall = {
      .start = InsideSeconds({.at_ns = began_ns_, .outside_ns = 0, .iteration = 0}, loop_begin_),
      .iterations = InsideSeconds(loop_begin_, loop_end_),
      .measuring = seconds_of(SpanKind::kMeasure),
      .evaluation = seconds_of(SpanKind::kEvaluate),
      .checkpoints = seconds_of(SpanKind::kCheckpoint),
      .earlier = earlier_.seconds};
  wall.end = seconds - wall.earlier - wall.start - wall.iterations - wall.measuring -
             wall.evaluation - wall.checkpoints;
  return wall;
}

// Every worker sends its trace to rank 0, which alone can tell who waited for whom; the others
// return a summary without costs.
absl::StatusOr<Summary> Trainer::Conclude() {
  const WorkerTrace trace = recorder_.Trace();
  if (timeline_) {
    SYNCOPATE_RETURN_IF_ERROR(timeline_->Append(recorder_.TakeNew()));
    SYNCOPATE_RETURN_IF_ERROR(timeline_->Close());
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                             adapt::TextsAtRoot(side_->exchange(), "trace", Encode(trace), 0));
  Summary summary{.strategy = options_.strategy,
                  .schedule = options_.schedule,
                  .workers = worker_.size(),
                  .iterations = iteration_,
                  .resumed_at = earlier_.resumed_at,
                  .reached = reached_,
                  .accuracy = evaluation_->accuracy,
                  .loss = evaluation_->loss,
                  .iteration_ms_p50 = {},
                  .compute_ms_p50 = {},
                  .exposed_comm_ms_p50 = {},
                  .waiting_ms_p50 = {},
                  .mean_ms = {},
                  .wall = {}};
  if (!first()) return summary;
  std::vector<WorkerTrace> traces;
  for (const std::string& text : texts) {
    SYNCOPATE_ASSIGN_OR_RETURN(WorkerTrace one, DecodeTrace(text));
    traces.push_back(std::move(one));
  }
  if (folder_) SYNCOPATE_RETURN_IF_ERROR(folder_->WriteTimeline(traces));
  if (options_.resume) {  // costs are those of the whole run, as the report has them
    std::vector<std::vector<WorkerTrace>> parts = observe::ReadEarlierParts(options_.run_folder);
    parts.push_back(std::move(traces));
    traces = observe::JoinParts(std::move(parts));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const observe::Breakdown breakdown, observe::BreakDown(traces));
  SetCosts(breakdown, &summary);
  if (folder_) {
    SYNCOPATE_RETURN_IF_ERROR(SaveModel(options_.run_folder, options_.model, data_.info, *model_));
    SYNCOPATE_RETURN_IF_ERROR(WriteState(summary.bytes_sent));
  }
  if (processors_begin_ && processors_end_) {
    summary.cores_busy = BusyShare(*processors_begin_, *processors_end_);
  }
  // As late as can be, so that as much as can be is part of it.
  summary.seconds = Seconds();
  if (options_.resume) summary.part_seconds = summary.seconds - earlier_.seconds;
  summary.wall = WallTime(summary.seconds);
  // Last: a run that has a summary has ended.
  if (folder_) SYNCOPATE_RETURN_IF_ERROR(folder_->WriteSummary(summary));
  return summary;
}

}  // namespace

absl::StatusOr<Summary> Train(Worker& worker, const TrainOptions& options,
                              const std::function<void(absl::string_view)>& say, int64_t began_ns) {
  // LibTorch reports errors by exceptions, which must not leave this function.
  try {
    return Trainer(worker, options, say, began_ns).Run();
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("LibTorch: ", error.what()));
  }
}

}  // namespace syncopate::train
