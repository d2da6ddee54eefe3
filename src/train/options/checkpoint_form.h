// The form of a checkpoint file, without LibTorch: what is in it and where. train/checkpoint.h has
// its description.
#ifndef SYNCOPATE_TRAIN_OPTIONS_CHECKPOINT_FORM_H_
#define SYNCOPATE_TRAIN_OPTIONS_CHECKPOINT_FORM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace syncopate::train {

inline constexpr absl::string_view kCheckpointMagic = "SYNCCKPT";
inline constexpr uint32_t kCheckpointVersion = 3;
inline constexpr uint64_t kCheckpointBytesMax = uint64_t{16} << 30;
inline constexpr uint8_t kTensorDimensionsMax = 8;
// Bytes of an element by the number of its type: float, double, half, bfloat16, int64, int32, uint8,
// bool.
inline constexpr std::array<uint8_t, 8> kTensorTypeBytes = {4, 8, 2, 2, 8, 4, 1, 1};

struct TensorForm {
  std::string name;
  uint8_t type = 0;  // an index into kTensorTypeBytes
  std::vector<int64_t> extents;
  absl::string_view bytes;  // of the file
};

struct CheckpointForm {
  std::string model;
  std::string config;
  int64_t iteration = 0;
  int64_t epoch = 0;
  int64_t offset = 0;
  std::string generator;
  std::string course;
  std::string strategy;
  std::string service;
  std::vector<TensorForm> tensors;
};

// DataLoss if it is damaged. What it returns points into `file`.
absl::StatusOr<CheckpointForm> DecodeCheckpoint(absl::string_view file);

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_OPTIONS_CHECKPOINT_FORM_H_
