// Sleeping on a word of shared memory.
#ifndef SYNCOPATE_TRANSPORT_SHM_FUTEX_H_
#define SYNCOPATE_TRANSPORT_SHM_FUTEX_H_

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

namespace syncopate::transport::shm {

// Sleeps while `word` is `expected`, at most until the monotonic time `deadline_ns`. May return
// early.
inline void FutexWait(std::atomic<uint32_t>& word, uint32_t expected, int64_t deadline_ns) {
  const timespec until{.tv_sec = deadline_ns / 1'000'000'000,
                       .tv_nsec = deadline_ns % 1'000'000'000};
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_BITSET, expected, &until,
          nullptr, FUTEX_BITSET_MATCH_ANY);
}

inline void FutexWakeAll(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace syncopate::transport::shm

#endif  // SYNCOPATE_TRANSPORT_SHM_FUTEX_H_
