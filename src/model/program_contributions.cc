// The table of symbolic sums.
#include "model/program_contributions.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/parse.h"

namespace syncopate {

// Ids are dense: 0 is "undefined", then one atom for each active worker's chunk, then the sums in
// the order in which they were made. A sum is a set of owners, as bits.
Contributions::Contributions(const std::vector<int>& active, uint32_t chunks)
    : active_(active),
      chunks_(chunks),
      first_sum_(static_cast<Id>(1 + active.size() * chunks)),
      words_per_sum_((active.size() + 63) / 64) {}

uint32_t Contributions::ChunkOf(Id id) const {
  return IsAtom(id) ? static_cast<uint32_t>((id - 1) % chunks_) : sums_[id - first_sum_].chunk;
}

bool Contributions::Holds(Id id, size_t owner) const {
  if (IsAtom(id)) return OwnerOf(id) == owner;
  return (Words(id)[owner / 64] >> (owner % 64)) & 1;
}

bool Contributions::Complete(Id id) const {
  return active_.size() == (IsAtom(id) ? 1 : sums_[id - first_sum_].owners);
}

std::string Contributions::Describe(Id id) const {
  if (id == kUndefined) return "nothing";
  if (IsAtom(id))
    return absl::StrCat("worker ", active_[OwnerOf(id)], "'s data chunk ", ChunkOf(id));
  std::vector<int> owners;
  for (size_t owner = 0; owner < active_.size(); ++owner) {
    if (Holds(id, owner)) owners.push_back(active_[owner]);
  }
  return absl::StrCat("the sum of data chunk ", ChunkOf(id), " of workers ", FormatRanks(owners));
}

absl::StatusOr<Contributions::Id> Contributions::Add(Id a, Id b) {
  // Which side is added to which does not matter for who is in the sum, and a table of known sums
  // makes the proof of a program with many equal steps quick.
  if (a > b) std::swap(a, b);
  const uint64_t sides = uint64_t{a} << 32 | b;
  const auto known = by_sides_.find(sides);
  if (known != by_sides_.end()) return known->second;

  if (ChunkOf(a) != ChunkOf(b)) {
    return absl::FailedPreconditionError(
        absl::StrCat("wrong place: adds ", Describe(a), " to ", Describe(b)));
  }
  // An atom as a left side is looked at as a set with one owner.
  std::vector<uint64_t> set(words_per_sum_, 0);
  for (Id side : {a, b}) {
    for (size_t word = 0; word < words_per_sum_; ++word) {
      uint64_t bits = 0;
      if (!IsAtom(side)) {
        bits = Words(side)[word];
      } else if (OwnerOf(side) / 64 == word) {
        bits = uint64_t{1} << (OwnerOf(side) % 64);
      }
      if (const uint64_t both = set[word] & bits; both != 0) {
        const size_t owner = word * 64 + static_cast<size_t>(__builtin_ctzll(both));
        return absl::FailedPreconditionError(
            absl::StrCat("counted twice: adds ", Describe(a), " to ", Describe(b),
                         ", so the contribution of worker ", active_[owner], " to data chunk ",
                         ChunkOf(a), " would be in the result twice"));
      }
      set[word] |= bits;
    }
  }
  if ((words_.size() + set.size()) * sizeof(uint64_t) > limits::kProofBytesMax) {
    return absl::ResourceExhaustedError(
        "the program makes more partial sums than a proof can keep in memory");
  }
  uint32_t owners = 0;
  for (uint64_t word : set) owners += static_cast<uint32_t>(__builtin_popcountll(word));
  const Id id = first_sum_ + static_cast<Id>(sums_.size());
  sums_.push_back({ChunkOf(a), owners});
  words_.insert(words_.end(), set.begin(), set.end());
  by_sides_.emplace(sides, id);
  return id;
}

}  // namespace syncopate
