// Data to train on and to test with: bytes in memory, of whatever owner.
//
// A sample is an image of unsigned bytes [channels, height, width] with one label, or a window of a
// text whose labels are the characters that follow, one for each place.
#ifndef SYNCOPATE_TRAIN_DATA_DATASET_H_
#define SYNCOPATE_TRAIN_DATA_DATASET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/digest.h"

namespace syncopate::train {

inline constexpr int64_t kSampleElementsMax = int64_t{1} << 22;
inline constexpr int64_t kDatasetBytesMax = int64_t{4} << 30;
inline constexpr int kClassesMax = 256;  // a label is one byte

struct DatasetInfo {
  std::string name;
  std::vector<int64_t> sample_shape;  // {channels, height, width}, or {length} of a text
  int64_t labels_per_sample = 1;      // a text has as many as places
  int classes = 0;
  // Of pixels scaled to [0, 1], for each channel; empty for a text.
  std::vector<float> mean;
  std::vector<float> deviation;
  std::string alphabet;  // of a text: the character of each class

  bool IsText() const { return sample_shape.size() == 1; }
  int64_t SampleElements() const;

  friend bool operator==(const DatasetInfo&, const DatasetInfo&) = default;
};

// One after the other, without gaps.
struct Split {
  int64_t samples = 0;
  absl::Span<const uint8_t> inputs;
  absl::Span<const uint8_t> labels;
};

// Copies are cheap and share the bytes. Thread-safe, since nothing changes it.
struct Dataset {
  DatasetInfo info;
  Split train;
  Split test;
  std::shared_ptr<const void> memory;  // keeps the bytes of both

  // Whether shapes, sizes and labels agree; the message says what does not.
  absl::Status Validate() const;
  // Of all that training depends on. Workers compare it.
  Digest ContentDigest() const;
};

// Bytes under construction; becomes a Dataset that owns them.
struct DatasetBytes {
  DatasetInfo info;
  std::vector<uint8_t> train_inputs, train_labels, test_inputs, test_labels;
};
// Validates it.
absl::StatusOr<Dataset> MakeDataset(DatasetBytes bytes);

// Sets the mean and deviation of each channel from the images for training.
void SetNormalisation(DatasetBytes& bytes);

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_DATA_DATASET_H_
