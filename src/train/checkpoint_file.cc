// Checkpoints to and from their form on disk (train/options/checkpoint_form.h).
#include <ATen/ATen.h>

#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/bytes.h"
#include "base/digest.h"
#include "base/status.h"
#include "train/checkpoint.h"
#include "train/options/checkpoint_form.h"

namespace syncopate::train {

namespace {

// Types by their number in a file.
constexpr std::array kTypes = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16,
                               at::kLong,  at::kInt,    at::kByte, at::kBool};
static_assert(kTypes.size() == kTensorTypeBytes.size());

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

absl::StatusOr<std::string> Encode(const Checkpoint& checkpoint) {
  std::string out(kCheckpointMagic);
  Append(out, kCheckpointVersion);
  AppendText(out, checkpoint.model);
  AppendText(out, checkpoint.config);
  Append(out, checkpoint.iteration);
  Append(out, checkpoint.sampler.epoch);
  Append(out, checkpoint.sampler.offset);
  AppendText(out, checkpoint.generator);
  AppendText(out, checkpoint.course);
  AppendText(out, checkpoint.strategy);
  AppendText(out, checkpoint.service);
  Append(out, static_cast<uint32_t>(checkpoint.tensors.size()));
  size_t bytes = out.size();
  for (const auto& [name, tensor] : checkpoint.tensors) bytes += tensor.nbytes() + name.size() + 80;
  out.reserve(bytes);
  for (const auto& [name, tensor] : checkpoint.tensors) {
    const auto type = NumberOf(tensor.scalar_type());
    if (!type || tensor.dim() > kTensorDimensionsMax) {
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

absl::StatusOr<Checkpoint> Decode(absl::string_view file) {
  SYNCOPATE_ASSIGN_OR_RETURN(CheckpointForm form, DecodeCheckpoint(file));
  Checkpoint checkpoint;
  checkpoint.model = std::move(form.model);
  checkpoint.config = std::move(form.config);
  checkpoint.iteration = form.iteration;
  checkpoint.sampler = {.epoch = form.epoch, .offset = form.offset};
  checkpoint.generator = std::move(form.generator);
  checkpoint.course = std::move(form.course);
  checkpoint.strategy = std::move(form.strategy);
  checkpoint.service = std::move(form.service);
  for (TensorForm& tensor : form.tensors) {
    CheckpointTensor result;
    result.name = std::move(tensor.name);
    result.tensor = at::empty(tensor.extents, kTypes[tensor.type]);
    if (!tensor.bytes.empty()) {
      std::memcpy(result.tensor.data_ptr(), tensor.bytes.data(), tensor.bytes.size());
    }
    checkpoint.tensors.push_back(std::move(result));
  }
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
