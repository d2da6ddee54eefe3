// The form of checkpoints on disk.
#include <ATen/ATen.h>

#include <array>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/digest.h"
#include "base/status.h"
#include "train/checkpoint.h"

namespace syncopate::train {

namespace {

constexpr absl::string_view kMagic = "SYNCCKPT";
constexpr uint32_t kVersion = 1;
constexpr uint32_t kTextBytesMax = 4096;
constexpr uint32_t kGeneratorBytesMax = 1 << 20;
constexpr uint32_t kTensorsMax = 1 << 20;
constexpr uint8_t kDimensionsMax = 8;
constexpr size_t kDigestBytes = 16;

// Types by their number in a file.
constexpr std::array kTypes = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16,
                               at::kLong,  at::kInt,    at::kByte, at::kBool};

std::optional<uint8_t> NumberOf(at::ScalarType type) {
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i] == type) return static_cast<uint8_t>(i);
  }
  return std::nullopt;
}

void AppendText(std::string& out, absl::string_view text) {
  Append(out, static_cast<uint32_t>(text.size()));
  out.append(text.data(), text.size());
}

// Makes the reader not ok() if it is longer than allowed.
absl::string_view ReadText(ByteReader& reader, uint32_t bytes_max) {
  const auto bytes = reader.Read<uint32_t>();
  return reader.ReadBytes(bytes > bytes_max ? SIZE_MAX : bytes);
}

absl::StatusOr<std::string> Encode(const Checkpoint& checkpoint) {
  std::string out(kMagic);
  Append(out, kVersion);
  AppendText(out, checkpoint.model);
  AppendText(out, checkpoint.config);
  Append(out, checkpoint.iteration);
  Append(out, checkpoint.sampler.epoch);
  Append(out, checkpoint.sampler.offset);
  AppendText(out, checkpoint.generator);
  Append(out, static_cast<uint32_t>(checkpoint.tensors.size()));
  size_t bytes = out.size();
  for (const auto& [name, tensor] : checkpoint.tensors) bytes += tensor.nbytes() + name.size() + 80;
  out.reserve(bytes);
  for (const auto& [name, tensor] : checkpoint.tensors) {
    const auto type = NumberOf(tensor.scalar_type());
    if (!type || tensor.dim() > kDimensionsMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("a checkpoint cannot hold tensor ", name, " of its type or dimensions"));
    }
    AppendText(out, name);
    Append(out, *type);
    Append(out, static_cast<uint8_t>(tensor.dim()));
    for (const int64_t extent : tensor.sizes()) Append(out, extent);
    const at::Tensor flat = tensor.contiguous();
    out.append(static_cast<const char*>(flat.data_ptr()), flat.nbytes());
  }
  const Digest digest = DigestOf(out);
  Append(out, digest.high);
  Append(out, digest.low);
  return out;
}

absl::StatusOr<CheckpointTensor> DecodeTensor(ByteReader& reader) {
  CheckpointTensor result;
  result.name = std::string(ReadText(reader, kTextBytesMax));
  const auto type = reader.Read<uint8_t>();
  const auto dimensions = reader.Read<uint8_t>();
  if (!reader.ok() || type >= kTypes.size() || dimensions > kDimensionsMax) {
    return absl::DataLossError(absl::StrCat("damaged at tensor \"", result.name, "\""));
  }
  // What is left bounds the size, so nothing is allocated for a wrong one.
  auto bytes = static_cast<int64_t>(at::elementSize(kTypes[type]));
  const auto left = static_cast<int64_t>(reader.left());
  std::vector<int64_t> extents;
  for (int i = 0; i < dimensions; ++i) {
    const auto extent = reader.Read<int64_t>();
    if (extent < 0 || (extent > 0 && bytes > left / extent)) {
      return absl::DataLossError(absl::StrCat("damaged at tensor \"", result.name, "\""));
    }
    bytes *= extent;
    extents.push_back(extent);
  }
  const absl::string_view contents = reader.ReadBytes(static_cast<size_t>(bytes));
  if (!reader.ok()) return absl::DataLossError("ends too early");
  result.tensor = at::empty(extents, kTypes[type]);
  if (bytes > 0) std::memcpy(result.tensor.data_ptr(), contents.data(), contents.size());
  return result;
}

absl::StatusOr<Checkpoint> Decode(absl::string_view file) {
  if (file.size() < kMagic.size() + kDigestBytes || file.substr(0, kMagic.size()) != kMagic) {
    return absl::DataLossError("not a checkpoint");
  }
  const absl::string_view contents = file.substr(0, file.size() - kDigestBytes);
  ByteReader end(file.substr(contents.size()));
  Digest expected;
  expected.high = end.Read<uint64_t>();
  expected.low = end.Read<uint64_t>();
  if (!(DigestOf(contents) == expected)) {
    return absl::DataLossError("its digest is wrong: it is damaged or not whole");
  }
  ByteReader reader(contents.substr(kMagic.size()));
  const auto version = reader.Read<uint32_t>();
  if (version != kVersion) {
    return absl::DataLossError(
        absl::StrCat("has version ", version, "; this program reads version ", kVersion));
  }
  Checkpoint checkpoint;
  checkpoint.model = std::string(ReadText(reader, kTextBytesMax));
  checkpoint.config = std::string(ReadText(reader, kTextBytesMax));
  checkpoint.iteration = reader.Read<int64_t>();
  checkpoint.sampler.epoch = reader.Read<int64_t>();
  checkpoint.sampler.offset = reader.Read<int64_t>();
  checkpoint.generator = std::string(ReadText(reader, kGeneratorBytesMax));
  const auto tensors = reader.Read<uint32_t>();
  if (!reader.ok() || checkpoint.iteration < 0 || tensors > kTensorsMax) {
    return absl::DataLossError("damaged");
  }
  for (uint32_t i = 0; i < tensors; ++i) {
    SYNCOPATE_ASSIGN_OR_RETURN(CheckpointTensor tensor, DecodeTensor(reader));
    checkpoint.tensors.push_back(std::move(tensor));
  }
  if (!reader.AtEnd()) return absl::DataLossError("has bytes after its end");
  return checkpoint;
}

}  // namespace

absl::Status SaveCheckpoint(const std::string& path, const Checkpoint& checkpoint, Disk& disk) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string bytes, Encode(checkpoint));
  const absl::Status status = WriteDurably(path, bytes, disk);
  return status.ok() ? status : At(absl::StrCat("checkpoint ", path), status);
}

absl::StatusOr<Checkpoint> LoadCheckpoint(const std::string& path, Disk& disk) {
  const std::string place = absl::StrCat("checkpoint ", path);
  auto bytes = disk.Read(path, kCheckpointBytesMax);
  if (!bytes.ok()) return At(place, bytes.status());
  auto checkpoint = Decode(*bytes);
  if (!checkpoint.ok()) return At(place, checkpoint.status());
  return checkpoint;
}

}  // namespace syncopate::train
