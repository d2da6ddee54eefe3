// TCP with deadlines: names to addresses, connecting, exact numbers of bytes.
#ifndef SYNCOPATE_CONTROL_SOCKETS_H_
#define SYNCOPATE_CONTROL_SOCKETS_H_

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/unique_fd.h"

namespace syncopate::control {

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t size = 0;

  int family() const { return storage.ss_family; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// Whether both are the same host's address, whatever the port.
bool SameAddress(const SocketAddress& one, const SocketAddress& other);

// "10.0.0.1", "fd00::1"; never asks a name server.
absl::StatusOr<SocketAddress> NumericAddress(const std::string& address, int port);

// "host:port", "[fd00::1]:port" in its two parts.
absl::StatusOr<std::pair<std::string, int>> SplitAddress(absl::string_view address);

// All addresses of a name. The system's resolver has no deadline, so it is asked by a thread that
// is left to itself at `deadline_ns`.
absl::StatusOr<std::vector<SocketAddress>> Resolve(const std::string& host, int port,
                                                   const Clock& clock, int64_t deadline_ns);

// A socket on its way to `address`, not blocking, that will send at once what it is given.
absl::StatusOr<UniqueFd> BeginConnect(const SocketAddress& address);
// What has become of it, when it can be written to.
absl::Status ConnectResult(int fd);

// The socket may be blocking or not.
absl::Status SendAll(int fd, absl::string_view bytes, const Clock& clock, int64_t deadline_ns);
absl::StatusOr<std::string> ReceiveExactly(int fd, size_t count, const Clock& clock,
                                           int64_t deadline_ns);

}  // namespace syncopate::control

#endif  // SYNCOPATE_CONTROL_SOCKETS_H_
