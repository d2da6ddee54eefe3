// A network with simulated wires. A payload leaves its sender's memory piece by piece between Send()
// and Sent(), and comes into the receiver's piece by piece between Place() and Arrived(): within
// Progress() or, as by a network card, while the receiver does something else or is stopped. It
// promises what wire.h promises and no more.
#ifndef SYNCOPATE_TESTS_SIMULATION_FRAME_NETWORK_H_
#define SYNCOPATE_TESTS_SIMULATION_FRAME_NETWORK_H_

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulation/simulated_network.h"
#include "transport/net/frame.h"
#include "transport/net/send_queue.h"

namespace syncopate::simulation {

class FrameWire;

class FrameNetwork final : public SimulatedNetwork {
 public:
  FrameNetwork(SimulatedTime& time, const NetworkOptions& options,
               std::function<void(int rank)> wake);
  ~FrameNetwork() override;

  std::unique_ptr<transport::net::Wire> Connect(int rank,
                                                transport::net::WireHandler& handler) override;
  void Turned(int rank) override;

 private:
  friend class FrameWire;

  struct Piece {
    int64_t at_ns = 0;
    bool end_of_stream = false;
    std::optional<transport::net::FrameHeader> header;  // of the frame that begins with it
    std::string bytes;
  };
  // One direction of one connection.
  struct Lane {
    int from = 0;
    int to = 0;
    bool first = false;  // control frames take this one
    // At the sender.
    std::optional<transport::net::OutgoingFrame> sending;
    bool begun = false;  // its header has left
    size_t left = 0;     // bytes of its payload that have left
    bool closed = false;
    // Under way.
    bool pull_planned = false;
    bool land_planned = false;
    std::deque<Piece> flying;
    size_t flying_bytes = 0;
    int64_t last_ns = 0;
    // At the receiver.
    std::deque<Piece> landed;
    transport::net::FrameHeader header;
    std::byte* place = nullptr;  // null: nobody wants it
    size_t missing = 0;
    bool complete = false;  // the payload is there, and the handler does not know
    bool ended = false;
  };

  std::vector<std::unique_ptr<Lane>>& lanes(int from, int to) {
    return lanes_[Index(from)][Index(to)];
  }
  void PlanPulls(int from, int to);
  void PlanPull(Lane& lane);
  void PlanLand(Lane& lane);
  // Takes a piece from the sender.
  void Pull(Lane& lane);
  // Brings to the receiver what has travelled long enough.
  void Land(Lane& lane);
  void Fly(Lane& lane, Piece piece);
  void EndStream(Lane& lane);
  static void Write(Lane& lane, const std::string& bytes);
  void Healed(int from, int to) override;
  void Died(int rank) override;

  std::vector<std::vector<std::vector<std::unique_ptr<Lane>>>> lanes_;  // by sender and receiver
  std::vector<FrameWire*> wires_;
};

}  // namespace syncopate::simulation

#endif  // SYNCOPATE_TESTS_SIMULATION_FRAME_NETWORK_H_
