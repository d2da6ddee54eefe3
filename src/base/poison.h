// Memory that nobody may touch for now, such as a block that a pool keeps for its next user. The
// address sanitizer reports whoever does; without it these calls do nothing.
#ifndef SYNCOPATE_BASE_POISON_H_
#define SYNCOPATE_BASE_POISON_H_

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#endif
#endif
#ifndef ASAN_POISON_MEMORY_REGION
#define ASAN_POISON_MEMORY_REGION(memory, bytes) ((void)(memory), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(memory, bytes) ((void)(memory), (void)(bytes))
#endif

namespace syncopate {

// `memory` is aligned to 8 bytes.
inline void Poison(const void* memory, size_t bytes) { ASAN_POISON_MEMORY_REGION(memory, bytes); }
inline void Unpoison(const void* memory, size_t bytes) {
  ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
}

}  // namespace syncopate

#endif  // SYNCOPATE_BASE_POISON_H_
