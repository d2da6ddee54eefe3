// The transport for workers of one host: shared memory, one process a worker (several in one
// process work too).
//
// Peers read and write each other's arenas directly; messages are flags. docs/shm.md explains the
// protocol and why a worker may die at any point of it without harm to the others.
#ifndef SYNCOPATE_TRANSPORT_SHM_SHM_TRANSPORT_H_
#define SYNCOPATE_TRANSPORT_SHM_SHM_TRANSPORT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "transport/transport.h"

namespace syncopate::transport {

// Called before a worker ends the process of another that is stuck, from any thread; `cause` is what
// was seen of it, as in "no heartbeat".
using OnEnding = std::function<void(int pid, const std::string& cause)>;

struct ShmOptions {
  std::string job;  // the same on all workers, different from other jobs of this user on this host
  int rank = 0;
  int size = 1;
  uint64_t arena_bytes = 0;
  int cores = 1;                              // that the workers share
  std::string terms = {};                     // transport/terms.h
  bool bell = false;                          // Transport::bell() is used
  int64_t start_timeout_ns = 60'000'000'000;  // all workers must have come by then
  int64_t beat_ns = 200'000'000;              // the time between heartbeats
  int64_t stuck_ns = 3'500'000'000;           // a worker without a heartbeat for this long is stuck
  OnEnding on_ending = nullptr;               // may be empty
};

// Thread safety: see Transport. The clock must outlive the transport.
absl::StatusOr<std::unique_ptr<Transport>> StartShmTransport(const ShmOptions& options,
                                                             const Clock& clock);

}  // namespace syncopate::transport

#endif  // SYNCOPATE_TRANSPORT_SHM_SHM_TRANSPORT_H_
