#include "transport/shm/arena.h"

#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/parse.h"
#include "base/status.h"

namespace syncopate::transport {

Arena::Arena(MemoryFile memory) : memory_(std::move(memory)) { free_[0] = memory_.bytes(); }

int Arena::ClassOf(size_t bytes) { return std::bit_width(std::max(bytes, kAlignment) - 1); }

size_t Arena::SizeOf(size_t bytes) {
  if (bytes <= kCachedBytesMax) return size_t{1} << ClassOf(bytes);
  return (bytes + kPage - 1) / kPage * kPage;
}

Arena::Run Arena::FindRun(size_t bytes) {
  return std::find_if(free_.begin(), free_.end(),
                      [&](const auto& entry) { return entry.second >= bytes; });
}

bool Arena::TakePages(uint64_t end) {
  if (end <= populated_) return true;
  const uint64_t upto = std::min<uint64_t>((end + kPage - 1) / kPage * kPage, memory_.bytes());
  if (posix_fallocate(memory_.fd(), static_cast<off_t>(populated_),
                      static_cast<off_t>(upto - populated_)) != 0) {
    return false;
  }
  populated_ = upto;
  return true;
}

bool Arena::Populate(size_t bytes) {
  if (bytes <= kCachedBytesMax || bytes > memory_.bytes()) return true;
  const size_t size = SizeOf(bytes);
  MutexLock lock(&mutex_);
  const Run run = FindRun(size);
  if (run == free_.end()) return true;
  const uint64_t end = run->first + size;
  return !TakePages(std::min(end, populated_ + kPieceBytes)) || end <= populated_;
}

absl::StatusOr<uint64_t> Arena::Cut(size_t bytes) {
  const Run run = FindRun(bytes);
  if (run == free_.end()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "no ", FormatBytes(bytes), " left in the shared arena of ", FormatBytes(memory_.bytes()),
        "; free buffers or set SYNCOPATE_ARENA_BYTES higher"));
  }
  const auto [offset, size] = *run;
  const uint64_t end = offset + bytes;
  // Memory that the system cannot give must be an error now, not a bus error at the first touch.
  if (!TakePages(end)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the system has no ", FormatBytes(bytes), " of shared memory left"));
  }
  free_.erase(run);
  if (size > bytes) free_[end] = size - bytes;
  return offset;
}

absl::StatusOr<std::byte*> Arena::Allocate(size_t bytes) {
  if (bytes > memory_.bytes()) bytes = memory_.bytes() + 1;  // refused below, without overflow
  const bool cached = bytes <= kCachedBytesMax;
  const size_t size = SizeOf(bytes);
  // Other threads that need some bytes do not wait until all pages of a large block are taken.
  while (!Populate(bytes)) {
  }
  MutexLock lock(&mutex_);
  uint64_t offset = 0;
  if (cached && !cached_[ClassOf(bytes)].empty()) {
    offset = cached_[ClassOf(bytes)].top();
    cached_[ClassOf(bytes)].pop();
  } else {
    SYNCOPATE_ASSIGN_OR_RETURN(offset, Cut(size));
  }
  used_[offset] = size;
  return memory_.data() + offset;
}

void Arena::Free(std::byte* memory) {
  MutexLock lock(&mutex_);
  const auto block = used_.find(static_cast<uint64_t>(memory - memory_.data()));
  if (block == used_.end()) return;
  auto [offset, bytes] = *block;
  used_.erase(block);
  if (bytes <= kCachedBytesMax) {
    cached_[ClassOf(bytes)].push(offset);
    return;
  }
  auto after = free_.lower_bound(offset);
  if (after != free_.end() && after->first == offset + bytes) {
    bytes += after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  free_[offset] = bytes;
}

}  // namespace syncopate::transport
