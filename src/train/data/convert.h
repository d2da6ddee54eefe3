// Each package's files to a data set. Pure; what is damaged or of another size is DataLoss.
#ifndef SYNCOPATE_TRAIN_DATA_CONVERT_H_
#define SYNCOPATE_TRAIN_DATA_CONVERT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "train/data/dataset.h"
#include "train/data/package.h"

namespace syncopate::train {

// How much is in a package; tests make smaller ones.
struct ImageCounts {
  int64_t train = 0;
  int64_t test = 0;
};

// `data/train-images-idx3-ubyte` and three more idx files.
absl::StatusOr<Dataset> ConvertMnist(const PackageFiles& files, ImageCounts counts);

// `src/clothes/0.json` to `9.json`, a class each: {"data": [[pixel, ...], ...]} with some empty
// images among them. The package does not say which images are for testing; we take the last of
// each class.
absl::StatusOr<Dataset> ConvertFashionMnist(const PackageFiles& files, ImageCounts counts);

// `data_batch_1.png` to `5` and `test_batch.png`, a row of 1024 pixels for each image, and labels
// as JSON lists (`train_lables.json`, as the package spells it).
absl::StatusOr<Dataset> ConvertCifar10(const PackageFiles& files, ImageCounts counts);

// `data/chapter_1.json` and so on: {"text": ...}. The last tenth is for testing.
absl::StatusOr<Dataset> ConvertMobyDick(const PackageFiles& files, int chapters);

// Lists of small numbers in JSON: all numbers one after the other, and how many each innermost list
// held.
struct ByteRows {
  std::vector<uint8_t> values;
  std::vector<int64_t> lengths;
};
absl::StatusOr<ByteRows> ParseByteRows(absl::string_view json, int64_t values_max);

// Plain text with few kinds of characters: typographic signs become their nearest plain ones, other
// characters beyond ASCII are left out.
std::string PlainText(absl::string_view utf8);

// Cuts a text into samples of `length` characters, each with the characters that follow as labels.
absl::StatusOr<Dataset> MakeTextDataset(absl::string_view name, absl::string_view text,
                                        int64_t length);

inline constexpr int64_t kTextLength = 64;  // characters of a sample

}  // namespace syncopate::train

#endif  // SYNCOPATE_TRAIN_DATA_CONVERT_H_
