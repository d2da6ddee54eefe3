// How a worker of a training job prepares: data, model, course, ledger, synchronizer.
#include "train/trainer.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/status.h"
#include "sync/assemble.h"
#include "sync/service_order.h"
#include "torch/kept_schedule.h"
#include "torch/torch_replica.h"
#include "train/data/load.h"
#include "train/snapshots.h"
#include "train/trainer_impl.h"

namespace syncopate::train {
namespace {

// Of waits for other workers at the start and the end.
constexpr int64_t kTogetherNsMax = 300'000'000'000;

std::string HostName() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

}  // namespace

Trainer::Trainer(Worker& worker, const TrainOptions& options, const RunWriter::Say& say,
                 int64_t began_ns)
    : worker_(worker),
      options_(options),
      recorder_(MonotonicClock(), worker.rank(), HostName()),
      clock_(recorder_, began_ns),
      writer_(options, worker.rank(), worker.size(), say, clock_),
      pace_(ComputePace()) {}

absl::StatusOr<std::optional<observe::Summary>> Trainer::Run() {
  SYNCOPATE_RETURN_IF_ERROR(Prepare());
  SYNCOPATE_RETURN_IF_ERROR(Loop());
  return End();
}

int64_t Trainer::DeadlineNs() const { return MonotonicClock().NowNs() + kTogetherNsMax; }

absl::Status Trainer::Prepare() {
  SYNCOPATE_RETURN_IF_ERROR(options_.Validate(worker_.size()));
  SYNCOPATE_ASSIGN_OR_RETURN(entry_, strategy::FindStrategy(options_.strategy));
  when_ = options_.EvaluatesWhen(*entry_);
  SYNCOPATE_ASSIGN_OR_RETURN(data_mode_, DataModeOf(options_));
  const int cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  // Workers of one host share its cores.
  at::set_num_threads(options_.threads > 0 ? options_.threads
                                           : std::max(1, cores / worker_.local_size()));
  writer_rank_ = sync::ServiceOrder(worker_).front();
  SYNCOPATE_ASSIGN_OR_RETURN(SideChannel side, SideChannel::Make(worker_));
  side_.emplace(std::move(side));
  SYNCOPATE_ASSIGN_OR_RETURN(const observe::ClockOffset clock, side_->CompareClocks());
  recorder_.SetClockOffset(clock.offset_ns, clock.error_ns);

  SYNCOPATE_RETURN_IF_ERROR(LoadData());
  SYNCOPATE_RETURN_IF_ERROR(MakeModels());
  SetLength();
  SYNCOPATE_RETURN_IF_ERROR(torch::BroadcastTensors(side_->group(), model_->ParameterTensors()));
  SYNCOPATE_RETURN_IF_ERROR(torch::BroadcastTensors(side_->group(), model_->buffers()));
  config_ = CourseDigest(options_, worker_.size()).ToString();
  if (options_.resume) SYNCOPATE_RETURN_IF_ERROR(side_->Agree(Resume()));
  SYNCOPATE_RETURN_IF_ERROR(MakeCourse());
  if (options_.resume && writes()) {
    writer_.Speak(absl::StrCat("goes on after iteration ", first_iteration_));
  }
  SYNCOPATE_RETURN_IF_ERROR(OpenLedger());
  SYNCOPATE_RETURN_IF_ERROR(OpenCheckpoints());
  SYNCOPATE_RETURN_IF_ERROR(OpenRun());
  return MakeSynchronizer();
}

absl::Status Trainer::LoadData() {
  LoadOptions load;
  SYNCOPATE_ASSIGN_OR_RETURN(load.cache_folder, CacheFolder(ProcessEnvironment()));
  load.synthetic.train_samples = options_.synthetic_samples;
  if (writes()) load.say = [this](absl::string_view line) { writer_.Speak(line); };
  absl::StatusOr<Dataset> data = LoadDataset(options_.data, load);
  SYNCOPATE_RETURN_IF_ERROR(side_->Agree(data.status()));
  data_ = *std::move(data);
  if (options_.batch > data_.train.samples) {
    return absl::InvalidArgumentError(absl::StrCat("--batch ", options_.batch, ": ", options_.data,
                                                   " has ", data_.train.samples, " samples"));
  }
  return absl::OkStatus();
}

absl::Status Trainer::MakeModels() {
  const ModelOptions options = {options_.model, data_.info.sample_shape, data_.info.classes,
                                options_.seed, options_.dropout};
  if (when_ != EvaluateWhen::kIn) {
    // Before the one that trains, since making a model seeds the random numbers of this process.
    auto copy = MakeModel(options);
    if (copy.ok()) {
      beside_ = std::make_unique<BesideEvaluator>(
          *std::move(copy), data_,
          options_.evaluate_samples > 0 ? options_.evaluate_samples : INT64_MAX);
    }
  }
  if (entry_->model == strategy::ModelIs::kMean) mean_ = std::make_unique<ModelMean>(worker_);
  auto model = MakeModel(options);
  SYNCOPATE_RETURN_IF_ERROR(side_->Agree(model.status()));
  model_ = *std::move(model);
  // All workers made the same model from one seed. From here on their random numbers differ, since
  // dropout must differ between workers.
  at::manual_seed(MixSeed(options_.seed, static_cast<uint64_t>(worker_.rank())));
  SYNCOPATE_ASSIGN_OR_RETURN(optimizer_,
                             MakeOptimizer(options_.optimizer, model_->ParameterTensors()));
  return absl::OkStatus();
}

void Trainer::SetLength() {
  // Unless batches are given, the global batch is cut evenly, and the first ranks get the
  // remainder.
  batches_ = options_.batches;
  for (int rank = 0; batches_.size() < static_cast<size_t>(worker_.size()); ++rank) {
    batches_.push_back(options_.batch / worker_.size() +
                       (rank < options_.batch % worker_.size() ? 1 : 0));
  }
  const double samples = static_cast<double>(data_.train.samples);
  const double batch = static_cast<double>(options_.batch);
  if (options_.iterations > 0) {
    iterations_ = options_.iterations;
  } else if (ranges()) {  // epochs are whole
    iterations_ = static_cast<int64_t>(std::ceil(options_.epochs * samples / batch));
  } else {
    iterations_ = std::max<int64_t>(1, std::llround(options_.epochs * std::floor(samples / batch)));
  }
}

absl::Status Trainer::MakeCourse() {
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<std::string> states, TakeStates());
  if (ranges()) {
    const uint64_t samples = static_cast<uint64_t>(data_.train.samples);
    SYNCOPATE_ASSIGN_OR_RETURN(sync::SampleProgress before,
                               WorkerCourse::ProgressOf(states, samples));
    SYNCOPATE_ASSIGN_OR_RETURN(
        source_, sync::StartSampleSource(worker_, {.samples = samples,
                                                   .epochs = static_cast<uint64_t>(options_.epochs),
                                                   .before = std::move(before)}));
  }
  const uint64_t mark = resumed_ ? static_cast<uint64_t>(resumed_->note.iteration) : 0;
  SYNCOPATE_ASSIGN_OR_RETURN(
      WorkerCourse course,
      WorkerCourse::Make({.data = data_mode_,
                          .rank = worker_.rank(),
                          .batches = batches_,
                          .samples = data_.train.samples,
                          .seed = options_.seed,
                          .iterations = iterations_,
                          .source = source_.get(),
                          .states = std::move(states),
                          .mark_samples = mark * static_cast<uint64_t>(options_.batch)}));
  course_ = std::make_unique<WorkerCourse>(std::move(course));
  if (resumed_) {
    SYNCOPATE_RETURN_IF_ERROR(course_->sampler().SetPosition(resumed_->checkpoint.sampler));
  }
  first_iteration_ =
      lockstep() ? iteration_ : static_cast<int64_t>(course_->earlier_samples()) / options_.batch;
  rate_ = options_.rate;
  rate_.iterations = iterations_;
  SYNCOPATE_ASSIGN_OR_RETURN(const ComputePace pace,
                             ComputePace::Make(options_.pace, worker_.rank(), worker_.size()));
  pace_ = PacedIteration(pace);
  return absl::OkStatus();
}

