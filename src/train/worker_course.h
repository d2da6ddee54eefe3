// How a worker goes through its job: how many samples its next batch has and which, how far the job
// has come, and when it ends. A strategy may change all of it while the job runs.
//
// Where a service deals out ranges of samples, a batch is made of the ranges that this worker got: places
// in the epoch's order, which is the same on all workers. They count for the job when the updates that
// they went into have been applied:
//
//   Next()   the forward pass, which waits for the updates of the iterations before; UpdatesApplied()
//   Next()   ...
//   the last updates of all; AllApplied()
//
// Not thread-safe: the training thread alone uses it.
#ifndef SYNCOPATE_TRAIN_WORKER_COURSE_H_
#define SYNCOPATE_TRAIN_WORKER_COURSE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strategy/command.h"
#include "strategy/registry.h"
#include "sync/sample_source.h"
#include "train/data/sampler.h"

namespace syncopate::train {

class WorkerCourse {
 public:
  struct Options {
    // In step: all workers know the batches of all, which change together. Independent: this worker draws
    // its own samples, and its batch may change. Ranges: it gets them from `source`.
    strategy::DataMode data = strategy::DataMode::kInStep;
    int rank = 0;
    std::vector<int64_t> batches = {};  // by worker, at the start
    int64_t samples = 0;                // of the data set
    uint64_t seed = 0;
    int64_t iterations = 0;  // of a worker, unless the strategy counts the job's samples
    sync::SampleSource* source = nullptr;  // of ranges; must outlive the course
    // Of a job that goes on: State() of all workers, by rank. The source has ProgressOf() them.
    std::vector<std::string> states = {};
    uint64_t mark_samples = 0;  // that the job had had when they were made, at least
  };
  // InvalidArgument for ranges without a source, DataLoss for states that are none.
  static absl::StatusOr<WorkerCourse> Make(const Options& options);

  // ---- what a strategy says
  // From the next batch on. InvalidArgument for none, for more than there are, and in step.
  absl::Status SetBatch(uint64_t samples);
  // In step: from the next iteration on, by rank, of those that are not as at the start. All workers are
  // told the same after the same iteration. InvalidArgument if the data has fewer samples.
  absl::Status SetBatches(const std::map<int, uint64_t>& samples);
  // From now on the job's samples count, not this worker's iterations. A strategy counts those since the
  // job went on.
  absl::Status SetProgress(const strategy::SetProgress& progress);
  // The same for whoever counts all samples of the job.
  absl::Status Progress(uint64_t total_samples, bool stop);

  // ---- what the training loop asks
  // Of the next iteration; of ranges at most so many.
  int64_t batch() const { return batch_; }
  // Of all workers together in the next iteration; 0: not known.
  int64_t all_samples() const {
    return in_step() ? std::accumulate(batches_.begin(), batches_.end(), int64_t{0}) : 0;
  }
  // The samples of the next iteration. None, of ranges: the job has ended, or others wait for what this
  // worker has taken: updates are to be brought to their end, AllApplied() and Next() to be called again.
  absl::StatusOr<SampleBatch> Next();
  // The updates of all iterations but the one that runs have been applied; of all, that one too.
  void UpdatesApplied() { UseBefore(1); }
  void AllApplied() { UseBefore(0); }
  // How many samples were handed out twice, because a worker was lost that held them; 0 without ranges.
  absl::StatusOr<uint64_t> Repeated();
  // The iteration, of those with the batches of the start, that the learning rate goes by after this
  // worker has done `iterations`.
  int64_t RateIteration(int64_t iterations) const;
  // Of the job before it went on.
  uint64_t earlier_samples() const { return earlier_samples_; }
  // Whether no iteration begins any more after this worker has done `iterations`.
  bool Ended(int64_t iterations) const;
  Sampler& sampler() { return sampler_; }

  // ---- checkpoints of a job without lockstep
  // Where this worker is, to go on from; AllApplied() has been called, and no iteration runs. Workers call
  // it at moments of their own, but all of them before any calls it again.
  absl::StatusOr<std::string> State();
  // Which samples count for a job that goes on from these: all that counted when the first of them was made,
  // and what each worker has counted itself until its own was.
  static absl::StatusOr<sync::SampleProgress> ProgressOf(const std::vector<std::string>& states,
                                                         uint64_t samples);

 private:
  explicit WorkerCourse(const Options& options);
  absl::Status GoOn();
  bool in_step() const { return options_.data == strategy::DataMode::kInStep; }
  bool ranges() const { return options_.data == strategy::DataMode::kRanges; }
  absl::StatusOr<SampleBatch> NextOfRanges();
  // Says ranges to be used, but for those of the last `but` batches.
  void UseBefore(size_t but);

  const Options options_;
  const int64_t all_batches_;     // at the start
  std::vector<int64_t> batches_;  // by worker, in step
  Sampler sampler_;
  int64_t batch_ = 0;
  std::optional<strategy::SetProgress> progress_;
  uint64_t earlier_samples_ = 0;  // of the job, before it went on: strategies begin to count anew
  bool over_ = false;             // all epochs are
  // By batch: ranges whose updates may not be applied yet.
  std::deque<std::vector<sync::SampleRange>> taken_;
  sync::SampleProgress own_;  // that this worker has counted since its last State()
};

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_WORKER_COURSE_H_
