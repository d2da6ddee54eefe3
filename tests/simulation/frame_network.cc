#include "simulation/frame_network.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "transport/net/peer_wire.h"

namespace syncopate::simulation {

using transport::net::FrameHeader;
using transport::net::OutgoingFrame;
using transport::net::PeerWire;
using transport::net::WireHandler;

class FrameWire final : public PeerWire {
 public:
  FrameWire(FrameNetwork& network, int rank, WireHandler& handler)
      : PeerWire(handler),
        network_(network),
        rank_(rank),
        peers_(FrameNetwork::Index(network.options_.size)) {
    for (int peer = 0; peer < size(); ++peer) connection(peer).open = peer != rank;
  }
  ~FrameWire() override { network_.wires_[FrameNetwork::Index(rank_)] = nullptr; }

  void Send(int peer, const FrameHeader& header, const std::byte* payload,
            uint64_t cookie) override {
    Connection& to = connection(peer);
    if (!to.open || to.closing) {
      if (cookie != 0) handler_.Sent(cookie);
      return;
    }
    to.queue.Add(header, payload, cookie);
    network_.PlanPulls(rank_, peer);
  }

  bool Progress() override {
    bool moved = false;
    const int first = static_cast<int>(network_.random_.Below(peers_.size()));
    for (int i = 0; i < size(); ++i) {
      const int peer = (first + i) % size();
      for (auto& lane : network_.lanes(peer, rank_)) moved |= Take(*lane);
    }
    for (const uint64_t cookie : std::exchange(gone_, {})) {
      handler_.Sent(cookie);
      moved = true;
    }
    return TellEnded() || moved;
  }

  bool Arm() override { return true; }
  int fd() const override { return -1; }

  void Detach(uint64_t cookie) override {
    for (int peer = 0; peer < size(); ++peer) {
      connection(peer).queue.Remove(cookie);
      for (auto& lane : network_.lanes(rank_, peer)) {
        if (!lane->sending.has_value() || lane->sending->cookie != cookie) continue;
        if (lane->begun) {
          lane->sending->Keep();
        } else {
          lane->sending.reset();
        }
      }
    }
    std::erase(gone_, cookie);
  }

  void Abandon(const std::byte* memory, size_t bytes) override {
    for (int peer = 0; peer < size(); ++peer) {
      for (auto& lane : network_.lanes(peer, rank_)) {
        if (lane->place >= memory && lane->place < memory + bytes) lane->place = nullptr;
      }
    }
  }

  bool Flushed(int peer) const override {
    const auto& lanes = network_.lanes(rank_, peer);
    return peers_[FrameNetwork::Index(peer)].queue.empty() &&
           std::none_of(lanes.begin(), lanes.end(),
                        [](const auto& lane) { return lane->sending.has_value(); });
  }

 private:
  friend class FrameNetwork;

  int size() const { return network_.options_.size; }
  Connection& connection(int peer) override { return peers_[FrameNetwork::Index(peer)]; }

  // Reads some of what has landed. True if there was anything.
  bool Take(FrameNetwork::Lane& lane) {
    bool moved = false;
    uint64_t budget = 1 + network_.random_.Below(16);
    while (connection(lane.from).open && budget-- > 0) {
      if (std::exchange(lane.complete, false)) {
        moved = true;
        if (std::exchange(lane.place, nullptr) != nullptr) handler_.Arrived(lane.from, lane.header);
        continue;
      }
      if (lane.landed.empty()) return moved;
      FrameNetwork::Piece piece = std::move(lane.landed.front());
      lane.landed.pop_front();
      moved = true;
      if (piece.end_of_stream) {
        lane.ended = true;
        const auto& all = network_.lanes(lane.from, rank_);
        if (std::all_of(all.begin(), all.end(), [](const auto& other) { return other->ended; })) {
          End(lane.from, absl::OkStatus());
        }
        return true;
      }
      if (piece.header.has_value()) {
        lane.header = *piece.header;
        if (lane.header.payload_bytes == 0) {
          handler_.Arrived(lane.from, lane.header);
          continue;
        }
        lane.place = handler_.Place(lane.from, lane.header);
        lane.missing = lane.header.payload_bytes;
      }
      FrameNetwork::Write(lane, piece.bytes);
    }
    return moved;
  }

  void End(int peer, absl::Status why) override {
    Connection& ended = connection(peer);
    if (!ended.open) return;
    ended.open = false;
    NoteEnd(peer, std::move(why));
    std::vector<uint64_t> cookies = ended.queue.Clear();
    for (auto& lane : network_.lanes(rank_, peer)) {
      if (lane->sending.has_value() && lane->sending->cookie != 0) {
        cookies.push_back(lane->sending->cookie);
      }
      lane->sending.reset();
      network_.EndStream(*lane);
    }
    for (auto& lane : network_.lanes(peer, rank_)) {
      lane->landed.clear();
      lane->complete = false;
      lane->place = nullptr;
      lane->missing = 0;
    }
    for (const uint64_t cookie : cookies) handler_.Sent(cookie);
  }

  void SayFarewell(int peer) override {
    for (auto& lane : network_.lanes(rank_, peer)) network_.EndStream(*lane);
  }

