// Goes through ranges of the packed layout in pieces that are quickly done.
#ifndef SYNCOPATE_SYNC_RANGE_PIECES_H_
#define SYNCOPATE_SYNC_RANGE_PIECES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/tensor_layout.h"

namespace syncopate::sync {

// To copy or to add up so much takes some tens of microseconds.
inline constexpr uint64_t kPieceBytes = 256 << 10;

class RangePieces {
 public:
  explicit RangePieces(std::vector<TensorLayout::Range> ranges) : ranges_(std::move(ranges)) {
    SkipDone();
  }

  bool done() const { return range_ == ranges_.size(); }

  struct Piece {
    size_t range = 0;  // which of the ranges it is a part of
    uint64_t at = 0;   // where it begins in that one, in bytes
    TensorLayout::Range part = {};
  };
  // The next one; not when it is done.
  Piece Next() {
    const TensorLayout::Range& range = ranges_[range_];
    const uint64_t size = SizeOf(range.type);
    const uint64_t elements = std::min(kPieceBytes / size, range.elements - first_);
    Piece piece{.range = range_,
                .at = first_ * size,
                .part = {range.type, range.offset + first_ * size, elements}};
    first_ += elements;
    SkipDone();
    return piece;
  }

 private:
  void SkipDone() {
    while (range_ < ranges_.size() && first_ == ranges_[range_].elements) {
      ++range_;
      first_ = 0;
    }
  }

  std::vector<TensorLayout::Range> ranges_;
  size_t range_ = 0;
  uint64_t first_ = 0;  // the first element of it that is not done
};

}  // namespace syncopate::sync

#endif  // SYNCOPATE_SYNC_RANGE_PIECES_H_
