// The symbolic values of a proof: which contributions a chunk holds, and in which order they were
// added.
//
// A value is a number. The *atom* (owner, chunk) is what an active worker's data chunk holds before
// the program runs. A *sum* of two values is made once and found again, whichever side is named
// first: so two chunks hold the same number exactly if their contributions were added in the same
// order, up to swapping the sides of an addition, which does not change the bits of a result. Each
// sum knows the set of workers in it. Not thread-safe.
#ifndef SYNCOPATE_MODEL_PROGRAM_CONTRIBUTIONS_H_
#define SYNCOPATE_MODEL_PROGRAM_CONTRIBUTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

namespace syncopate {

class Contributions {
 public:
  using Id = uint32_t;
  static constexpr Id kUndefined = 0;  // scratch before it was written

  // Owners are indices into `active`, which must outlive this. At most limits::kProofCellsMax
  // atoms.
  Contributions(const std::vector<int>& active, uint32_t chunks);

  Id Atom(size_t owner, uint32_t chunk) const {
    return static_cast<Id>(1 + owner * chunks_ + chunk);
  }

  // The sum of two defined values. A fault if one contribution would be in it twice, or if the
  // values belong to different chunks.
  absl::StatusOr<Id> Add(Id a, Id b);

  uint32_t ChunkOf(Id id) const;
  bool Holds(Id id, size_t owner) const;
  // Whether all owners are in it.
  bool Complete(Id id) const;
  // For people: "worker 3's data chunk 2", "the sum of data chunk 2 of workers 0-2".
  std::string Describe(Id id) const;

 private:
  struct Sum {
    uint32_t chunk;
    uint32_t owners;
  };

  bool IsAtom(Id id) const { return id < first_sum_; }
  size_t OwnerOf(Id atom) const { return (atom - 1) / chunks_; }
  uint64_t* Words(Id sum) { return &words_[(sum - first_sum_) * words_per_sum_]; }
  const uint64_t* Words(Id sum) const { return &words_[(sum - first_sum_) * words_per_sum_]; }

  const std::vector<int>& active_;
  const size_t chunks_;
  const Id first_sum_;
  const size_t words_per_sum_;
  std::vector<Sum> sums_;
  std::vector<uint64_t> words_;                 // a set of owners per sum
  absl::flat_hash_map<uint64_t, Id> by_sides_;  // (smaller id, larger id) -> sum
};

}  // namespace syncopate

#endif  // SYNCOPATE_MODEL_PROGRAM_CONTRIBUTIONS_H_
