// Blocks of the transport's memory for operations, kept for the next one when they are small: an
// operation of a few kilobytes must not pay for an allocator. The lowest is taken first: blocks that only a
// moment of many operations needed are left alone afterwards, and do not come to be mapped by all workers.
#ifndef SYNCOPATE_ENGINE_SCRATCH_POOL_H_
#define SYNCOPATE_ENGINE_SCRATCH_POOL_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "base/poison.h"
#include "transport/transport.h"

namespace syncopate::engine {

// What it keeps must not be touched (base/poison.h). Not thread-safe. The transport must outlive it.
class ScratchPool {
 public:
  explicit ScratchPool(transport::Transport& transport) : transport_(transport) {}
  ~ScratchPool() {
    for (size_t size_class = 0; size_class < kept_.size(); ++size_class) {
      for (std::byte* block : kept_[size_class]) {
        Unpoison(block, size_t{1} << size_class);
        transport_.Free(block);
      }
    }
  }
  ScratchPool(const ScratchPool&) = delete;

  // `bytes` must be above 0.
  absl::StatusOr<std::byte*> Take(size_t bytes) {
    if (bytes > kKeptBytesMax) return transport_.Allocate(bytes);
    std::vector<std::byte*>& blocks = kept_[ClassOf(bytes)];
    if (blocks.empty()) return transport_.Allocate(size_t{1} << ClassOf(bytes));
    std::pop_heap(blocks.begin(), blocks.end(), std::greater<>());
    std::byte* block = blocks.back();
    blocks.pop_back();
    Unpoison(block, size_t{1} << ClassOf(bytes));
    return block;
  }

  // `bytes` must be what the block was taken with.
  void Give(std::byte* block, size_t bytes) {
    if (bytes > kKeptBytesMax || kept_[ClassOf(bytes)].size() >= kKeptBlocksMax) {
      transport_.Free(block);
    } else {
      Poison(block, size_t{1} << ClassOf(bytes));
      std::vector<std::byte*>& blocks = kept_[ClassOf(bytes)];
      blocks.push_back(block);
      std::push_heap(blocks.begin(), blocks.end(), std::greater<>());
    }
  }

 private:
  static constexpr size_t kKeptBytesMax = 64 << 10;
  static constexpr size_t kKeptBlocksMax = 32;  // of one size
  static size_t ClassOf(size_t bytes) {
    return static_cast<size_t>(std::bit_width((bytes - 1) | 63));
  }

  transport::Transport& transport_;
  std::array<std::vector<std::byte*>, 18> kept_;  // by size class: heaps, the lowest first
};

}  // namespace syncopate::engine

#endif  // SYNCOPATE_ENGINE_SCRATCH_POOL_H_
