// A network between workers in virtual time. What one worker sends another travels on several lanes
// in pieces of any size, each lane in order, the lanes independently of each other; all sizes and
// delays come from a seed. Links can be cut in one direction, which holds what travels until they
// are healed, as TCP does; a worker can die, which loses a part of what it had in flight.
//
// Two kinds: `FrameNetwork`, whose wires are simulated, and `SocketNetwork`, which carries the bytes
// of real TcpWires.
#ifndef SYNCOPATE_TESTS_SIMULATION_SIMULATED_NETWORK_H_
#define SYNCOPATE_TESTS_SIMULATION_SIMULATED_NETWORK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/random.h"
#include "simulation/simulated_time.h"
#include "transport/net/wire.h"

namespace syncopate::simulation {

struct NetworkOptions {
  int size = 2;
  int lanes = 1;
  uint64_t seed = 1;
  size_t piece_bytes_max = 1024;   // the largest piece
  size_t window_bytes = 16 << 10;  // in flight on a lane; the sender waits with the rest
  int64_t delay_usual_ns = 100 * kUs;
  int64_t delay_max_ns = 80 * kMs;  // of one piece in a hundred
};

// Not thread-safe. Outlives the wires that it makes.
class SimulatedNetwork {
 public:
  // `wake` says that a worker has something to do.
  SimulatedNetwork(SimulatedTime& time, const NetworkOptions& options,
                   std::function<void(int rank)> wake)
      : options_(options),
        time_(time),
        random_(options.seed),
        wake_(std::move(wake)),
        cut_(Index(options.size), std::vector<bool>(Index(options.size))),
        dead_(Index(options.size)) {}
  virtual ~SimulatedNetwork() = default;

  // The wire of `rank`; each once. The handler must outlive it.
  virtual std::unique_ptr<transport::net::Wire> Connect(int rank,
                                                        transport::net::WireHandler& handler) = 0;
  // `rank` has had a turn, in which it may have sent or made room.
  virtual void Turned(int rank) = 0;

  void Cut(int from, int to, bool cut) {
    cut_[Index(from)][Index(to)] = cut;
    if (!cut) Healed(from, to);
  }
  // Its process ends. It must not have turns any more.
  void Kill(int rank) {
    dead_[Index(rank)] = true;
    Died(rank);
  }

 protected:
  static size_t Index(int rank) { return static_cast<size_t>(rank); }
  bool IsCut(int from, int to) const { return cut_[Index(from)][Index(to)]; }
  bool IsDead(int rank) const { return dead_[Index(rank)]; }
  // How long a piece travels.
  int64_t Delay() {
    if (random_.Below(100) == 0) return random_.Between(0, options_.delay_max_ns);
    if (random_.Below(10) == 0) return random_.Between(0, 20 * options_.delay_usual_ns);
    return random_.Between(0, options_.delay_usual_ns);
  }
  size_t PieceBytes() {
    // Small pieces cut headers, too.
    const size_t most = random_.Below(8) == 0 ? 40 : options_.piece_bytes_max;
    return 1 + random_.Below(most);
  }
  virtual void Healed(int from, int to) = 0;
  virtual void Died(int rank) = 0;

  const NetworkOptions options_;
  SimulatedTime& time_;
  Random random_;
  const std::function<void(int rank)> wake_;

 private:
  std::vector<std::vector<bool>> cut_;
  std::vector<bool> dead_;
};

}  // namespace syncopate::simulation

#endif  // SYNCOPATE_TESTS_SIMULATION_SIMULATED_NETWORK_H_
