// Evaluation of what the strategy calls the model: by all workers in the run, by the one that writes
// beside the run, or of snapshots after it.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "torch/torch_replica.h"
#include "train/snapshots.h"
#include "train/trainer_impl.h"

namespace syncopate::train {

namespace {

// Neither a target nor a line of the metrics can be made of a loss that is no number, and a model that has one
// learns nothing any more.
absl::Status CheckIsNumber(double loss, int64_t iteration) {
  if (std::isfinite(loss)) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat("the test loss is no number after iteration ",
                                            iteration, "; try a smaller --lr or --clip"));
}

}  // namespace

using observe::ScopedSpan;

bool Trainer::ReachesTarget(const Evaluation& evaluation) const {
  return (options_.target_accuracy || options_.target_loss) &&
         (!options_.target_accuracy || evaluation.accuracy >= *options_.target_accuracy) &&
         (!options_.target_loss || evaluation.loss <= *options_.target_loss);
}

// All updates must be done first, so that all workers evaluate the same parameters. Buffers, such
// as the statistics of batch norm, are each worker's own and are averaged.
absl::Status Trainer::EvaluateTogether() {
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
  SYNCOPATE_RETURN_IF_ERROR(CheckIsNumber(evaluation_->loss, iteration_));
  evaluated_ = true;
  if (options_.target_accuracy || options_.target_loss) reached_ = ReachesTarget(*evaluation_);
  if (!writes()) return absl::OkStatus();
  LedgerReport report = OwnReport();
  report.evaluation = {.iteration = iteration_,
                       .seconds = clock_.Seconds(),
                       .loss = evaluation_->loss,
                       .accuracy = evaluation_->accuracy};
  return seat_->Post(std::move(report));
}

absl::Status Trainer::EvaluateElsewhere() {
  if (options_.evaluate_every == 0) return absl::OkStatus();
  if (when_ == EvaluateWhen::kAfter) return TakeSnapshot();
  SYNCOPATE_RETURN_IF_ERROR(BeginEvaluation());
  return TakeEvaluation();
}

// In lockstep the parameters of one worker at a certain iteration are the model. Else the ledger orders
// an evaluation, of what each worker has when it hears of the order.
absl::Status Trainer::BeginEvaluation() {
  EvaluationNote note = {.iteration = iteration_, .seconds = clock_.Seconds()};
  if (!by_order()) {
    if (!writes() || iteration_ % options_.evaluate_every != 0 || beside_->busy()) {
      return absl::OkStatus();
    }
    SYNCOPATE_RETURN_IF_ERROR(synchronizer_->Finish());
    beside_->Start(CopyOf(*model_), note);
    return absl::OkStatus();
  }
  // After a loss an order comes with who writes from then on: one that did not know that yet would leave the
  // order to the writer that is lost.
  const Standing standing = seat_->standing();
  SYNCOPATE_RETURN_IF_ERROR(FollowLedger(standing));
  const EvaluationOrder& order = standing.order;
  if (order.number == 0 ||
      std::pair(order.number, order.attempt) <= std::pair(ordered_, attempted_))
    return absl::OkStatus();
  ordered_ = order.number;
  attempted_ = order.attempt;
  note.number = order.number;
  note.iteration = order.iteration;
  if (mean_ == nullptr) {
    if (writes()) beside_->Start(CopyOf(*model_), note);
    return absl::OkStatus();
  }
  // Where a member is known to be lost here, the ledger will order it again.
  const absl::Status started = mean_->Start(CopyOf(*model_), {order, note.seconds});
  return absl::IsFailedPrecondition(started) || absl::IsUnavailable(started) ? absl::OkStatus()
                                                                             : started;
}

absl::Status Trainer::TakeEvaluation() {
  if (mean_ != nullptr) {
    std::optional<ModelMean::Mean> mean = mean_->Take();
    if (mean && writes()) {
      beside_->Start(std::move(mean->model), {.number = mean->purpose.order.number,
                                              .iteration = mean->purpose.order.iteration,
                                              .seconds = mean->purpose.seconds});
    }
  }
  if (mean_ != nullptr && writes()) {
    // Where nobody is lost the ledger would wait for it, and order nothing any more.
    if (const std::optional<EvaluationOrder> failed = mean_->TakeFailed()) {
      LedgerReport report = OwnReport();
      report.failed_order = failed->number;
      report.failed_attempt = failed->attempt;
      SYNCOPATE_RETURN_IF_ERROR(seat_->Post(std::move(report)));
    }
  }
  std::optional<absl::StatusOr<EvaluationNote>> ended = beside_->Take();
  if (!ended) return absl::OkStatus();
  SYNCOPATE_RETURN_IF_ERROR(ended->status());
  SYNCOPATE_RETURN_IF_ERROR(CheckIsNumber((*ended)->loss, (*ended)->iteration));
  LedgerReport report = OwnReport();
  report.evaluation = **ended;
  report.evaluation.reached = ReachesTarget(
      {.loss = report.evaluation.loss, .accuracy = report.evaluation.accuracy, .samples = 0});
  return seat_->Post(std::move(report));
}

