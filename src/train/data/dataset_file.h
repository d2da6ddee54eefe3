// A data set as one file, so that it is converted once and mapped by every worker of a machine:
// they share its pages.
//
// The form, all numbers little-endian:
//   "SYNCDATA", u32 version, u32 bytes of info, info (EncodeInfo), i64 samples to train on, i64
//   samples to test with, u64 u64 content digest, then the bytes of train inputs, train labels,
//   test inputs, test labels.
#ifndef SYNCOPATE_TRAIN_DATA_DATASET_FILE_H_
#define SYNCOPATE_TRAIN_DATA_DATASET_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "train/data/dataset.h"

namespace syncopate::train {

// Writes beside the target and renames, so that nobody sees half a file.
absl::Status WriteDatasetFile(const std::string& path, const Dataset& dataset);

// Maps the file and checks all of it: form, sizes, labels, digest. NotFound if there is none;
// DataLoss, with the path, if it is damaged.
absl::StatusOr<Dataset> ReadDatasetFile(const std::string& path);

std::string EncodeInfo(const DatasetInfo& info);
absl::StatusOr<DatasetInfo> DecodeInfo(absl::string_view bytes);

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_DATA_DATASET_FILE_H_
