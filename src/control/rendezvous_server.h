// The rendezvous behind a socket: one thread that takes gRPC calls, has Step() decide and answers.
#ifndef SYNCOPATE_CONTROL_RENDEZVOUS_SERVER_H_
#define SYNCOPATE_CONTROL_RENDEZVOUS_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "services/rendezvous.h"

namespace syncopate::control {

struct RendezvousServerOptions {
  std::string address = "127.0.0.1";  // numeric; the one that is bound
  int port = 0;                       // 0: any free one
  std::string job;
  int size = 1;
  std::string key;
  std::vector<std::string> hosts;  // by rank, where workers are expected; empty if unknown
  // Called after every step that changed something, from the server's thread; may be empty.
  std::function<void(const services::RendezvousState&)> on_step;
  // Called with "rank 2 on h2" when some have come and others have not for a while, from the
  // server's thread (base/wait_notice.h says when); empty: the log is told.
  std::function<void(const std::string& missing)> on_waiting = {};
};

// Serves from Start() to its destruction. A wrong key, nonsense on the port or a stranger's
// messages change nothing for the job's workers. It sleeps while nothing happens. Thread-safe.
class RendezvousServer {
 public:
  // The server owns a thread: do not fork between Start() and the end of its life.
  static absl::StatusOr<std::unique_ptr<RendezvousServer>> Start(RendezvousServerOptions options,
                                                                 const Clock& clock);
  virtual ~RendezvousServer() = default;

  // "10.0.0.1:4711", as in SYNCOPATE_RENDEZVOUS.
  virtual const std::string& address() const = 0;
  // Waits until the meeting is over and every waiting worker has got the answer; false if that is
  // not so at `deadline_ns`.
  virtual bool WaitUntilAnswered(int64_t deadline_ns) = 0;
};

}  // namespace syncopate::control

#endif  // SYNCOPATE_CONTROL_RENDEZVOUS_SERVER_H_
