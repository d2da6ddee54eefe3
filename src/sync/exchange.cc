#include "sync/exchange.h"

#include <cstring>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace syncopate::sync {
namespace {

// Collectives move numbers, not bytes: how many int32 hold a text of this length.
uint64_t WordsOf(uint64_t bytes) { return (bytes + sizeof(int32_t) - 1) / sizeof(int32_t); }

absl::Status CheckLength(int64_t bytes) {
  if (bytes >= 0 && static_cast<uint64_t>(bytes) <= kExchangedTextBytesMax) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(
      "a text of ", bytes, " bytes is exchanged, the limit is ", kExchangedTextBytesMax));
}

// What the texts of a group's members look like one after the other.
struct Layout {
  // By member: the bytes of its text, the words that hold it, and the word that it begins at.
  std::vector<int64_t> bytes;
  std::vector<uint64_t> words;
  std::vector<uint64_t> offsets;
  uint64_t total = 0;  // words
};

absl::StatusOr<Layout> AgreeOnLayout(Group& group, const std::string& text) {
  Layout layout;
  layout.bytes.resize(static_cast<size_t>(group.size()));
  layout.bytes[static_cast<size_t>(group.rank())] = static_cast<int64_t>(text.size());
  SYNCOPATE_RETURN_IF_ERROR(group.AllGather(Array::Of(layout.bytes.data(), layout.bytes.size())));
  for (const int64_t length : layout.bytes) {
    SYNCOPATE_RETURN_IF_ERROR(CheckLength(length));
    layout.offsets.push_back(layout.total);
    layout.words.push_back(WordsOf(static_cast<uint64_t>(length)));
    layout.total += layout.words.back();
  }
  return layout;
}

// Moves the texts by `call`. Returns all of them on the members that it brings them to, and nothing
// on the others.
absl::StatusOr<std::vector<std::string>> MoveTexts(Group& group, const std::string& text,
                                                   const Layout& layout, Call call) {
  const bool here = !HasRoot(call.collective) || call.root == group.rank();
  std::vector<std::string> texts(here ? layout.bytes.size() : 0);
  if (layout.total == 0) return texts;
  std::vector<int32_t> words(layout.total);
  std::memcpy(words.data() + layout.offsets[static_cast<size_t>(group.rank())], text.data(),
              text.size());
  call.block_elements = layout.words;
  call.data = Array::Of(words.data(), words.size());
  SYNCOPATE_RETURN_IF_ERROR(group.Run(call));
  for (size_t i = 0; i < texts.size(); ++i) {
    texts[i].assign(reinterpret_cast<const char*>(words.data() + layout.offsets[i]),
                    static_cast<size_t>(layout.bytes[i]));
  }
  return texts;
}

class GroupExchange final : public adapt::JobExchange {
 public:
  explicit GroupExchange(Group group) : group_(std::move(group)) {}

  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  absl::Status Largest(std::vector<double>& numbers) override {
    return group_.AllReduce(Array::Of(numbers.data(), numbers.size()), ReduceOp::kMax);
  }
  absl::Status Smallest(std::vector<double>& numbers) override {
    return group_.AllReduce(Array::Of(numbers.data(), numbers.size()), ReduceOp::kMin);
  }
  absl::StatusOr<std::string> FromFirst(const std::string& text) override {
    return BroadcastText(group_, text, 0);
  }
  absl::Status CompareDigests(const std::string& what, const std::string& digest) override {
    return sync::CompareDigests(group_, what, digest);
  }

 private:
  Group group_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<adapt::JobExchange>> MakeJobExchange(Worker& worker) {
  std::vector<int> everyone(static_cast<size_t>(worker.size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  SYNCOPATE_ASSIGN_OR_RETURN(Group group, worker.NewGroup(std::move(everyone)));
  return std::make_unique<GroupExchange>(std::move(group));
}

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
  SYNCOPATE_ASSIGN_OR_RETURN(const Layout layout, AgreeOnLayout(group, text));
  SYNCOPATE_RETURN_IF_ERROR(CheckLength(static_cast<int64_t>(layout.total * sizeof(int32_t))));
  return MoveTexts(group, text, layout, {.collective = Collective::kAllGather});
}

absl::StatusOr<std::vector<std::string>> GatherTexts(Group& group, const std::string& text,
                                                     int root) {
  SYNCOPATE_ASSIGN_OR_RETURN(const Layout layout, AgreeOnLayout(group, text));
  return MoveTexts(group, text, layout, {.collective = Collective::kGather, .root = root});
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
