#include "train/options/checkpoint_form.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/digest.h"
#include "base/limits.h"
#include "base/status.h"
#include "strategy/strategy.h"

namespace syncopate::train {
namespace {

constexpr uint32_t kTextBytesMax = 4096;
constexpr uint32_t kGeneratorBytesMax = 1 << 20;
constexpr uint32_t kCourseBytesMax = 64 << 20;
// As long as an answer of a service can be.
constexpr uint32_t kServiceStateBytesMax = limits::kServiceBytesMax;
constexpr uint32_t kTensorsMax = 1 << 20;
constexpr size_t kDigestBytes = 16;

// Makes the reader not ok() if it is longer than allowed.
absl::string_view ReadText(ByteReader& reader, uint32_t bytes_max) {
  const auto bytes = reader.Read<uint32_t>();
  return reader.ReadBytes(bytes > bytes_max ? SIZE_MAX : bytes);
}

absl::StatusOr<TensorForm> DecodeTensor(ByteReader& reader) {
  TensorForm tensor;
  tensor.name = std::string(ReadText(reader, kTextBytesMax));
  tensor.type = reader.Read<uint8_t>();
  const auto dimensions = reader.Read<uint8_t>();
  if (!reader.ok() || tensor.type >= kTensorTypeBytes.size() || dimensions > kTensorDimensionsMax) {
    return absl::DataLossError(absl::StrCat("damaged at tensor \"", tensor.name, "\""));
  }
  // What is left bounds the size, so nothing is allocated for a wrong one. Extents beside a zero are
  // bounded too: their product is taken where the tensor is made.
  int64_t bytes = kTensorTypeBytes[tensor.type];
  int64_t bytes_but_for_zeros = bytes;
  const auto left = static_cast<int64_t>(reader.left());
  for (int i = 0; i < dimensions; ++i) {
    const auto extent = reader.Read<int64_t>();
    if (extent < 0 || (extent > 0 && (bytes > left / extent ||
                                      bytes_but_for_zeros >
                                          static_cast<int64_t>(kCheckpointBytesMax) / extent))) {
      return absl::DataLossError(absl::StrCat("damaged at tensor \"", tensor.name, "\""));
    }
    bytes *= extent;
    if (extent > 0) bytes_but_for_zeros *= extent;
    tensor.extents.push_back(extent);
  }
  tensor.bytes = reader.ReadBytes(static_cast<size_t>(bytes));
  if (!reader.ok()) return absl::DataLossError("ends too early");
  return tensor;
}

}  // namespace

absl::StatusOr<CheckpointForm> DecodeCheckpoint(absl::string_view file) {
  if (file.size() < kCheckpointMagic.size() + kDigestBytes ||
      file.substr(0, kCheckpointMagic.size()) != kCheckpointMagic) {
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
  ByteReader reader(contents.substr(kCheckpointMagic.size()));
  const auto version = reader.Read<uint32_t>();
  if (version != kCheckpointVersion) {
    return absl::DataLossError(
        absl::StrCat("has version ", version, "; this program reads version ", kCheckpointVersion));
  }
  CheckpointForm checkpoint;
  checkpoint.model = std::string(ReadText(reader, kTextBytesMax));
  checkpoint.config = std::string(ReadText(reader, kTextBytesMax));
  checkpoint.iteration = reader.Read<int64_t>();
  checkpoint.epoch = reader.Read<int64_t>();
  checkpoint.offset = reader.Read<int64_t>();
  checkpoint.generator = std::string(ReadText(reader, kGeneratorBytesMax));
  checkpoint.course = std::string(ReadText(reader, kCourseBytesMax));
  checkpoint.strategy = std::string(ReadText(reader, limits::kStrategyStateBytesMax));
  checkpoint.service = std::string(ReadText(reader, kServiceStateBytesMax));
  const auto tensors = reader.Read<uint32_t>();
  if (!reader.ok() || checkpoint.iteration < 0 || tensors > kTensorsMax) {
    return absl::DataLossError("damaged");
  }
  for (uint32_t i = 0; i < tensors; ++i) {
    SYNCOPATE_ASSIGN_OR_RETURN(TensorForm tensor, DecodeTensor(reader));
    checkpoint.tensors.push_back(std::move(tensor));
  }
  if (!reader.AtEnd()) return absl::DataLossError("has bytes after its end");
  return checkpoint;
}

}  // namespace syncopate::train
