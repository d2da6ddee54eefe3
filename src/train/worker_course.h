// How a worker goes through its job: how many samples its next batch has and which, how far the job
// has come, and when it ends. A strategy may change all of it while the job runs.
//
// Not thread-safe: the training thread alone uses it.
#ifndef SYNCOPATE_TRAIN_WORKER_COURSE_H_
#define SYNCOPATE_TRAIN_WORKER_COURSE_H_

#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strategy/command.h"
#include "strategy/registry.h"
#include "train/data/sampler.h"

namespace syncopate::train {

class WorkerCourse {
 public:
  struct Options {
    // In step: all workers know the batches of all, which change together. Independent: this worker draws
    // its own samples, and its batch may change.
    strategy::DataMode data = strategy::DataMode::kInStep;
    int rank = 0;
    std::vector<int64_t> batches = {};  // by worker, at the start
    int64_t samples = 0;                // of the data set
    uint64_t seed = 0;
    int64_t iterations = 0;  // of a worker, unless the strategy counts the job's samples
  };
  // Unimplemented if samples are to come from elsewhere.
  static absl::StatusOr<WorkerCourse> Make(const Options& options);

  // ---- what a strategy says
  // From the next batch on. InvalidArgument for none, for more than there are, and in step.
  absl::Status SetBatch(uint64_t samples);
  // In step: from the next iteration on, by rank, of those that are not as at the start. All workers are
  // told the same after the same iteration. InvalidArgument if the data has fewer samples.
  absl::Status SetBatches(const std::map<int, uint64_t>& samples);
  // From now on the job's samples count, not this worker's iterations.
  absl::Status SetProgress(const strategy::SetProgress& progress);

  // ---- what the training loop asks
  int64_t batch() const { return batch_; }  // of the next iteration
  // Of all workers together in the next iteration; 0: not known.
  int64_t all_samples() const {
    return in_step() ? std::accumulate(batches_.begin(), batches_.end(), int64_t{0}) : 0;
  }
  absl::StatusOr<SampleBatch> Next();
  // The iteration, of those with the batches of the start, that the learning rate goes by after this
  // worker has done `iterations`.
  int64_t RateIteration(int64_t iterations) const;
  // Whether no iteration begins any more after this worker has done `iterations`.
  bool Ended(int64_t iterations) const;
  Sampler& sampler() { return sampler_; }

 private:
  explicit WorkerCourse(const Options& options);
  bool in_step() const { return options_.data == strategy::DataMode::kInStep; }

  const Options options_;
  const int64_t all_batches_;     // at the start
  std::vector<int64_t> batches_;  // by worker, in step
  Sampler sampler_;
  int64_t batch_ = 0;
  std::optional<strategy::SetProgress> progress_;
};

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_WORKER_COURSE_H_
