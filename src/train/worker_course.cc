#include "train/worker_course.h"

#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

namespace syncopate::train {

using strategy::DataMode;

// Workers that draw their own samples draw them in orders that differ.
WorkerCourse::WorkerCourse(const Options& options)
    : options_(options),
      all_batches_(std::accumulate(options.batches.begin(), options.batches.end(), int64_t{0})),
      batches_(options.batches),
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

absl::Status WorkerCourse::SetBatches(const std::map<int, uint64_t>& samples) {
  std::vector<int64_t> batches = options_.batches;
  uint64_t all = 0;
  for (const auto& [rank, batch] : samples) {
    if (!in_step() || rank < 0 || rank >= static_cast<int>(batches.size()) || batch == 0 ||
        batch > static_cast<uint64_t>(options_.samples)) {
      return absl::InvalidArgumentError(absl::StrCat("batches of ", batch, " samples for rank ",
                                                     rank, ": the data has ", options_.samples));
    }
    batches[static_cast<size_t>(rank)] = static_cast<int64_t>(batch);
  }
  for (const int64_t batch : batches) all += static_cast<uint64_t>(batch);
  if (all > static_cast<uint64_t>(options_.samples)) {
    return absl::InvalidArgumentError(
        absl::StrCat("batches of ", all, " samples together: the data has ", options_.samples));
  }
  batches_ = std::move(batches);
  batch_ = batches_[static_cast<size_t>(options_.rank)];
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
  if (in_step()) return sampler_.Next(batches_, options_.rank);
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
