// The transport for tests: all workers in one process and one thread, every delay and order drawn
// from a seed. The same calls with the same seed do the same thing.
//
// Messages become visible after a random number of ticks; a send is, at random, buffered (done at
// once) or not (done when consumed), so a program that relies on either shows it under some seed.
// There is no direct memory. `syncopate program run` runs programs on it.
#ifndef SYNCOPATE_TRANSPORT_LOOP_LOOP_TRANSPORT_H_
#define SYNCOPATE_TRANSPORT_LOOP_LOOP_TRANSPORT_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "transport/transport.h"

namespace syncopate::transport {

// The wires between the workers. Outlives the transports on it. Not thread-safe.
class LoopNetwork {
 public:
  LoopNetwork(int size, uint64_t seed, int delay_ticks_max = 8);

  // Worker `rank`'s transport; each rank once.
  std::unique_ptr<Transport> Attach(int rank);

  // Time passes: what has travelled long enough becomes visible. A tick is a microsecond of
  // clock().
  void Tick();
  const Clock& clock() const { return clock_; }
  Random& random() { return random_; }

  // What a worker has sent so far.
  struct Traffic {
    uint64_t messages = 0;
    uint64_t bytes = 0;
  };
  const Traffic& SentBy(int rank) const { return sent_[static_cast<size_t>(rank)]; }

  // From now on `rank` is lost, as if its process had ended. All hear of it at once.
  void Kill(int rank);
  // Only `by` hears of it, until the next Kill().
  void KillHeardBy(int rank, int by);

 private:
  friend class LoopSession;
  friend class LoopTransport;

  struct GateRecord {
    std::vector<bool> entered;
    int entries = 0;
    bool broken = false;
    int64_t decided_tick = -1;  // when it passed or broke
  };
  struct Message {
    const std::byte* bytes = nullptr;
    uint64_t size = 0;
    std::vector<std::byte> copy;  // of a buffered message
    bool buffered = false;
    int64_t arrives_tick = 0;
    int64_t consumed_tick = -1;  // when the sender sees that it was consumed; -1 not yet
  };
  // What the members of one operation share.
  struct Operation {
    GateRecord gates[2];
    std::vector<Hello> hellos;
    std::map<std::tuple<int, int, uint32_t>, Message> messages;  // from, to, the sender's step
  };

  struct Letter {
    Mail mail;
    int64_t arrives_tick = 0;
  };
  absl::Status Post(int from, int to, MailKind kind, std::string bytes);
  void TakeMail(int rank, std::vector<Mail>& mail);
  bool IsLost(int rank) const;
  // Whether `rank` has heard that `lost` is lost.
  bool HasHeard(int rank, int lost) const;

  int64_t DelayTicks() { return static_cast<int64_t>(random_.Below(delay_ticks_max_ + 1)); }

  const int size_;
  const uint64_t delay_ticks_max_;
  Random random_;
  ManualClock clock_;
  int64_t now_ = 0;
  std::vector<Traffic> sent_;                                                       // by rank
  std::map<std::pair<uint64_t, uint64_t>, std::shared_ptr<Operation>> operations_;  // key, sequence
  std::map<uint64_t, Session::Failure> failures_;  // by key of the group
  std::vector<Loss> losses_;
  std::vector<size_t> heard_;                                  // by rank, of how many of them
  std::map<std::pair<int, int>, std::deque<Letter>> letters_;  // under way: from, to
  std::vector<size_t> losses_told_;                            // by rank: how many it has taken
};

}  // namespace syncopate::transport

#endif  // SYNCOPATE_TRANSPORT_LOOP_LOOP_TRANSPORT_H_
