// Data whose right result is known: every rank fills its buffer with small whole numbers, so that
// sums are exact in every type and in every order, and compares the outcome element by element.
#ifndef SYNCOPATE_PEERS_PATTERN_H_
#define SYNCOPATE_PEERS_PATTERN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tools/bench/protocol.h"

namespace syncopate::peers {

// The root of collectives that have one, and the receiver of send-receive.
inline constexpr int kRoot = 0;
inline int Target(int size) { return size - 1; }
// What a rank brings to a weighted average.
inline double Weight(int rank) { return rank + 1; }

// The numbers repeat with a prime period, so that data that lands in a wrong place (those are
// multiples of powers of two) is wrong data, while filling and comparing cost no more than copying.
class Pattern {
 public:
  // `salt` makes patterns of successive calls different.
  Pattern(const tools::bench::RunRequest& request, int size, int64_t salt);

  // What `rank` brings to the call; what it does not bring is poisoned.
  void Fill(int rank, std::byte* data) const;

  // How many elements of rank's result are not what they should be; a rank that is not active
  // should have what it had. `whole` is the buffer; `block` is rank's own block in it, wherever the
  // contestant put it (reduce-scatter only).
  uint64_t CountWrong(int rank, const std::byte* whole, const std::byte* block) const;

 private:
  std::vector<std::byte> TableOf(int rank) const;
  std::vector<std::byte> TableOfReduction() const;
  void Tile(const std::vector<std::byte>& table, uint64_t first, uint64_t elements,
            std::byte* data) const;
  uint64_t Differences(const std::vector<std::byte>& table, uint64_t first, uint64_t elements,
                       const std::byte* data) const;
  double Value(int rank, uint64_t phase) const;

  const tools::bench::RunRequest request_;
  const int size_;
  const int64_t salt_;
  const size_t width_;       // bytes of an element
  const uint64_t elements_;  // of the whole buffer
  const uint64_t block_;     // elements of a block
};

// A buffer of data that stays as it is under every reduction but `avg` of other data: what timed
// calls run on, so that values neither overflow nor become denormal.
void FillNeutral(const tools::bench::RunRequest& request, std::byte* data);

}  // namespace syncopate::peers

#endif  // SYNCOPATE_PEERS_PATTERN_H_
