#include "simulation/socket_network.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "transport/net/tcp_wire.h"

namespace syncopate::simulation {
namespace {

// What a socket may hold, about; the kernel adds its own overhead.
constexpr int kSocketBytes = 8 << 10;

void Require(bool condition) {
  if (!condition) std::abort();  // this machine has no room for the simulation
}

}  // namespace

SocketNetwork::SocketNetwork(SimulatedTime& time, const NetworkOptions& options,
                             std::function<void(int rank)> wake)
    : SimulatedNetwork(time, options, std::move(wake)), lanes_(static_cast<size_t>(options.lanes)) {
  const size_t size = Index(options.size);
  for (auto* fds : {&ends_, &sockets_}) {
    fds->resize(size);
    for (auto& peers : *fds) peers.resize(size);
  }
  flows_.resize(size);
  for (int rank = 0; rank < options.size; ++rank) {
    readable_.emplace_back(epoll_create1(EPOLL_CLOEXEC));
    flows_[Index(rank)].resize(size);
    for (int peer = 0; peer < options.size; ++peer) {
      if (peer == rank) continue;
      for (size_t lane = 0; lane < lanes_; ++lane) {
        int pair[2];
        Require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
        for (const int fd : pair) {
          setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSocketBytes, sizeof(kSocketBytes));
        }
        epoll_event event = {};
        event.events = EPOLLIN | EPOLLRDHUP;
        event.data.u32 = static_cast<uint32_t>(Index(peer) * lanes_ + lane);
        Require(epoll_ctl(readable_.back().get(), EPOLL_CTL_ADD, pair[1], &event) == 0);
        sockets_[Index(rank)][Index(peer)].emplace_back(pair[0]);
        ends_[Index(rank)][Index(peer)].emplace_back(pair[1]);
        Flow flow;
        flow.from = rank;
        flow.to = peer;
        flow.lane = lane;
        flows_[Index(rank)][Index(peer)].push_back(std::move(flow));
      }
    }
  }
}

std::unique_ptr<transport::net::Wire> SocketNetwork::Connect(int rank,
                                                             transport::net::WireHandler& handler) {
  auto wire = transport::net::TcpWire::Make(std::move(sockets_[Index(rank)]), handler);
  Require(wire.ok());
  return *std::move(wire);
}

void SocketNetwork::Turned(int rank) {
  epoll_event events[256];
  const int count = epoll_wait(readable_[Index(rank)].get(), events, 256, 0);
  std::vector<size_t> ready;
  for (int i = 0; i < count; ++i) ready.push_back(events[i].data.u32);
  std::sort(ready.begin(), ready.end());
  for (const size_t index : ready) {
    PlanPull(flow(rank, static_cast<int>(index / lanes_), index % lanes_));
  }
  // It may have made room for what waits.
  for (int peer = 0; peer < options_.size; ++peer) {
    if (peer == rank) continue;
    for (Flow& coming : flows_[Index(peer)][Index(rank)]) {
      if (!coming.flying.empty()) PlanLand(coming, coming.flying.front().at_ns);
    }
  }
}

void SocketNetwork::PlanPull(Flow& flow) {
  if (flow.pull_planned || flow.ended) return;
  flow.pull_planned = true;
  time_.After(random_.Between(0, 20 * kUs), [this, &flow] { Pull(flow); });
}

void SocketNetwork::Pull(Flow& flow) {
  flow.pull_planned = false;
  const UniqueFd& fd = end(flow.from, flow.to, flow.lane);
  if (flow.ended || !fd.ok() || flow.flying_bytes >= options_.window_bytes) return;
  std::string bytes(PieceBytes(), '\0');
  const ssize_t got = recv(fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    EndStream(flow);
    return;
  }
  bytes.resize(static_cast<size_t>(got));
  Piece piece;
  piece.bytes = std::move(bytes);
  Fly(flow, std::move(piece));
  PlanPull(flow);
  if (!IsDead(flow.from)) wake_(flow.from);  // there is room again
}

void SocketNetwork::Fly(Flow& flow, Piece piece) {
  flow.last_ns = std::max(flow.last_ns, time_.now_ns() + Delay());
  piece.at_ns = flow.last_ns;
  flow.flying_bytes += piece.bytes.size();
  flow.flying.push_back(std::move(piece));
  PlanLand(flow, flow.flying.front().at_ns);
}

void SocketNetwork::EndStream(Flow& flow) {
  if (std::exchange(flow.ended, true)) return;
  Piece piece;
  piece.end_of_stream = true;
  Fly(flow, std::move(piece));
}

void SocketNetwork::PlanLand(Flow& flow, int64_t at_ns) {
  if (flow.land_planned || IsCut(flow.from, flow.to)) return;
  flow.land_planned = true;
  time_.At(at_ns, [this, &flow] { Land(flow); });
}

void SocketNetwork::Land(Flow& flow) {
  flow.land_planned = false;
  if (IsCut(flow.from, flow.to) || flow.flying.empty()) return;
  Piece& piece = flow.flying.front();
  UniqueFd& fd = end(flow.to, flow.from, flow.lane);
  const bool reachable = !IsDead(flow.to) && fd.ok();
  size_t gone = piece.bytes.size();
  if (reachable && piece.end_of_stream) {
    // A process that ended leaves an end of stream, or a reset where the kernel could not deliver
    // all.
    if (IsDead(flow.from) && random_.Below(2) == 0) {
      fd.Reset();
    } else {
      shutdown(fd.get(), SHUT_WR);
    }
  } else if (reachable) {
    const ssize_t written =
        send(fd.get(), piece.bytes.data(), piece.bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (written < 0 && errno == EAGAIN) return;  // the receiver's next turn makes room
    if (written >= 0) gone = static_cast<size_t>(written);
  }
  flow.flying_bytes -= gone;
  if (gone == piece.bytes.size()) {
    flow.flying.pop_front();
  } else {
    piece.bytes.erase(0, gone);
  }
  if (!flow.flying.empty()) PlanLand(flow, flow.flying.front().at_ns);
  PlanPull(flow);
  if (reachable) wake_(flow.to);
}

void SocketNetwork::Healed(int from, int to) {
  for (Flow& flow : flows_[Index(from)][Index(to)]) {
    if (!flow.flying.empty()) PlanLand(flow, flow.flying.front().at_ns);
  }
}

void SocketNetwork::Died(int rank) {
  for (int peer = 0; peer < options_.size; ++peer) {
    if (peer == rank) continue;
    for (Flow& flow : flows_[Index(rank)][Index(peer)]) {
      if (flow.ended) continue;
      // What its kernel holds may still go out, and what was in flight may have been lost with it,
      // up to any point.
      std::string bytes(64 << 10, '\0');
      for (ssize_t got = 0; (got = recv(end(rank, peer, flow.lane).get(), bytes.data(),
                                        bytes.size(), MSG_DONTWAIT)) > 0;) {
        Piece piece;
        piece.bytes = bytes.substr(0, static_cast<size_t>(got));
        Fly(flow, std::move(piece));
      }
      if (random_.Below(2) == 0) {
        while (flow.flying.size() > 1 && random_.Below(4) != 0) {
          flow.flying_bytes -= flow.flying.back().bytes.size();
          flow.flying.pop_back();
        }
        if (!flow.flying.empty() && flow.flying.size() > 1) {
          std::string& last = flow.flying.back().bytes;
          const size_t kept = random_.Below(last.size() + 1);
          flow.flying_bytes -= last.size() - kept;
          last.resize(kept);
        }
      }
      EndStream(flow);
    }
  }
}

}  // namespace syncopate::simulation
