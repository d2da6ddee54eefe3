// How the workers of one host find each other: each listens on a socket in the abstract namespace,
// named after the user, the job and its rank, and every pair exchanges a text, file descriptors of
// its shared memory and one of its process once. Abstract names vanish with their process, so
// nothing is left behind. A peer of another user is turned away.
#ifndef SYNCOPATE_TRANSPORT_SHM_INTRODUCTION_H_
#define SYNCOPATE_TRANSPORT_SHM_INTRODUCTION_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "transport/shm/memory_file.h"

namespace syncopate::transport::shm {

struct Introduction {
  int pid = 0;  // 0 if it is in a PID namespace that this process cannot see
  uint64_t arena_bytes = 0;
  UniqueFd control;
  UniqueFd arena;
  UniqueFd bell;  // eventfd
  // A pidfd that the peer made of itself: it means that process for ever, also across PID
  // namespaces. Not ok() if the peer could not make one.
  UniqueFd process;
  std::string text;
};

// A worker's text for the others, in bytes.
inline constexpr size_t kTextBytesMax = 16 << 10;

struct IntroductionSpec {
  std::string job;
  int rank = 0;
  int size = 1;
  std::vector<int> names = {};  // see ShmOptions
  // All three, or none: then only texts are exchanged, and the rest of an Introduction is empty.
  int control_fd = -1;
  int arena_fd = -1;
  int bell_fd = -1;
  uint64_t arena_bytes = 0;
  std::string text = {};  // for the others; at most kTextBytesMax

  int Name(int of) const { return names.empty() ? of : names[static_cast<size_t>(of)]; }
};

// What every other worker brought, by rank (this worker's own place stays empty). Returns when all
// have come, or at `deadline_ns` with an error that names the missing ones.
absl::StatusOr<std::vector<Introduction>> MeetPeers(const IntroductionSpec& spec,
                                                    const Clock& clock, int64_t deadline_ns);

}  // namespace syncopate::transport::shm

#endif  // SYNCOPATE_TRANSPORT_SHM_INTRODUCTION_H_
