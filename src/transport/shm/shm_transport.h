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
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "transport/transport.h"

namespace syncopate::transport {

// Called before a worker ends the process of another that is stuck, from any thread; `cause` is what
// was seen of it, as in "no heartbeat".
using OnEnding = std::function<void(int pid, const std::string& cause)>;

// What happens to a worker of this host that has no heartbeat. It cannot be declared lost without
// ending its process, since it could wake up and write into memory that the others go on with.
enum class WhenStuck {
  kLook,  // it is ended, unless a debugger or a freezer holds it: such a worker is waited for
  kEnd,   // it is ended
  kWait,  // it is waited for
};

struct ShmOptions {
  std::string job;  // the same on all workers, different from other jobs of this user on this host
  int rank = 0;
  int size = 1;
  std::vector<int> names = {};  // by rank, what messages call a worker; empty: by its rank
  uint64_t arena_bytes = 0;
  int cores = 1;                              // that the workers share
  std::string terms = {};                     // transport/terms.h
  bool bell = false;                          // Transport::bell() is used
  int64_t start_timeout_ns = 60'000'000'000;  // all workers must have come by then
  int64_t beat_ns = 200'000'000;              // the time between heartbeats
  int64_t stuck_ns = 3'500'000'000;           // a worker without a heartbeat for this long is stuck
  WhenStuck when_stuck = WhenStuck::kLook;
  OnEnding on_ending = nullptr;  // may be empty
};

// Thread safety: see Transport. The clock must outlive the transport. An error for which
// CannotFence() holds if a worker cannot end the process of another, as from a PID namespace of its
// own: all workers get it, and none may share memory.
absl::StatusOr<std::unique_ptr<Transport>> StartShmTransport(const ShmOptions& options,
                                                             const Clock& clock);
bool CannotFence(const absl::Status& status);

// Every worker of this host tells all others a text of at most 16 KiB, without sharing memory; by
// rank. Returns when all have come, or at `deadline_ns` with an error that names the missing ones.
absl::StatusOr<std::vector<std::string>> ExchangeTexts(const std::string& job, int rank, int size,
                                                       const std::string& text, const Clock& clock,
                                                       int64_t deadline_ns);

}  // namespace syncopate::transport

#endif  // SYNCOPATE_TRANSPORT_SHM_SHM_TRANSPORT_H_