// What ran beside the job when it ended. Straight into the metrics: it can end nothing any more.
absl::Status Trainer::WriteLateEvaluation() {
  beside_->Wait();
  const std::optional<absl::StatusOr<EvaluationNote>> ended = beside_->Take();
  if (!ended) return absl::OkStatus();
  SYNCOPATE_RETURN_IF_ERROR(ended->status());
  return writer_.Append({.kind = "evaluate",
                         .iteration = (*ended)->iteration,
                         .seconds = (*ended)->seconds,
                         .values = {{"loss", (*ended)->loss}, {"accuracy", (*ended)->accuracy}},
                         .text = ""});
}

// At the first iteration after a mark. Where all have the same parameters, one is enough.
absl::Status Trainer::TakeSnapshot() {
  const int64_t position = lockstep() ? iteration_
                                      : static_cast<int64_t>(seat_->standing().total_samples /
                                                             static_cast<uint64_t>(options_.batch));
  const int64_t mark = position / options_.evaluate_every * options_.evaluate_every;
  if (mark <= snapshot_mark_) return absl::OkStatus();
  snapshot_mark_ = mark;
  if (mean_ == nullptr && !writes()) return absl::OkStatus();
  const ScopedSpan span(&recorder_, SpanKind::kEvaluate, static_cast<int>(iteration_ - 1));
  if (lockstep()) SYNCOPATE_RETURN_IF_ERROR(synchronizer_->Finish());
  return SaveSnapshot(options_.run_folder, worker_.rank(),
                      {.mark = mark, .seconds = clock_.Seconds(), .model = CopyOf(*model_)});
}

// Straight into the metrics: the ledger has none of it, and the run has ended.
absl::Status Trainer::EvaluateSnapshots() {
  for (const int64_t mark : SnapshotMarks(options_.run_folder)) {
    SYNCOPATE_ASSIGN_OR_RETURN(const Snapshot snapshot, LoadSnapshot(options_.run_folder, mark));
    SYNCOPATE_ASSIGN_OR_RETURN(const Evaluation evaluation, beside_->Now(snapshot.model));
    SYNCOPATE_RETURN_IF_ERROR(
        writer_.Append({.kind = "evaluate",
                        .iteration = mark,
                        .seconds = snapshot.seconds,
                        .values = {{"loss", evaluation.loss}, {"accuracy", evaluation.accuracy}},
                        .text = ""}));
    // Should this worker be lost, the next one that writes goes on with the others.
    RemoveSnapshot(options_.run_folder, mark);
  }
  RemoveSnapshots(options_.run_folder);
  return absl::OkStatus();
}

// All members learn how it went for all before they go on, so that they try again together.
absl::Status Trainer::AverageLast(Standing& met) {
  for (;;) {
    ModelMean::Purpose purpose;
    purpose.order.members = met.members;
    purpose.order.key = met.key;
    absl::Status status = mean_->Start(CopyOf(*model_), purpose);
    if (status.ok()) status = mean_->Wait();
    LedgerReport report = OwnReport();
    report.kind = LedgerReport::Kind::kMeet;
    report.ok = status.ok();
    SYNCOPATE_ASSIGN_OR_RETURN(met, seat_->Await(std::move(report), kOthersMax));
    if (met.failed < 0) break;
    if (met.members.size() == purpose.order.members.size()) return status;  // nobody was lost
  }
  std::optional<ModelMean::Mean> mean = mean_->Take();
  if (!mean) return absl::InternalError("the mean of all workers is missing");
  last_model_ = std::move(mean->model);
  return absl::OkStatus();
}

absl::Status Trainer::EvaluateLast() {
  if (when_ == EvaluateWhen::kIn || evaluated_) return absl::OkStatus();
  const ScopedSpan span(&recorder_, SpanKind::kEvaluate, static_cast<int>(iteration_ - 1));
  if (when_ == EvaluateWhen::kBeside) SYNCOPATE_RETURN_IF_ERROR(WriteLateEvaluation());
  if (when_ == EvaluateWhen::kAfter) SYNCOPATE_RETURN_IF_ERROR(EvaluateSnapshots());
  SYNCOPATE_ASSIGN_OR_RETURN(evaluation_,
                             beside_->Now(last_model_ ? *last_model_ : CopyOf(*model_)));
  SYNCOPATE_RETURN_IF_ERROR(CheckIsNumber(evaluation_->loss, iteration_));
  evaluated_ = true;
  if (options_.target_accuracy || options_.target_loss) {
    reached_ = seat_->standing().reached || ReachesTarget(*evaluation_);
  }
  LedgerReport report = OwnReport();
  report.evaluation = {
      .iteration = std::min<int64_t>(iterations_,
                                     static_cast<int64_t>(seat_->standing().total_samples /
                                                          static_cast<uint64_t>(options_.batch))),
      .seconds = clock_.Seconds(),
      .loss = evaluation_->loss,
      .accuracy = evaluation_->accuracy,
      .last = true};
  if (lockstep()) report.evaluation.iteration = iteration_;
  return seat_->Post(std::move(report));
}

}  // namespace syncopate::train
