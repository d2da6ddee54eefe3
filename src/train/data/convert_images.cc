// Converts the packages of images to our format.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "train/data/convert.h"
#include "train/data/png.h"

namespace syncopate::train {

namespace {

constexpr int kImageClasses = 10;  // of all of them

uint32_t BigEndian(absl::string_view bytes) {
  uint32_t value = 0;
  for (const char c : bytes.substr(0, 4)) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

// The bytes of an idx file of bytes with these extents.
absl::StatusOr<std::vector<uint8_t>> ReadIdx(const PackageFiles& files, const std::string& name,
                                             const std::vector<int64_t>& extents) {
  SYNCOPATE_ASSIGN_OR_RETURN(absl::string_view bytes, FileOf(files, name));
  const size_t head = 4 + 4 * extents.size();
  if (bytes.size() < head || BigEndian(bytes) != 0x800 + extents.size()) {
    return absl::DataLossError(
        absl::StrCat(name, ": not an idx file of bytes in ", extents.size(), " dimensions"));
  }
  uint64_t expected = 1;
  for (size_t i = 0; i < extents.size(); ++i) {
    const uint32_t extent = BigEndian(bytes.substr(4 + 4 * i));
    if (extent != extents[i]) {
      return absl::DataLossError(
          absl::StrCat(name, ": extent ", i, " is ", extent, "; expected ", extents[i]));
    }
    expected *= extent;
  }
  bytes.remove_prefix(head);
  if (bytes.size() != expected) {
    return absl::DataLossError(
        absl::StrCat(name, ": ", bytes.size(), " bytes of data; expected ", expected));
  }
  return std::vector<uint8_t>(bytes.begin(), bytes.end());
}

// Takes what ParseByteRows wants from nlohmann's parser, without a tree of 50 million numbers.
class RowsHandler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  RowsHandler(ByteRows& rows, int64_t values_max) : rows_(rows), values_max_(values_max) {}

  bool number_integer(number_integer_t) override { return Fail("a negative number"); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > 255) return Fail(absl::StrCat("the number ", value, "; expected 0 to 255"));
    if (static_cast<int64_t>(rows_.values.size()) == values_max_) {
      return Fail(absl::StrCat("more than ", values_max_, " numbers"));
    }
    rows_.values.push_back(static_cast<uint8_t>(value));
    return true;
  }
  bool start_array(size_t) override {
    start_ = rows_.values.size();
    innermost_ = true;
    return true;
  }
  bool end_array() override {
    if (innermost_) rows_.lengths.push_back(static_cast<int64_t>(rows_.values.size() - start_));
    innermost_ = false;
    return true;
  }
  bool null() override { return Fail("null"); }
  bool boolean(bool) override { return Fail("a truth value"); }
  bool number_float(number_float_t, const string_t&) override { return Fail("a fraction"); }
  bool string(string_t&) override { return Fail("a text"); }
  bool binary(binary_t&) override { return Fail("binary data"); }
  bool start_object(size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return Fail(absl::StrCat("no JSON at byte ", position));
  }

  const std::string& problem() const { return problem_; }

 private:
  bool Fail(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
    return false;
  }

