// Begins TLS on the connections of a mesh, all at the same time.
#ifndef SYNCOPATE_TRANSPORT_NET_TLS_MESH_H_
#define SYNCOPATE_TRANSPORT_NET_TLS_MESH_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "transport/net/tcp_mesh.h"
#include "transport/net/tls_session.h"

namespace syncopate::transport::net {

using TlsMesh = std::vector<std::vector<std::unique_ptr<TlsSession>>>;

// Sessions by rank and lane, like the sockets, which ConnectMesh() has made with the same options.
// The worker with the higher rank connected, so it is the connector. An error names the worker with
// whom TLS could not be agreed on, or at `deadline_ns` those that did not answer.
absl::StatusOr<TlsMesh> SecureMesh(const std::vector<std::vector<UniqueFd>>& sockets,
                                   const MeshOptions& options, const Clock& clock,
                                   int64_t deadline_ns);

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_TLS_MESH_H_