// Without lockstep workers have different numbers of iterations behind them, so that the samples of
// all count. What the job had before it went on is nobody's own: it counts whoever is lost.
absl::Status Trainer::OpenLedger() {
  snapshot_mark_ = first_iteration_;
  LedgerOptions ledger = {.size = worker_.size(),
                          .lockstep = lockstep(),
                          .batch = options_.batch,
                          .report_every = options_.report_every,
                          .first_iteration = first_iteration_,
                          .first_samples = lockstep() ? static_cast<uint64_t>(iteration_) *
                                                            static_cast<uint64_t>(options_.batch)
                                                      : course_->earlier_samples()};
  ledger.order = sync::ServiceOrder(worker_);
  if (by_order()) ledger.evaluate_every = options_.evaluate_every;
  ledger.ends_together = entry_->ends_together;
  if (!lockstep()) {
    if (!ranges()) {  // whole epochs end by themselves
      ledger.samples_max =
          static_cast<uint64_t>(iterations_) * static_cast<uint64_t>(options_.batch);
    }
    SYNCOPATE_RETURN_IF_ERROR(course_->Progress(ledger.first_samples, /*stop=*/false));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(seat_, LedgerSeat::Make(worker_, ledger));
  SYNCOPATE_ASSIGN_OR_RETURN(traces_, TraceDesk::Open(worker_));
  return absl::OkStatus();
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

// All workers know what the run has behind it: each may have to go on with its folder. What it does again from
// its checkpoint on it also takes snapshots of again; among the old ones are those of workers that are gone.
absl::Status Trainer::OpenRun() {
  if (options_.run_folder.empty()) return absl::OkStatus();
  if (options_.resume && writes()) RemoveSnapshots(options_.run_folder, first_iteration_);
  SYNCOPATE_RETURN_IF_ERROR(
      side_->Agree(writes() ? writer_.Begin(first_iteration_) : absl::OkStatus()));
  if (options_.resume) {
    const observe::EarlierParts& own = writer_.earlier();
    std::vector<double> numbers = {own.seconds};
    numbers.insert(numbers.end(), own.resumed_at.begin(), own.resumed_at.end());
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string text,
                               adapt::TextOfRoot(side_->exchange(), "earlier parts",
                                                 adapt::EncodeNumbers(numbers), writer_rank_));
    SYNCOPATE_ASSIGN_OR_RETURN(numbers, adapt::DecodeDoubles(text, text.size() / sizeof(double)));
    if (numbers.empty()) return absl::DataLossError("nothing is known of the run's earlier parts");
    writer_.SetEarlier({numbers[0], std::vector<int64_t>(numbers.begin() + 1, numbers.end())});
    clock_.SetEarlier(numbers[0]);
  }
  SYNCOPATE_ASSIGN_OR_RETURN(
      observe::TimelineFile timeline,
      observe::RunDirectory::CreateTimeline(options_.run_folder, recorder_.Trace(), 0));
  timeline_ = std::move(timeline);
  return absl::OkStatus();
}

absl::Status Trainer::MakeSynchronizer() {
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
  strategy::StrategyOptions values;
  values.seed = options_.seed;
  values.update_together = options_.clip_norm > 0;
  // What keeps a schedule right asks all workers, at the same iteration.
  if (lockstep()) {
    SYNCOPATE_ASSIGN_OR_RETURN(keeper_,
                               torch::MakeKeeper(worker_, table, options_.schedule,
                                                 {.overlap_forward = options_.clip_norm == 0,
                                                  .measure_first = options_.measure_first,
                                                  .recorder = &recorder_,
                                                  .first_iteration = iteration_}));
    values.schedule = std::make_shared<Schedule>(keeper_->schedule());
  }
  SYNCOPATE_RETURN_IF_ERROR(OpenLog());
  SYNCOPATE_ASSIGN_OR_RETURN(sync::ResumedState resumed, TakeStrategyState());
  SYNCOPATE_ASSIGN_OR_RETURN(
      synchronizer_, sync::MakeSynchronizer(worker_, table, *steps_, options_.strategy, values,
                                            {.recorder = &recorder_,
                                             .first_iteration = iteration_,
                                             .resumed = std::move(resumed),
                                             .store_rate = options_.rate.base,
                                             .witness = log_.get()}));
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

absl::StatusOr<std::optional<observe::Summary>> Train(
    Worker& worker, const TrainOptions& options, const std::function<void(absl::string_view)>& say,
    int64_t began_ns) {
  // LibTorch reports errors by exceptions, which must not leave this function.
  try {
    return Trainer(worker, options, say, began_ns).Run();
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("LibTorch: ", error.what()));
  }
}

}  // namespace syncopate::train
