#include "sync/exchange.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace syncopate::sync {
namespace {

// Collectives move whole numbers; a text fills so many of them.
uint64_t WordsOf(uint64_t bytes) { return (bytes + sizeof(int32_t) - 1) / sizeof(int32_t); }

absl::Status CheckLength(int64_t bytes) {
  if (bytes >= 0 && static_cast<uint64_t>(bytes) <= kExchangedTextBytesMax) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(
      "a text of ", bytes, " bytes is exchanged, the limit is ", kExchangedTextBytesMax));
}

}  // namespace

absl::StatusOr<std::string> BroadcastText(Group& group, const std::string& text, int root) {
  int64_t bytes = static_cast<int64_t>(text.size());
  SYNCOPATE_RETURN_IF_ERROR(group.Broadcast(Array::Of(&bytes, 1), root));
  SYNCOPATE_RETURN_IF_ERROR(CheckLength(bytes));
  std::vector<int32_t> words(WordsOf(static_cast<uint64_t>(bytes)));
  if (words.empty()) return std::string();
  if (group.rank() == root) std::memcpy(words.data(), text.data(), text.size());
  SYNCOPATE_RETURN_IF_ERROR(group.Broadcast(Array::Of(words.data(), words.size()), root));
  return std::string(reinterpret_cast<const char*>(words.data()), static_cast<size_t>(bytes));
}

absl::StatusOr<std::vector<std::string>> AllGatherTexts(Group& group, const std::string& text) {
  const size_t size = static_cast<size_t>(group.size()), self = static_cast<size_t>(group.rank());
  std::vector<int64_t> lengths(size);
  lengths[self] = static_cast<int64_t>(text.size());
  SYNCOPATE_RETURN_IF_ERROR(group.AllGather(Array::Of(lengths.data(), size)));
  Call call{.collective = Collective::kAllGather};
  uint64_t total = 0;
  std::vector<uint64_t> offsets;
  for (const int64_t length : lengths) {
    SYNCOPATE_RETURN_IF_ERROR(CheckLength(length));
    offsets.push_back(total);
    call.block_elements.push_back(WordsOf(static_cast<uint64_t>(length)));
    total += call.block_elements.back();
  }
  SYNCOPATE_RETURN_IF_ERROR(CheckLength(static_cast<int64_t>(total * sizeof(int32_t))));
  std::vector<std::string> texts(size);
  if (total == 0) return texts;
  std::vector<int32_t> words(total);
  std::memcpy(words.data() + offsets[self], text.data(), text.size());
  call.data = Array::Of(words.data(), total);
  SYNCOPATE_RETURN_IF_ERROR(group.Run(call));
  for (size_t i = 0; i < size; ++i) {
    texts[i].assign(reinterpret_cast<const char*>(words.data() + offsets[i]),
                    static_cast<size_t>(lengths[i]));
  }
  return texts;
}

absl::Status CompareDigests(Group& group, const std::string& what, const std::string& digest) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<std::string> all, AllGatherTexts(group, digest));
  for (size_t i = 1; i < all.size(); ++i) {
    if (all[i] == all[0]) continue;
    return absl::InternalError(absl::StrCat("the workers do not have the same ", what, ": rank ",
                                            group.members()[0], " has ", all[0], ", rank ",
                                            group.members()[i], " has ", all[i]));
  }
  return absl::OkStatus();
}

}  // namespace syncopate::sync
