// The iterations of a worker, and what follows each of them.
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/figures.h"
#include "base/sleep.h"
#include "base/status.h"
#include "torch/kept_schedule.h"
#include "train/trainer_impl.h"

namespace syncopate::train {

using observe::ScopedSpan;

// Waiting for others is no computing.
absl::Status Trainer::Need(int tensor) {
  if (!pace_.waits()) return synchronizer_->Need(tensor);
  const int64_t before_ns = MonotonicClock().NowNs();
  const absl::Status status = synchronizer_->Need(tensor);
  pace_.Held(MonotonicClock().NowNs() - before_ns);
  return status;
}

absl::StatusOr<SampleBatch> Trainer::Pick() {
  const ScopedSpan span(&recorder_, SpanKind::kLoad, static_cast<int>(iteration_));
  SYNCOPATE_ASSIGN_OR_RETURN(SampleBatch picked, course_->Next());
  while (picked.samples.empty() && !course_->Ended(iteration_)) {
    // Others wait for what this worker has taken.
    SYNCOPATE_RETURN_IF_ERROR(synchronizer_->Finish());
    course_->AllApplied();
    SYNCOPATE_ASSIGN_OR_RETURN(picked, course_->Next());
  }
  return picked;
}

absl::Status Trainer::Iterate(const SampleBatch& picked) {
  const int number = static_cast<int>(iteration_);
  const int64_t samples = static_cast<int64_t>(picked.samples.size());
  SYNCOPATE_RETURN_IF_ERROR(synchronizer_->Begin(static_cast<uint64_t>(samples),
                                                 static_cast<uint64_t>(course_->all_samples())));
  pace_.Begin(MonotonicClock().NowNs());
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
      course_->UpdatesApplied();
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

LedgerReport Trainer::OwnReport() const {
  return {.iteration = iteration_,
          .samples = samples_,
          .bytes_sent = synchronizer_->bytes_sent(),
          .written = writer_.written()};
}

// In lockstep the total is known to everybody: the rate and the end go by the iteration.
absl::Status Trainer::FollowLedger(const Standing& standing) {
  if (!lockstep()) {
    // All end after the iteration that the ledger says, not when each of them hears of the samples.
    const uint64_t all = static_cast<uint64_t>(iterations_) * static_cast<uint64_t>(options_.batch);
    SYNCOPATE_RETURN_IF_ERROR(
        course_->Progress(std::min(standing.total_samples, all - 1), /*stop=*/false));
  }
  if (standing.writer >= 0 && standing.writer != writer_rank_) {
    writer_rank_ = standing.writer;
    if (writes()) SYNCOPATE_RETURN_IF_ERROR(writer_.TakeOver());
  }
  return writes() ? writer_.Write(standing.lines) : absl::OkStatus();
}

absl::StatusOr<bool> Trainer::BeginsAnother() {
  SYNCOPATE_RETURN_IF_ERROR(FollowLedger(seat_->standing()));
  if (course_->Ended(iteration_) || (when_ == EvaluateWhen::kIn && reached_.value_or(false))) {
    return false;
  }
  return seat_->MayBegin(iteration_, DeadlineNs());
}

absl::Status Trainer::Loop() {
  loop_begin_ = clock_.Now(iteration_);
  writer_.BeginLoop(clock_.Now(first_iteration_), iterations_);
  if (const auto now = ReadProcessorTime(); now.ok()) processors_begin_ = *now;
  for (;;) {
    SYNCOPATE_ASSIGN_OR_RETURN(const bool begins, BeginsAnother());
    if (!begins) break;
    SYNCOPATE_ASSIGN_OR_RETURN(const SampleBatch picked, Pick());
    if (picked.samples.empty()) break;
    SYNCOPATE_RETURN_IF_ERROR(Iterate(picked));
    SYNCOPATE_RETURN_IF_ERROR(AfterIteration());
  }
  SYNCOPATE_RETURN_IF_ERROR(synchronizer_->Finish());
  course_->AllApplied();
  SYNCOPATE_RETURN_IF_ERROR(SaveLast());
  // The last iteration of workers in lockstep has ended when it has on all of them: a slow one may
  // compute still when the others have all its gradients.
  if (lockstep()) {
    LedgerReport report = OwnReport();
    report.kind = LedgerReport::Kind::kMeet;
    SYNCOPATE_RETURN_IF_ERROR(seat_->Ask(std::move(report)).status());
  }
  loop_end_ = clock_.Now(iteration_);
  if (const auto now = ReadProcessorTime(); now.ok()) processors_end_ = *now;
  return absl::OkStatus();
}

absl::Status Trainer::AfterIteration() {
  evaluated_ = false;
  samples_ += static_cast<uint64_t>(last_batch_);
  SYNCOPATE_RETURN_IF_ERROR(Report());
  const auto every = [this](int64_t iterations) {
    return iterations > 0 && iteration_ % iterations == 0;
  };
  if (when_ != EvaluateWhen::kIn) {
    SYNCOPATE_RETURN_IF_ERROR(EvaluateElsewhere());
  } else if (every(options_.evaluate_every)) {
    SYNCOPATE_RETURN_IF_ERROR(EvaluateTogether());
  }
  SYNCOPATE_RETURN_IF_ERROR(Save());
  return keeper_ != nullptr ? KeepSchedule() : absl::OkStatus();
}

// In lockstep a line is of an iteration that all report. Else the ledger has to know at any time how
// far all are.
absl::Status Trainer::Report() {
  const bool due = iteration_ % options_.report_every == 0 || course_->Ended(iteration_);
  if (due) {
    if (log_ != nullptr) SYNCOPATE_RETURN_IF_ERROR(At("--log", log_->status()));
    if (timeline_) SYNCOPATE_RETURN_IF_ERROR(timeline_->Append(recorder_.TakeNew()));
  }
  LedgerReport report = OwnReport();
  report.batch = static_cast<uint64_t>(last_batch_);
  report.loss = loss_;
  report.rate = rate_.RateAt(course_->RateIteration(iteration_ - 1));
  if (!lockstep()) return seat_->PostNewest(std::move(report));
  if (due) {
    if (writes()) writer_.Reached(clock_.Now(iteration_));
    return seat_->Post(std::move(report));
  }
  if (writes()) writer_.BreakSilence(iteration_);
  return absl::OkStatus();
}

// Rank 0 plans, and says so.
absl::Status Trainer::KeepSchedule() {
  SYNCOPATE_ASSIGN_OR_RETURN(adapt::ScheduleKeeper::News news,
                             torch::KeepSchedule(*keeper_, *synchronizer_));
  if (news.event.empty()) return absl::OkStatus();
  LedgerReport report = OwnReport();
  report.event = std::move(news.event);
  return seat_->Post(std::move(report));
}

}  // namespace syncopate::train
