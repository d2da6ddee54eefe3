// How the workers of one host find each other: each listens on a socket in the abstract namespace,
// named after the user, the job and its rank, and every pair exchanges file descriptors of its
// shared memory once. Abstract names vanish with their process, so nothing is left behind. A peer
// of another user is turned away.
#ifndef SYNCOPATE_TRANSPORT_SHM_INTRODUCTION_H_
#define SYNCOPATE_TRANSPORT_SHM_INTRODUCTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "transport/shm/memory_file.h"

namespace syncopate::transport::shm {

struct Introduction {
  int pid = 0;
  uint64_t arena_bytes = 0;
  UniqueFd control;
  UniqueFd arena;
  UniqueFd bell;     // eventfd
  UniqueFd process;  // pidfd
  std::string terms;
};

struct IntroductionSpec {
  std::string job;
  int rank = 0;
  int size = 1;
  int control_fd = -1;
  int arena_fd = -1;
  int bell_fd = -1;
  uint64_t arena_bytes = 0;
  std::string terms = {};  // for the others; at most kTermsBytesMax
};

// What every other worker brought, by rank (this worker's own place stays empty). Returns when all
// have come, or at `deadline_ns` with an error that names the missing ones.
absl::StatusOr<std::vector<Introduction>> MeetPeers(const IntroductionSpec& spec,
                                                    const Clock& clock, int64_t deadline_ns);

}  // namespace syncopate::transport::shm

#endif  // SYNCOPATE_TRANSPORT_SHM_INTRODUCTION_H_