  ByteRows& rows_;
  const int64_t values_max_;
  size_t start_ = 0;
  bool innermost_ = false;
  std::string problem_;
};

absl::StatusOr<std::vector<uint8_t>> ReadLabels(const PackageFiles& files, const std::string& name,
                                                int64_t count) {
  SYNCOPATE_ASSIGN_OR_RETURN(const absl::string_view text, FileOf(files, name));
  auto rows = ParseByteRows(text, count);
  if (!rows.ok()) return At(name, rows.status());
  if (static_cast<int64_t>(rows->values.size()) != count) {
    return absl::DataLossError(
        absl::StrCat(name, ": ", rows->values.size(), " labels; expected ", count));
  }
  return std::move(rows->values);
}

// Appends `count` images, one to a row of pixels, as planes of red, green and blue.
absl::Status AppendCifar(const PackageFiles& files, const std::string& name, int64_t count,
                         std::vector<uint8_t>& out) {
  constexpr size_t kPlane = 32 * 32;
  SYNCOPATE_ASSIGN_OR_RETURN(const absl::string_view file, FileOf(files, name));
  auto pixels = DecodePng(file, kPlane, static_cast<uint32_t>(count));
  if (!pixels.ok()) return At(name, pixels.status());
  size_t to = out.size();
  out.resize(to + pixels->size());
  for (size_t from = 0; from < pixels->size(); from += 3 * kPlane, to += 3 * kPlane) {
    for (size_t i = 0; i < kPlane; ++i) {
      for (size_t c = 0; c < 3; ++c) out[to + c * kPlane + i] = (*pixels)[from + 3 * i + c];
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Dataset> Finish(DatasetBytes bytes, absl::string_view name,
                               std::vector<int64_t> shape) {
  bytes.info.name = std::string(name);
  bytes.info.sample_shape = std::move(shape);
  bytes.info.classes = kImageClasses;
  SetNormalisation(bytes);
  auto dataset = MakeDataset(std::move(bytes));
  if (!dataset.ok()) return absl::DataLossError(dataset.status().message());
  return dataset;
}

}  // namespace

absl::StatusOr<ByteRows> ParseByteRows(absl::string_view json, int64_t values_max) {
  ByteRows rows;
  RowsHandler handler(rows, values_max);
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &handler)) {
    return absl::DataLossError(
        absl::StrCat("expected lists of numbers, found ", handler.problem()));
  }
  return rows;
}

absl::StatusOr<Dataset> ConvertMnist(const PackageFiles& files, ImageCounts counts) {
  DatasetBytes bytes;
  SYNCOPATE_ASSIGN_OR_RETURN(
      bytes.train_inputs, ReadIdx(files, "data/train-images-idx3-ubyte", {counts.train, 28, 28}));
  SYNCOPATE_ASSIGN_OR_RETURN(bytes.train_labels,
                             ReadIdx(files, "data/train-labels-idx1-ubyte", {counts.train}));
  SYNCOPATE_ASSIGN_OR_RETURN(bytes.test_inputs,
                             ReadIdx(files, "data/t10k-images-idx3-ubyte", {counts.test, 28, 28}));
  SYNCOPATE_ASSIGN_OR_RETURN(bytes.test_labels,
                             ReadIdx(files, "data/t10k-labels-idx1-ubyte", {counts.test}));
  return Finish(std::move(bytes), "mnist", {1, 28, 28});
}

absl::StatusOr<Dataset> ConvertFashionMnist(const PackageFiles& files, ImageCounts counts) {
  constexpr int64_t kPixels = 28 * 28;
  const int64_t train = counts.train / kImageClasses;
  const int64_t all = train + counts.test / kImageClasses;
  DatasetBytes bytes;
  for (int label = 0; label < kImageClasses; ++label) {
    const std::string name = absl::StrCat("src/clothes/", label, ".json");
    SYNCOPATE_ASSIGN_OR_RETURN(const absl::string_view text, FileOf(files, name));
    auto rows = ParseByteRows(text, all * kPixels);
    if (!rows.ok()) return At(name, rows.status());
    for (const int64_t length : rows->lengths) {
      if (length != 0 && length != kPixels) {
        return absl::DataLossError(
            absl::StrCat(name, ": an image of ", length, " pixels; expected ", kPixels));
      }
    }
    if (static_cast<int64_t>(rows->values.size()) != all * kPixels) {
      return absl::DataLossError(
          absl::StrCat(name, ": ", rows->values.size() / kPixels, " images; expected ", all));
    }
    const auto middle = rows->values.begin() + train * kPixels;
    bytes.train_inputs.insert(bytes.train_inputs.end(), rows->values.begin(), middle);
    bytes.test_inputs.insert(bytes.test_inputs.end(), middle, rows->values.end());
    bytes.train_labels.insert(bytes.train_labels.end(), static_cast<size_t>(train),
                              static_cast<uint8_t>(label));
    bytes.test_labels.insert(bytes.test_labels.end(), static_cast<size_t>(all - train),
                             static_cast<uint8_t>(label));
  }
  return Finish(std::move(bytes), "fashion-mnist", {1, 28, 28});
}

absl::StatusOr<Dataset> ConvertCifar10(const PackageFiles& files, ImageCounts counts) {
  constexpr int kBatches = 5;
  DatasetBytes bytes;
  for (int batch = 1; batch <= kBatches; ++batch) {
    SYNCOPATE_RETURN_IF_ERROR(AppendCifar(files, absl::StrCat("data_batch_", batch, ".png"),
                                          counts.train / kBatches, bytes.train_inputs));
  }
  SYNCOPATE_RETURN_IF_ERROR(AppendCifar(files, "test_batch.png", counts.test, bytes.test_inputs));
  SYNCOPATE_ASSIGN_OR_RETURN(bytes.train_labels,
                             ReadLabels(files, "train_lables.json", counts.train));
  SYNCOPATE_ASSIGN_OR_RETURN(bytes.test_labels, ReadLabels(files, "test_lables.json", counts.test));
  return Finish(std::move(bytes), "cifar10", {3, 32, 32});
}

}  // namespace syncopate::train
