#include "train/data/dataset_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "base/write_file.h"

namespace syncopate::train {

namespace {

constexpr absl::string_view kMagic = "SYNCDATA";
constexpr uint32_t kVersion = 1;
constexpr uint32_t kInfoBytesMax = 1 << 16;
constexpr uint32_t kNameBytesMax = 256;
constexpr uint32_t kChannelsMax = 1024;

void AppendText(std::string& out, absl::string_view text) {
  Append(out, static_cast<uint32_t>(text.size()));
  absl::StrAppend(&out, text);
}

std::string ReadText(ByteReader& reader, uint32_t bytes_max) {
  const auto bytes = reader.Read<uint32_t>();
  if (bytes > bytes_max) return std::string(reader.ReadBytes(reader.left() + 1));  // not ok()
  return std::string(reader.ReadBytes(bytes));
}

// Bytes of a file for as long as it lives.
class MappedFile {
 public:
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& path) {
    const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat facts {};
    if (!fd.ok() || fstat(fd.get(), &facts) != 0) {
      const std::string text = absl::StrCat("cannot read ", path, ": ", std::strerror(errno));
      return errno == ENOENT ? absl::NotFoundError(text) : absl::UnavailableError(text);
    }
    if (facts.st_size < 1 || facts.st_size > kDatasetBytesMax) {
      return absl::DataLossError(absl::StrCat(path, ": ", facts.st_size, " bytes long"));
    }
    const auto bytes = static_cast<size_t>(facts.st_size);
    void* start = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
    if (start == MAP_FAILED) {
      return absl::UnavailableError(absl::StrCat("cannot map ", path, ": ", std::strerror(errno)));
    }
    return std::make_shared<const MappedFile>(start, bytes);
  }
  MappedFile(void* start, size_t bytes) : start_(start), bytes_(bytes) {}
  MappedFile(const MappedFile&) = delete;
  ~MappedFile() { munmap(start_, bytes_); }

  absl::string_view bytes() const { return {static_cast<const char*>(start_), bytes_}; }

