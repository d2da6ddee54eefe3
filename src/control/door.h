// The door of the rendezvous, the server's side of it (knock.h is the worker's): plain TCP connections on which both sides prove that they know the
// job's key before anything else is said. A stranger gets 2 s and is read for fewer than 256 bytes;
// gRPC never sees what it sends.
//
//   worker → server   "SYNCRDV2", nonce of the worker (32 bytes)
//   server → worker   nonce of this connection (32), nonce of the meeting (32), proof (32)
//   worker → server   proof (32)
//   server → worker   welcome: another proof (32)
//
// A server that has lost its patience hangs up before its welcome, and the worker knocks again.
#ifndef SYNCOPATE_CONTROL_DOOR_H_
#define SYNCOPATE_CONTROL_DOOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/unique_fd.h"

namespace syncopate::control {

struct Listener {
  UniqueFd fd;
  int port = 0;
};

// Binds the numeric address, which must be this host's; port 0 takes a free one.
absl::StatusOr<Listener> ListenAt(const std::string& address, int port);

struct DoorOptions {
  std::string key;
  std::string meeting_nonce;
  // Gets every connection that has proved to know the key (not blocking), from the door's thread.
  std::function<void(UniqueFd)> welcome;
};

// Accepts in a thread of its own, from its making to its destruction. Of many strangers at once the
// oldest is sent away.
class Door {
 public:
  static std::unique_ptr<Door> Open(Listener listener, DoorOptions options, const Clock& clock);
  virtual ~Door() = default;
};

}  // namespace syncopate::control

#endif  // SYNCOPATE_CONTROL_DOOR_H_
