// Which samples each worker takes in each iteration.
//
// An epoch is one random order of all samples. Iteration after iteration takes the next part of it,
// and each worker its own piece of that part, in the order of ranks. So all workers together take
// exactly what one worker with their global batch would, however the batch is divided among them
// and whenever that changes. Samples left at the end of an epoch that do not fill a global batch
// are left out of it.
//
// Nobody has to talk to anybody: seed, sizes and position say it all.
#ifndef SYNCOPATE_TRAIN_DATA_SAMPLER_H_
#define SYNCOPATE_TRAIN_DATA_SAMPLER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace syncopate::train {

// Where the next global batch begins.
struct SamplerPosition {
  int64_t epoch = 0;
  int64_t offset = 0;  // samples of the epoch that were taken

  friend bool operator==(const SamplerPosition&, const SamplerPosition&) = default;
};

// One worker's samples of one iteration.
struct SampleBatch {
  int64_t epoch = 0;
  std::vector<int64_t> samples;
};

// Not thread-safe.
class Sampler {
 public:
  // `samples` > 0, at most 2^32.
  Sampler(int64_t samples, uint64_t seed);

  // The piece of worker `rank`, where worker r takes batch_sizes[r] (0 or more) samples; moves on
  // by the sum of them. InvalidArgument if that sum is 0 or more than an epoch has.
  absl::StatusOr<SampleBatch> Next(absl::Span<const int64_t> batch_sizes, int rank);

  // All samples in the order of an epoch, whatever was taken of it. Valid until the next call.
  absl::Span<const uint32_t> OrderOf(int64_t epoch);

  const SamplerPosition& position() const { return position_; }
  // To go on from where another left off. InvalidArgument if there is no such place.
  absl::Status SetPosition(const SamplerPosition& position);

  // How many full batches of that size an epoch has.
  int64_t BatchesInEpoch(int64_t global_batch) const { return samples_ / global_batch; }

 private:
  const int64_t samples_;
  const uint64_t seed_;
  SamplerPosition position_;
  int64_t shuffled_epoch_ = -1;
  std::vector<uint32_t> order_;  // of shuffled_epoch_
};

// A seed for one purpose out of another: different numbers give unrelated seeds.
uint64_t MixSeed(uint64_t seed, uint64_t number);

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_DATA_SAMPLER_H_
