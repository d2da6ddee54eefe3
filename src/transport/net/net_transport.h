// The transport for jobs on several hosts: a wire (TCP or UCX) between hosts, shared memory among
// the workers of one host, in one group and one program.
//
// A group whose members are all on this host is a group of shared memory. In any other group, data
// between members of one host travels through shared memory and the rest over the wire; gates are
// agreed by messages (gate_protocol.h). Losses are agreed by messages too (loss_consensus.h).
#ifndef SYNCOPATE_TRANSPORT_NET_NET_TRANSPORT_H_
#define SYNCOPATE_TRANSPORT_NET_NET_TRANSPORT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "transport/net/loss_consensus.h"
#include "transport/shm/shm_transport.h"
#include "transport/transport.h"

namespace syncopate::transport {

struct NetOptions {
  std::string job;
  int rank = 0;
  int size = 1;
  std::string ip = {};          // of this host, where the worker listens
  std::string wire = "tcp";     // or "ucx"
  bool secure = false;          // everything on the wire in TLS; only "tcp" has it
  int lanes = 1;                // connections for each pair of workers; the least of all counts
  int socket_buffer_bytes = 0;  // TcpWire::Make() says what it is
  std::string machine = {};     // workers with the same share memory; empty: found out
  std::string host = {};        // its name in messages; empty: found out
  uint64_t arena_bytes = 0;     // the memory shared with the workers of this host
  int cores = 1;                // the cores shared with the workers of this host
  std::string terms = {};       // what all workers must agree on (transport/terms.h)
  // All must be connected this long after StartNetTransport().
  int64_t start_timeout_ns = 60'000'000'000;
  WhenStuck when_stuck = WhenStuck::kLook;   // of a worker of this host
  OnEnding on_ending = nullptr;              // of a worker of this host
  net::LossConsensusOptions consensus = {};  // rank and size are filled in
};

// A worker that listens and has not met the others yet.
class NetStart {
 public:
  virtual ~NetStart() = default;
  // What the caller must pass on to all others.
  virtual const std::string& payload() const = 0;
  // Connects with all others. `payloads` by rank, the same on all; `key` is the job's secret.
  virtual absl::StatusOr<std::unique_ptr<Transport>> Connect(
      const std::vector<std::string>& payloads, const std::string& key) = 0;
};

// The clock must outlive the transport.
absl::StatusOr<std::unique_ptr<NetStart>> StartNetTransport(const NetOptions& options,
                                                            const Clock& clock);

}  // namespace syncopate::transport

#endif  // SYNCOPATE_TRANSPORT_NET_NET_TRANSPORT_H_
