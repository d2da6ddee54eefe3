#include "sync/packed_values.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/copy_count.h"
#include "base/status.h"
#include "worker/memory_pieces.h"

namespace syncopate::sync {

using strategy::Content;
using strategy::StartTransfer;

absl::Status PackedValues::Allocate(Content content, bool keep_sent) {
  std::optional<Buffer>& buffer = content == Content::kGradients ? gradients_ : parameters_;
  if (!buffer) {
    SYNCOPATE_ASSIGN_OR_RETURN(Buffer fresh, worker_.Allocate(layout_.bytes()));
    buffer = std::move(fresh);
  }
  if (keep_sent && sent_ == nullptr) {
    sent_ = std::make_unique_for_overwrite<std::byte[]>(layout_.bytes());
  }
  return absl::OkStatus();
}

bool PackedValues::Prepare(Content content) const {
  const std::optional<Buffer>& buffer = content == Content::kGradients ? gradients_ : parameters_;
  return buffer || worker::TakePiece(worker_, layout_.bytes());
}

std::vector<int> PackedValues::TensorsOf(const StartTransfer& start) const {
  if (start.end > 0) return layout_.TensorsIn(start.begin, start.end);
  std::vector<int> tensors(static_cast<size_t>(start.last - start.first + 1));
  std::iota(tensors.begin(), tensors.end(), start.first);
  return tensors;
}

std::vector<TensorLayout::Range> PackedValues::RangesOf(const StartTransfer& start) const {
  if (start.end == 0) return layout_.Ranges(start.first, start.last);
  return layout_.RangesOfBytes(start.begin, start.end).value_or(std::vector<TensorLayout::Range>());
}

void PackedValues::PackGradient(int tensor, double share) {
  const double factor = share > 0 && ScalesWell(layout_.type(tensor)) ? share : 1;
  CountCopy(CopyStage::kPacked, layout_.BytesOf(tensor));
  replica_.Pack(Content::kGradients, tensor, factor,
                At(Content::kGradients) + layout_.Offset(tensor));
}

void PackedValues::PackParameters(const StartTransfer& start) {
  for (const int tensor : TensorsOf(start)) PackParameters(start, tensor);
}

// The rest of a tensor's place may belong to another transfer that is under way, so a tensor of
// which only a part moves is packed elsewhere first.
void PackedValues::PackParameters(const StartTransfer& start, int tensor) {
  std::byte* const memory = At(Content::kParameters);
  const uint64_t at = layout_.Offset(tensor), bytes = layout_.BytesOf(tensor);
  uint64_t from = at, to = at + bytes;
  if (start.end > 0) {
    from = std::max(from, start.begin);
    to = std::min(to, start.end);
  }
  CountCopy(CopyStage::kPacked, to - from);
  if (to - from == bytes) {
    replica_.Pack(Content::kParameters, tensor, 1, memory + at);
  } else {
    std::vector<std::byte> whole(bytes);
    replica_.Pack(Content::kParameters, tensor, 1, whole.data());
    std::memcpy(memory + from, whole.data() + (from - at), to - from);
  }
  if (start.keep_sent) std::memcpy(sent_.get() + from, memory + from, to - from);
}

std::byte* PackedValues::At(Content content) {
  const std::optional<Buffer>& buffer = content == Content::kGradients ? gradients_ : parameters_;
  return buffer ? buffer->as<std::byte>() : nullptr;
}

Brought PackedValues::BroughtOf(const strategy::ApplyUpdate& apply, Content content) {
  const bool local = apply.update == strategy::Update::kStepLocal;
  const bool add = apply.update == strategy::Update::kAddChange;
  return Brought(layout_, local ? nullptr : At(content), add ? sent_.get() : nullptr);
}

}  // namespace syncopate::sync