  FrameNetwork& network_;
  const int rank_;
  std::vector<Connection> peers_;
  std::vector<uint64_t> gone_;  // frames that have left, of which the handler is not told yet
};

FrameNetwork::FrameNetwork(SimulatedTime& time, const NetworkOptions& options,
                           std::function<void(int rank)> wake)
    : SimulatedNetwork(time, options, std::move(wake)), wires_(Index(options.size)) {
  lanes_.resize(Index(options.size));
  for (int from = 0; from < options.size; ++from) {
    lanes_[Index(from)].resize(Index(options.size));
    for (int to = 0; to < options.size; ++to) {
      for (int i = 0; from != to && i < options.lanes; ++i) {
        auto lane = std::make_unique<Lane>();
        lane->from = from;
        lane->to = to;
        lane->first = i == 0;
        lanes(from, to).push_back(std::move(lane));
      }
    }
  }
}

FrameNetwork::~FrameNetwork() = default;

std::unique_ptr<transport::net::Wire> FrameNetwork::Connect(int rank, WireHandler& handler) {
  auto wire = std::make_unique<FrameWire>(*this, rank, handler);
  wires_[Index(rank)] = wire.get();
  return wire;
}

void FrameNetwork::Turned(int rank) {
  const FrameWire* wire = wires_[Index(rank)];
  bool left_over = !wire->gone_.empty();
  for (int from = 0; from < options_.size; ++from) {
    for (const auto& lane : lanes(from, rank)) {
      left_over = left_over || lane->complete || !lane->landed.empty();
    }
  }
  if (left_over) wake_(rank);
}

void FrameNetwork::PlanPulls(int from, int to) {
  for (auto& lane : lanes(from, to)) PlanPull(*lane);
}

void FrameNetwork::PlanPull(Lane& lane) {
  if (lane.pull_planned || IsDead(lane.from)) return;
  lane.pull_planned = true;
  time_.After(random_.Between(0, 20 * kUs), [this, &lane] { Pull(lane); });
}

void FrameNetwork::Pull(Lane& lane) {
  lane.pull_planned = false;
  FrameWire* wire = wires_[Index(lane.from)];
  if (IsDead(lane.from) || wire == nullptr || lane.flying_bytes >= options_.window_bytes) return;
  auto& connection = wire->connection(lane.to);
  if (!connection.open || lane.closed) return;
  if (!lane.sending.has_value()) {
    if (lane.first) lane.sending = connection.queue.TakeControl();
    if (!lane.sending.has_value()) lane.sending = connection.queue.TakeData();
    lane.begun = false;
    lane.left = 0;
  }
  if (!lane.sending.has_value()) {
    if (connection.closing) wire->FinishClosing(lane.to);
    return;
  }
  OutgoingFrame& frame = *lane.sending;
  Piece piece;
  if (!std::exchange(lane.begun, true)) {
    piece.header = *transport::net::DecodeFrameHeader(frame.header);
  }
  const size_t bytes = std::min(PieceBytes(), frame.payload_bytes - lane.left);
  piece.bytes.assign(static_cast<const char*>(frame.bytes()) + lane.left, bytes);
  lane.left += bytes;
  Fly(lane, std::move(piece));
  if (lane.left == frame.payload_bytes) {
    if (frame.cookie != 0) {
      wire->gone_.push_back(frame.cookie);
      wake_(lane.from);
    }
    lane.sending.reset();
  }
  PlanPull(lane);
}

void FrameNetwork::Fly(Lane& lane, Piece piece) {
  lane.last_ns = std::max(lane.last_ns, time_.now_ns() + Delay());
  piece.at_ns = lane.last_ns;
  lane.flying_bytes += piece.bytes.size();
  lane.flying.push_back(std::move(piece));
  PlanLand(lane);
}

void FrameNetwork::EndStream(Lane& lane) {
  if (std::exchange(lane.closed, true)) return;
  Piece piece;
  piece.end_of_stream = true;
  Fly(lane, std::move(piece));
}

void FrameNetwork::PlanLand(Lane& lane) {
  if (lane.land_planned || lane.flying.empty() || IsCut(lane.from, lane.to)) return;
  lane.land_planned = true;
  time_.At(lane.flying.front().at_ns, [this, &lane] { Land(lane); });
}

void FrameNetwork::Land(Lane& lane) {
  lane.land_planned = false;
  if (IsCut(lane.from, lane.to) || lane.flying.empty()) return;
  Piece piece = std::move(lane.flying.front());
  lane.flying.pop_front();
  lane.flying_bytes -= piece.bytes.size();
  PlanLand(lane);
  PlanPull(lane);
  FrameWire* wire = wires_[Index(lane.to)];
  if (IsDead(lane.to) || wire == nullptr || !wire->connection(lane.from).open) return;
  const bool within = !piece.end_of_stream && !piece.header.has_value();
  if (within && lane.landed.empty() && lane.missing > 0 && random_.Below(2) == 0) {
    Write(lane, piece.bytes);
  } else {
    lane.landed.push_back(std::move(piece));
  }
  wake_(lane.to);
}

void FrameNetwork::Write(Lane& lane, const std::string& bytes) {
  if (lane.place != nullptr) {
    std::memcpy(lane.place + (lane.header.payload_bytes - lane.missing), bytes.data(),
                bytes.size());
  }
  lane.missing -= bytes.size();
  lane.complete = lane.missing == 0;
}

void FrameNetwork::Healed(int from, int to) {
  for (auto& lane : lanes(from, to)) PlanLand(*lane);
}

void FrameNetwork::Died(int rank) {
  for (int peer = 0; peer < options_.size; ++peer) {
    if (peer == rank) continue;
    for (auto& lane : lanes(rank, peer)) {
      // What was in flight may have been lost with it, up to any point.
      if (random_.Below(2) == 0 && !lane->closed) {
        while (lane->flying.size() > 1 && random_.Below(4) != 0) {
          lane->flying_bytes -= lane->flying.back().bytes.size();
          lane->flying.pop_back();
        }
      }
      EndStream(*lane);
    }
  }
}

}  // namespace syncopate::simulation
