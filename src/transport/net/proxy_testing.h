// For tests of wires: somebody in the middle who passes all bytes between two workers on, and then
// does harm to them in units that the receiver could take for whole: records of TLS, or plain frames.
#ifndef SYNCOPATE_TRANSPORT_NET_PROXY_TESTING_H_
#define SYNCOPATE_TRANSPORT_NET_PROXY_TESTING_H_

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/parse.h"
#include "base/unique_fd.h"
#include "transport/net/frame.h"
#include "transport/net/tcp_mesh.h"

namespace syncopate::transport::net {

enum class Harm { kNone, kFlip, kReplay, kDrop, kReorder, kCut, kSwapLanes };

class Proxy {
 public:
  // Whoever connects to address() is connected with the worker that listens at `target`.
  explicit Proxy(const std::string& target) : target_(target), listener_(*ListenTcp("127.0.0.1")) {
    thread_ = std::thread([this] { Run(); });
  }
  ~Proxy() {
    stopping_ = true;
    thread_.join();
  }

  const std::string& address() const { return listener_.address; }
  // From the next unit on, of what goes to the one who connected or to the one who listens. Nothing
  // may be on its way then.
  void Do(Harm harm, bool to_connector) {
    to_connector_ = to_connector;
    harm_ = harm;
  }
  bool done() const { return done_; }  // it has happened

 private:
  // One direction of one connection.
  struct Flow {
    int from = -1;
    int to = -1;
    bool to_connector = false;
    std::string pending;  // not a whole unit yet
    std::string held;     // a unit that the next one overtakes
    bool harmed = false;
    bool ended = false;
  };

  void Run() {
    while (!stopping_) {
      std::vector<pollfd> polls = {{.fd = listener_.fd.get(), .events = POLLIN, .revents = 0}};
      for (const auto& flow : flows_) {
        polls.push_back({.fd = flow->ended ? -1 : flow->from, .events = POLLIN, .revents = 0});
      }
      poll(polls.data(), polls.size(), 20);
      for (size_t i = 1; i < polls.size(); ++i) {
        if (polls[i].revents != 0) Pass(i - 1);
      }
      if (polls[0].revents != 0) Accept();
    }
  }

  void Accept() {
    UniqueFd near(accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const size_t colon = target_.rfind(':');
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(*ParseInt(target_.substr(colon + 1), 1, 65535)));
    inet_pton(AF_INET, target_.substr(0, colon).c_str(), &address.sin_addr);
    UniqueFd far(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(far.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return;
    const timeval patience = {.tv_sec = 5, .tv_usec = 0};
    for (const UniqueFd* fd : {&near, &far}) {
      setsockopt(fd->get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    }
    for (const bool to_connector : {false, true}) {
      auto flow = std::make_unique<Flow>();
      flow->from = to_connector ? far.get() : near.get();
      flow->to = to_connector ? near.get() : far.get();
      flow->to_connector = to_connector;
      flows_.push_back(std::move(flow));
    }
    sockets_.push_back(std::move(near));
    sockets_.push_back(std::move(far));
  }

  void Say(const Flow& flow, const std::string& bytes) {
    for (size_t sent = 0; sent < bytes.size();) {
      const ssize_t more = send(flow.to, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (more <= 0) return;
      sent += static_cast<size_t>(more);
    }
  }

  void Pass(size_t index) {
    Flow& flow = *flows_[index];
    std::string bytes(256 << 10, '\0');
    const ssize_t got = recv(flow.from, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      flow.ended = true;
      shutdown(flow.to, SHUT_WR);
      return;
    }
    bytes.resize(static_cast<size_t>(got));
    if (harm_ == Harm::kNone || flow.to_connector != to_connector_) return Say(flow, bytes);
    if (harm_ == Harm::kSwapLanes) {
      // Connections have two flows each, in the same order.
      const size_t lanes = flows_.size() / 2;
      const size_t other = ((index / 2 + 1) % lanes) * 2 + index % 2;
      done_ = true;
      return Say(*flows_[other], bytes);
    }
    flow.pending += bytes;
    for (size_t size = UnitBytes(flow); size > 0 && size <= flow.pending.size();
         size = UnitBytes(flow)) {
      const std::string unit = flow.pending.substr(0, size);
      flow.pending.erase(0, size);
      Unit(flow, unit);
    }
  }

  // How long the unit is with which the pending bytes begin; 0: not known yet.
  static size_t UnitBytes(const Flow& flow) {
    const std::string& bytes = flow.pending;
    if (bytes.size() < kFrameHeaderBytes && !IsTls(bytes)) return 0;
    if (IsTls(bytes)) {
      if (bytes.size() < 5) return 0;
      return 5 + (static_cast<size_t>(static_cast<uint8_t>(bytes[3])) << 8) +
             static_cast<uint8_t>(bytes[4]);
    }
    uint32_t payload = 0;
    std::memcpy(&payload, bytes.data() + 4, sizeof(payload));
    return kFrameHeaderBytes + payload;
  }
  static bool IsTls(const std::string& bytes) { return !bytes.empty() && bytes[0] == 23; }

  void Unit(Flow& flow, std::string unit) {
    if (flow.harmed) {
      Say(flow, unit);
      if (!flow.held.empty()) Say(flow, std::exchange(flow.held, {}));
      return;
    }
    flow.harmed = true;
    done_ = true;
    switch (harm_) {
      case Harm::kFlip:
        unit[unit.size() / 2] = static_cast<char>(unit[unit.size() / 2] ^ 0x10);
        return Say(flow, unit);
      case Harm::kReplay:
        return Say(flow, unit + unit);
      case Harm::kReorder:
        flow.held = std::move(unit);
        return;
      case Harm::kCut:
        Say(flow, unit);
        flow.ended = true;
        shutdown(flow.to, SHUT_WR);
        return;
      default:
        return;  // dropped
    }
  }

  const std::string target_;
  TcpListener listener_;
  std::vector<UniqueFd> sockets_;
  std::vector<std::unique_ptr<Flow>> flows_;
  std::atomic<Harm> harm_ = Harm::kNone;
  std::atomic<bool> to_connector_ = false;
  std::atomic<bool> done_ = false;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_PROXY_TESTING_H_