 private:
  void* const start_;
  const size_t bytes_;
};

absl::Span<const uint8_t> Take(ByteReader& reader, int64_t bytes) {
  const absl::string_view taken = reader.ReadBytes(static_cast<size_t>(bytes));
  return {reinterpret_cast<const uint8_t*>(taken.data()), taken.size()};
}

// `file` becomes the owner of what it points to.
absl::StatusOr<Dataset> Decode(std::shared_ptr<const MappedFile> file) {
  ByteReader reader(file->bytes());
  if (reader.ReadBytes(kMagic.size()) != kMagic) {
    return absl::DataLossError("not a file of data");
  }
  const auto version = reader.Read<uint32_t>();
  if (version != kVersion) {
    return absl::DataLossError(
        absl::StrCat("has version ", version, "; this program reads version ", kVersion));
  }
  const auto info_bytes = reader.Read<uint32_t>();
  if (info_bytes > kInfoBytesMax) return absl::DataLossError("a description that is too long");
  Dataset dataset;
  SYNCOPATE_ASSIGN_OR_RETURN(dataset.info, DecodeInfo(reader.ReadBytes(info_bytes)));
  dataset.train.samples = reader.Read<int64_t>();
  dataset.test.samples = reader.Read<int64_t>();
  Digest expected;
  expected.high = reader.Read<uint64_t>();
  expected.low = reader.Read<uint64_t>();
  const int64_t elements = dataset.info.SampleElements();
  for (Split* split : {&dataset.train, &dataset.test}) {
    // What is left bounds the count, so no product below overflows.
    if (split->samples < 0 || split->samples > static_cast<int64_t>(reader.left()) / elements) {
      return absl::DataLossError("ends too early");
    }
    split->inputs = Take(reader, split->samples * elements);
    split->labels = Take(reader, split->samples * dataset.info.labels_per_sample);
  }
  if (!reader.ok()) return absl::DataLossError("ends too early");
  if (!reader.AtEnd()) return absl::DataLossError("has bytes after its end");
  if (const absl::Status status = dataset.Validate(); !status.ok()) {
    return absl::DataLossError(status.message());
  }
  if (const Digest digest = dataset.ContentDigest(); !(digest == expected)) {
    return absl::DataLossError(
        absl::StrCat("its digest is ", digest.ToString(), " and should be ", expected.ToString()));
  }
  dataset.memory = std::move(file);
  return dataset;
}

void Write(std::ostream& file, absl::Span<const uint8_t> bytes) {
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

std::string EncodeInfo(const DatasetInfo& info) {
  std::string out;
  AppendText(out, info.name);
  Append(out, static_cast<uint32_t>(info.sample_shape.size()));
  for (const int64_t extent : info.sample_shape) Append(out, extent);
  Append(out, info.labels_per_sample);
  Append(out, static_cast<uint32_t>(info.classes));
  Append(out, static_cast<uint32_t>(info.mean.size()));
  for (const float value : info.mean) Append(out, value);
  for (const float value : info.deviation) Append(out, value);
  AppendText(out, info.alphabet);
  return out;
}

absl::StatusOr<DatasetInfo> DecodeInfo(absl::string_view bytes) {
  ByteReader reader(bytes);
  DatasetInfo info;
  info.name = ReadText(reader, kNameBytesMax);
  const auto dimensions = reader.Read<uint32_t>();
  if (dimensions < 1 || dimensions > 3) return absl::DataLossError("damaged in its description");
  int64_t elements = 1;
  for (uint32_t i = 0; i < dimensions; ++i) {
    const auto extent = reader.Read<int64_t>();
    if (extent < 1 || extent > kSampleElementsMax / elements) {
      return absl::DataLossError(absl::StrCat("an extent of ", extent, " in its shape"));
    }
    elements *= extent;
    info.sample_shape.push_back(extent);
  }
  info.labels_per_sample = reader.Read<int64_t>();
  if (info.labels_per_sample < 1 || info.labels_per_sample > elements) {
    return absl::DataLossError(absl::StrCat(info.labels_per_sample, " labels for each sample"));
  }
  info.classes = static_cast<int>(reader.Read<uint32_t>());
  const auto channels = reader.Read<uint32_t>();
  if (channels > kChannelsMax) return absl::DataLossError(absl::StrCat(channels, " channels"));
  for (std::vector<float>* values : {&info.mean, &info.deviation}) {
    for (uint32_t i = 0; i < channels; ++i) values->push_back(reader.Read<float>());
  }
  info.alphabet = ReadText(reader, kClassesMax);
  if (!reader.AtEnd()) return absl::DataLossError("damaged in its description");
  return info;
}

absl::Status WriteDatasetFile(const std::string& path, const Dataset& dataset) {
  SYNCOPATE_RETURN_IF_ERROR(dataset.Validate());
  const std::string info = EncodeInfo(dataset.info);
  const Digest digest = dataset.ContentDigest();
  std::string head(kMagic);
  Append(head, kVersion);
  Append(head, static_cast<uint32_t>(info.size()));
  absl::StrAppend(&head, info);
  Append(head, dataset.train.samples);
  Append(head, dataset.test.samples);
  Append(head, digest.high);
  Append(head, digest.low);
  return WriteFileWith(path, [&](std::ostream& file) {
    file.write(head.data(), static_cast<std::streamsize>(head.size()));
    for (const Split* split : {&dataset.train, &dataset.test}) {
      Write(file, split->inputs);
      Write(file, split->labels);
    }
  });
}

absl::StatusOr<Dataset> ReadDatasetFile(const std::string& path) {
  SYNCOPATE_ASSIGN_OR_RETURN(auto file, MappedFile::Open(path));
  auto dataset = Decode(std::move(file));
  if (!dataset.ok()) return At(path, dataset.status());
  return dataset;
}

}  // namespace syncopate::train
