// The shared memory of all workers on this host, as one of them sees it, and the sentry that
// watches over them.
#ifndef SYNCOPATE_TRANSPORT_SHM_PEERS_H_
#define SYNCOPATE_TRANSPORT_SHM_PEERS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "transport/shm/arena.h"
#include "transport/shm/board.h"
#include "transport/shm/control.h"
#include "transport/shm/shm_transport.h"

namespace syncopate::transport::shm {

// Thread-safe.
class Peers {
 public:
  static absl::StatusOr<std::unique_ptr<Peers>> Meet(const ShmOptions& options, const Clock& clock);
  // Leaves the job in good order.
  ~Peers();

  int rank() const { return options_.rank; }
  int size() const { return options_.size; }
  const ShmOptions& options() const { return options_; }
  Arena& arena() { return arena_; }
  Control& control(int rank) { return *controls_[static_cast<size_t>(rank)]; }
  Control& own() { return control(options_.rank); }
  std::byte* arena_base(int rank) const { return arenas_[static_cast<size_t>(rank)]; }
  uint64_t arena_bytes(int rank) const { return arena_bytes_[static_cast<size_t>(rank)]; }
  Board& board() { return control(0).board; }

  // The descriptor of Transport::bell(), or -1.
  int bell() const { return options_.bell ? bells_[static_cast<size_t>(options_.rank)].get() : -1; }

  // Wakes `rank` if one of its threads sleeps. What was written before is visible to it when it
  // wakes or next looks.
  void Ring(int rank);
  void RingAll();

  // See Transport::Expel.
  void Expel(int rank, Cause cause);

 private:
  Peers(const ShmOptions& options, const Clock& clock, MemoryFile control, MemoryFile arena);
  absl::Status Connect();
  void Watch();  // the sentry thread
  // Ends the process of a lost worker and waits until it is gone: from then on it writes nothing.
  void Fence(int rank, Cause cause);

  const ShmOptions options_;
  const Clock& clock_;
  MemoryFile control_memory_;
  Arena arena_;
  std::vector<MemoryFile> mapped_;  // peers' memory
  // Pidfds by rank; invalid for this process and where there is none.
  std::vector<UniqueFd> processes_;
  std::vector<int> pids_;
  std::vector<UniqueFd> bells_;  // eventfds by rank
  std::vector<Control*> controls_;
  std::vector<std::byte*> arenas_;
  std::vector<uint64_t> arena_bytes_;
  UniqueFd stop_;  // eventfd: the sentry ends
  std::thread sentry_;
};

}  // namespace syncopate::transport::shm

#endif  // SYNCOPATE_TRANSPORT_SHM_PEERS_H_
