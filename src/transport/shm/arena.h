// The allocator of a worker's arena: memory that all workers of the job on this host map.
#ifndef SYNCOPATE_TRANSPORT_SHM_ARENA_H_
#define SYNCOPATE_TRANSPORT_SHM_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "transport/shm/memory_file.h"

namespace syncopate::transport {

// Thread-safe. Blocks up to kCachedBytesMax keep their size class when freed, so that the small
// blocks of one operation after the other cost next to nothing; larger ones are cut from the lowest
// free run that fits and merged when freed. Of a size class, too, the lowest is used first: others map what they
// read, so a few blocks that are used again and again take less memory than many that take turns.
class Arena {
 public:
  static constexpr size_t kAlignment = 64;
  static constexpr size_t kPage = 4096;
  static constexpr size_t kCachedBytesMax = 1 << 16;
  static constexpr size_t kPieceBytes = 1 << 20;

  explicit Arena(MemoryFile memory);

  // Takes the pages from the system now: too little memory is an error here, not a crash at the
  // first touch.
  absl::StatusOr<std::byte*> Allocate(size_t bytes);
  // Takes at most kPieceBytes of the pages that Allocate(bytes) would need now; true: it needs no more of them.
  // Taking all at once may last seconds. If the system has none left, Allocate() will say so.
  bool Populate(size_t bytes);
  // `memory` must come from Allocate().
  void Free(std::byte* memory);
  bool Owns(const void* memory, size_t bytes) const {
    const std::byte* begin = static_cast<const std::byte*>(memory);
    return begin >= memory_.data() && bytes <= memory_.bytes() &&
           static_cast<size_t>(begin - memory_.data()) <= memory_.bytes() - bytes;
  }
  const MemoryFile& memory() const { return memory_; }

 private:
  using Run = std::map<uint64_t, uint64_t>::iterator;
  static size_t SizeOf(size_t bytes);                               // of the block
  Run FindRun(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);  // the lowest that fits
  // Takes the pages below this offset.
  bool TakePages(uint64_t end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<uint64_t> Cut(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static int ClassOf(size_t bytes);

  const MemoryFile memory_;
  Mutex mutex_;
  std::map<uint64_t, uint64_t> free_ ABSL_GUARDED_BY(mutex_);             // offset -> bytes
  absl::flat_hash_map<uint64_t, uint64_t> used_ ABSL_GUARDED_BY(mutex_);  // offset -> bytes
  // Free blocks by size class, the lowest first.
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> cached_[17] ABSL_GUARDED_BY(
      mutex_);
  uint64_t populated_ ABSL_GUARDED_BY(mutex_) = 0;  // pages below this offset have been taken
};

}  // namespace syncopate::transport

#endif  // SYNCOPATE_TRANSPORT_SHM_ARENA_H_
