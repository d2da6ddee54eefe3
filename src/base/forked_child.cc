#include "base/forked_child.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace syncopate {
namespace {

// One bit for each descriptor that children do not keep. The child's handler may run while another
// thread of the parent was in the middle of anything, so there is no lock and no allocation.
// Descriptors above this are kept in children.
constexpr size_t kDescriptorsMax = size_t{1} << 20;
constexpr size_t kBits = 64;
std::atomic<uint64_t> private_fds[kDescriptorsMax / kBits];
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// How many forks this process is away from the first.
std::atomic<int> generation{0};

// Only what is async-signal-safe may be called here.
void EnterChild() {
  const int error = errno;
  generation.fetch_add(1);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (size_t word = 0; word < kDescriptorsMax / kBits; ++word) {
    uint64_t bits = private_fds[word].exchange(0);
    for (; bits != 0; bits &= bits - 1) {
      const int fd = static_cast<int>(word * kBits) + std::countr_zero(bits);
      if (nothing < 0 || dup3(nothing, fd, O_CLOEXEC) < 0) close(fd);
    }
  }
  if (nothing >= 0) close(nothing);
  errno = error;
}

void WatchForks() {
  static const int watched = pthread_atfork(nullptr, nullptr, EnterChild);
  (void)watched;
}

}  // namespace

ForkMark::ForkMark() {
  WatchForks();
  generation_ = generation.load();
}

bool ForkMark::InChild() const { return generation.load(std::memory_order_relaxed) != generation_; }

PrivateFd::PrivateFd(UniqueFd fd) : fd_(std::move(fd)) {
  WatchForks();
  const size_t number = static_cast<size_t>(fd_.get());
  if (!fd_.ok() || number >= kDescriptorsMax) return;
  private_fds[number / kBits].fetch_or(uint64_t{1} << (number % kBits));
}

void PrivateFd::Reset() {
  const size_t number = static_cast<size_t>(fd_.get());
  // The mark goes first: once the descriptor is closed, another thread may get its number.
  if (fd_.ok() && number < kDescriptorsMax) {
    private_fds[number / kBits].fetch_and(~(uint64_t{1} << (number % kBits)));
  }
  fd_.Reset();
}

}  // namespace syncopate
