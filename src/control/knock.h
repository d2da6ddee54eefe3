// The worker's side of the door of the rendezvous (door.h): connects and proves itself.
#ifndef SYNCOPATE_CONTROL_KNOCK_H_
#define SYNCOPATE_CONTROL_KNOCK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "control/sockets.h"

namespace syncopate::control {

struct Welcome {
  UniqueFd fd;  // not blocking
  std::string meeting_nonce;
};

// Connects to "host:port" and proves itself, until `deadline_ns`. PermissionDenied if the other
// side does not know the key.
absl::StatusOr<Welcome> Knock(const std::string& server, const std::string& key, const Clock& clock,
                              int64_t deadline_ns);

// The same at the first of `addresses` that lets us in. They are tried side by side, each a little
// after the one before, so that one that a firewall swallows holds up nobody.
absl::StatusOr<Welcome> KnockAtAny(const std::vector<SocketAddress>& addresses,
                                   const std::string& key, const Clock& clock, int64_t deadline_ns);

}  // namespace syncopate::control

#endif  // SYNCOPATE_CONTROL_KNOCK_H_
