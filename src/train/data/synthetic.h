// Data made from a seed, for jobs without a network: little to learn, but enough to see a loss
// fall.
#ifndef SYNCOPATE_TRAIN_DATA_SYNTHETIC_H_
#define SYNCOPATE_TRAIN_DATA_SYNTHETIC_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "train/data/dataset.h"

namespace syncopate::train {

struct SyntheticImages {
  std::vector<int64_t> shape = {3, 32, 32};
  int classes = 10;
  int64_t train_samples = 10'000;
  int64_t test_samples = 2'000;
  uint64_t seed = 1;
};

// A smooth pattern for each class; a sample is its class's pattern, moved by up to two pixels, with
// noise that a single pixel drowns in. Called "synthetic".
absl::StatusOr<Dataset> MakeSyntheticImages(const SyntheticImages& request);

// A text of 24 letters, called "synthetic-text". More than half of all letters can be told from the
// one before, none with certainty.
absl::StatusOr<Dataset> MakeSyntheticText(int64_t characters, uint64_t seed);

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_DATA_SYNTHETIC_H_
