// Connects this worker with all others of its job by TCP: a listener, a connection per pair of
// workers and lane, each proved by the handshake. The listener is closed when all have come, so a
// running job has no open port.
#ifndef SYNCOPATE_TRANSPORT_NET_TCP_MESH_H_
#define SYNCOPATE_TRANSPORT_NET_TCP_MESH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/unique_fd.h"

namespace syncopate::transport::net {

struct TcpListener {
  UniqueFd fd;
  std::string address;  // "10.0.0.1:4711" or "[fe80::1]:4711"
};

// Listens on a port of the system's choice at `ip`, one of this host's addresses.
absl::StatusOr<TcpListener> ListenTcp(const std::string& ip);

struct MeshOptions {
  int rank = 0;
  int size = 1;
  int lanes = 1;  // connections for each pair of workers
  uint32_t job = 0;
  std::string key;
  std::vector<std::string> addresses = {};  // of the listeners, by rank
  std::vector<std::string> hosts = {};      // by rank, for messages; may be empty
};

// Sockets by rank and lane, non-blocking; this worker's own place is empty. Connections from anyone
// else than the workers of this job are dropped. At `deadline_ns` an error that names who is
// missing.
absl::StatusOr<std::vector<std::vector<UniqueFd>>> ConnectMesh(TcpListener listener,
                                                               const MeshOptions& options,
                                                               const Clock& clock,
                                                               int64_t deadline_ns);

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_TCP_MESH_H_
