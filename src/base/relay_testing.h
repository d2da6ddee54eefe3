// For tests of handshakes: a relay between a caller and a listener on loopback that holds a message
// of the first connection back, as a pause of the caller at that moment does.
#ifndef SYNCOPATE_BASE_RELAY_TESTING_H_
#define SYNCOPATE_BASE_RELAY_TESTING_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/unique_fd.h"

namespace syncopate {

class HoldingRelay {
 public:
  struct Held {
    int listener_fd;  // the connection with the listener
    std::string message;
  };
  // What is sent to the listener in place of the held message; nothing ends the connection.
  using Decide = std::function<std::optional<std::string>(const Held& held)>;

  // Relays to `port` of 127.0.0.1. Of the first connection, what the caller says after its first
  // `skip_bytes` is held back when `held_bytes` of it are there.
  HoldingRelay(int port, size_t skip_bytes, size_t held_bytes, Decide decide)
      : target_port_(port),
        skip_bytes_(skip_bytes),
        held_bytes_(held_bytes),
        decide_(std::move(decide)),
        listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in own = Loopback(0);
    socklen_t length = sizeof(own);
    if (bind(listener_.get(), reinterpret_cast<sockaddr*>(&own), length) == 0 &&
        listen(listener_.get(), 16) == 0) {
      getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&own), &length);
    }
    port_ = ntohs(own.sin_port);
    thread_ = std::thread([this] { Run(); });
  }
  HoldingRelay(const HoldingRelay&) = delete;
  // The caller and the listener must have closed their connections.
  ~HoldingRelay() {
    shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

  int port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  // Waits until the other end of `fd` has hung up; false if it has not after half a minute.
  static bool AwaitHangUp(int fd) {
    pollfd polls = {.fd = fd, .events = POLLRDHUP, .revents = 0};
    return poll(&polls, 1, 30'000) == 1;
  }

 private:
  static sockaddr_in Loopback(int port) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }

  void Run() {
    for (bool first = true;; first = false) {
      const UniqueFd caller(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!caller.ok()) return;
      const UniqueFd target(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const sockaddr_in address = Loopback(target_port_);
      if (connect(target.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
          0) {
        continue;
      }
      Relay(caller.get(), target.get(), first);
    }
  }

  // Until one of the two ends.
  void Relay(int caller, int target, bool holding) {
    size_t seen = 0;
    std::string message;
    while (true) {
      pollfd polls[] = {{caller, POLLIN, 0}, {target, POLLIN, 0}};
      if (poll(polls, 2, -1) < 0) continue;
      char bytes[4096];
      if (polls[1].revents != 0) {
        const ssize_t got = recv(target, bytes, sizeof(bytes), 0);
        if (got <= 0 || send(caller, bytes, static_cast<size_t>(got), MSG_NOSIGNAL) != got) return;
      }
      if (polls[0].revents == 0) continue;
      size_t wanted = sizeof(bytes);
      if (holding) wanted = seen < skip_bytes_ ? skip_bytes_ - seen : held_bytes_ - message.size();
      const ssize_t got = recv(caller, bytes, wanted, 0);
      if (got <= 0) return;
      if (!holding || seen < skip_bytes_) {
        seen += static_cast<size_t>(got);
        if (send(target, bytes, static_cast<size_t>(got), MSG_NOSIGNAL) != got) return;
        continue;
      }
      message.append(bytes, static_cast<size_t>(got));
      if (message.size() < held_bytes_) continue;
      holding = false;
      const std::optional<std::string> sent = decide_({target, message});
      if (!sent.has_value() || send(target, sent->data(), sent->size(), MSG_NOSIGNAL) < 0) return;
    }
  }

  const int target_port_;
  const size_t skip_bytes_;
  const size_t held_bytes_;
  const Decide decide_;
  const UniqueFd listener_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace syncopate

#endif  // SYNCOPATE_BASE_RELAY_TESTING_H_
