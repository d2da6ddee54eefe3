#include "train/worker_course.h"

#include <numeric>

#include "absl/strings/str_cat.h"

namespace syncopate::train {

using strategy::DataMode;

// Workers that draw their own samples draw them in orders that differ.
WorkerCourse::WorkerCourse(const Options& options)
    : options_(options),
      all_batches_(std::accumulate(options.batches.begin(), options.batches.end(), int64_t{0})),
      sampler_(options.samples, options.data == DataMode::kInStep
                                    ? options.seed
                                    : MixSeed(options.seed, static_cast<uint64_t>(options.rank))),
      batch_(options.batches[static_cast<size_t>(options.rank)]) {}

absl::StatusOr<WorkerCourse> WorkerCourse::Make(const Options& options) {
  if (options.data == DataMode::kRanges) {
    return absl::UnimplementedError(
        "the strategy wants ranges of samples from a service, which training does not ask for yet");
  }
  return WorkerCourse(options);
}

absl::Status WorkerCourse::SetBatch(uint64_t samples) {
  if (in_step()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "batches of ", samples,
        " samples: workers whose samples are dealt out in step cannot change their batches alone"));
  }
  if (samples == 0 || samples > static_cast<uint64_t>(options_.samples)) {
    return absl::InvalidArgumentError(
        absl::StrCat("batches of ", samples, " samples: the data has ", options_.samples));
  }
  batch_ = static_cast<int64_t>(samples);
  return absl::OkStatus();
}

absl::Status WorkerCourse::SetProgress(const strategy::SetProgress& progress) {
  // What comes late must not turn back what is known.
  const bool stop = progress.stop || (progress_ && progress_->stop);
  if (!progress_ || progress.total_samples > progress_->total_samples) progress_ = progress;
  progress_->stop = stop;
  return absl::OkStatus();
}

absl::StatusOr<SampleBatch> WorkerCourse::Next() {
  if (in_step()) return sampler_.Next(options_.batches, options_.rank);
  return sampler_.Next({batch_}, 0);
}

int64_t WorkerCourse::RateIteration(int64_t iterations) const {
  if (!progress_) return iterations;
  return static_cast<int64_t>(progress_->total_samples / static_cast<uint64_t>(all_batches_));
}

bool WorkerCourse::Ended(int64_t iterations) const {
  if (!progress_) return iterations >= options_.iterations;
  return progress_->stop || RateIteration(iterations) >= options_.iterations;
}

}  // namespace syncopate::train
