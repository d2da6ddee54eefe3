// The shared memory of all workers on this host, as one of them sees it, and the sentry that
// watches over them.
#ifndef SYNCOPATE_TRANSPORT_SHM_PEERS_H_
#define SYNCOPATE_TRANSPORT_SHM_PEERS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/forked_child.h"
#include "transport/control_thread.h"
#include "transport/sentry_pause.h"
#include "transport/shm/arena.h"
#include "transport/shm/board.h"
#include "transport/shm/control.h"
#include "transport/shm/held_process.h"
#include "transport/shm/shm_transport.h"

namespace syncopate::transport::shm {

// Is in the status of Meet() where a worker cannot end the process of another.
inline constexpr char kCannotFencePayload[] = "syncopate/cannot-fence";

// Thread-safe.
class Peers {
 public:
  static absl::StatusOr<std::unique_ptr<Peers>> Meet(const ShmOptions& options, const Clock& clock);
  // Leaves the job in good order.
  ~Peers();

  int rank() const { return options_.rank; }
  int size() const { return options_.size; }
  // What messages call a worker.
  int Name(int rank) const {
    return options_.names.empty() ? rank : options_.names[static_cast<size_t>(rank)];
  }
  const ShmOptions& options() const { return options_; }
  const Clock& clock() const { return clock_; }
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

  // Tells `to` that there is something in its rings from `from`, or room again in those to it.
  void TellMail(int to, int from);
  // The ranks, a bit for each, that TellMail() was called for since the last call. Empties mail_bell(), unless
  // the control thread listens to it.
  uint64_t TakeMailFrom();
  // Readable when TakeMailFrom() would return something; -1 if the bell serves Transport::bell().
  int mail_bell() const {
    return options_.bell ? -1 : bells_[static_cast<size_t>(options_.rank)].get();
  }

  // See Transport.
  void SetControlWork(std::function<void()> work);
  void WakeControl() { sentry_.Wake(ControlThread::kWork); }
  void WakeControlAt(int64_t when_ns) { sentry_.WorkAt(when_ns); }

  // See Transport::Expel.
  void Expel(int rank, Cause cause);

 private:
  Peers(const ShmOptions& options, const Clock& clock, MemoryFile control, MemoryFile arena);
  absl::Status Connect();
  // Whether every worker can end the process of every other; all workers come to the same answer.
  absl::Status CheckFences(int64_t deadline_ns);
  // A round of the sentry: sends this worker's heartbeat and judges the others'. Returns when the next
  // one is due.
  int64_t Watch();
  // Declares those lost whose processes have ended. True if there were any.
  bool LookForDeaths();
  // A worker has no heartbeat: ends it or waits for it, as the options say.
  void Stuck(int rank);
  // Ends the process of a lost worker, which writes nothing from then on. False if that is refused:
  // then it must not be declared lost.
  bool Fence(int rank, Cause cause, const std::string& how);
  // What holds a worker's process, if anything does.
  HeldProcess LookAt(int rank) const;

  const ShmOptions options_;
  const Clock& clock_;
  MemoryFile control_memory_;
  Arena arena_;
  std::vector<MemoryFile> mapped_;  // peers' memory
  // Pidfds by rank; invalid for workers of this process.
  std::vector<PrivateFd> processes_;
  std::vector<int> pids_;
  std::vector<PrivateFd> bells_;  // eventfds by rank
  std::vector<Control*> controls_;
  std::vector<std::byte*> arenas_;
  std::vector<uint64_t> arena_bytes_;

  // Used by the sentry alone.
  // By rank: it is waited for though it has no heartbeat.
  std::vector<bool> waited_for_;
  std::vector<bool> seen_dead_;  // by rank: its process has ended
  uint64_t known_losses_ = 0;
  SentryPause pause_;
  int64_t last_ns_ = 0;
  // The time from which the others' heartbeats are judged. When this worker itself was held up
  // (stopped, or on a machine that stood still), they get their full time again.
  int64_t since_ns_ = 0;
  std::atomic<bool> has_work_{false};  // the control thread's: it listens to mail_bell()
  ControlThread sentry_;
};

}  // namespace syncopate::transport::shm

#endif  // SYNCOPATE_TRANSPORT_SHM_PEERS_H_
