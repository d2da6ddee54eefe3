// Counts the bytes that a gradient is copied on its way, by the stage at which it happens, so that a
// test can say how many copies there are (docs/tour.md). The counters are those of the whole process;
// each copy of a block costs one relaxed addition.
#ifndef SYNCOPATE_BASE_COPY_COUNT_H_
#define SYNCOPATE_BASE_COPY_COUNT_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace syncopate {

enum class CopyStage : uint8_t {
  kPacked,    // from the training framework's memory into the packed layout
  kStaged,    // into memory that peers reach, before a collective
  kFolded,    // written as the result of a reduction
  kCopied,    // moved as they are, inside a collective
  kReceived,  // from a buffer of the network into their place, by this process
};
inline constexpr size_t kCopyStages = 5;

namespace internal {
inline std::array<std::atomic<uint64_t>, kCopyStages> copied_bytes{};
}

inline void CountCopy(CopyStage stage, uint64_t bytes) {
  internal::copied_bytes[static_cast<size_t>(stage)].fetch_add(bytes, std::memory_order_relaxed);
}

// Since the process began.
inline uint64_t CopiedBytes(CopyStage stage) {
  return internal::copied_bytes[static_cast<size_t>(stage)].load(std::memory_order_relaxed);
}

}  // namespace syncopate

#endif  // SYNCOPATE_BASE_COPY_COUNT_H_
