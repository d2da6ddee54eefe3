// A network that carries the bytes of real TcpWires. Each lane of each worker is a pair of sockets
// of which the network holds the other end: it reads what the worker writes, holds it for a while and
// writes it to the receiver, in pieces that keep to no frame. Small socket buffers make the workers
// wait for room.
#ifndef SYNCOPATE_TESTS_SIMULATION_SOCKET_NETWORK_H_
#define SYNCOPATE_TESTS_SIMULATION_SOCKET_NETWORK_H_

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "simulation/simulated_network.h"

namespace syncopate::simulation {

class SocketNetwork final : public SimulatedNetwork {
 public:
  SocketNetwork(SimulatedTime& time, const NetworkOptions& options,
                std::function<void(int rank)> wake);

  std::unique_ptr<transport::net::Wire> Connect(int rank,
                                                transport::net::WireHandler& handler) override;
  void Turned(int rank) override;

 private:
  struct Piece {
    int64_t at_ns = 0;
    bool end_of_stream = false;
    std::string bytes;
  };
  // One direction of one lane.
  struct Flow {
    int from = 0;
    int to = 0;
    size_t lane = 0;
    bool pull_planned = false;
    bool land_planned = false;
    bool ended = false;  // nothing more comes from the sender
    std::deque<Piece> flying;
    size_t flying_bytes = 0;
    int64_t last_ns = 0;
  };

  Flow& flow(int from, int to, size_t lane) { return flows_[Index(from)][Index(to)][lane]; }
  // The network's end of the socket that `rank` has for this lane to `peer`.
  UniqueFd& end(int rank, int peer, size_t lane) { return ends_[Index(rank)][Index(peer)][lane]; }
  void PlanPull(Flow& flow);
  void PlanLand(Flow& flow, int64_t at_ns);
  // Takes a piece from the sender's socket.
  void Pull(Flow& flow);
  // Writes to the receiver's socket what has travelled long enough.
  void Land(Flow& flow);
  void Fly(Flow& flow, Piece piece);
  void EndStream(Flow& flow);
  void Healed(int from, int to) override;
  void Died(int rank) override;

  const size_t lanes_;
  std::vector<std::vector<std::vector<UniqueFd>>> ends_;     // by rank, peer and lane
  std::vector<std::vector<std::vector<UniqueFd>>> sockets_;  // the workers' own, until Connect()
  std::vector<std::vector<std::vector<Flow>>> flows_;        // by sender, receiver and lane
  std::vector<UniqueFd> readable_;  // by rank: an epoll of the ends that it may have written to
};

}  // namespace syncopate::simulation

#endif  // SYNCOPATE_TESTS_SIMULATION_SOCKET_NETWORK_H_
