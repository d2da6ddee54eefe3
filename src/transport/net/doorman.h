// Keeps strangers away from a listening socket that is not ours to guard: the kernel drops what
// comes from other addresses before the owner sees it.
//
// UCX 1.13 ends the whole process when somebody who knows the first eight bytes of its protocol
// says nonsense after them, and its listening sockets cannot be had by its interface.
#ifndef SYNCOPATE_TRANSPORT_NET_DOORMAN_H_
#define SYNCOPATE_TRANSPORT_NET_DOORMAN_H_

#include <netinet/in.h>
#include <sys/socket.h>

#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace syncopate::transport::net {

// This process's sockets that listen for connections over a network, and their ports, in the
// network's order.
std::map<int, in_port_t> ListeningSockets();

// From now on only these addresses may connect, whatever their port; none if there are none.
// Connections that exist are not touched.
absl::Status LetIn(int listening_socket, absl::Span<const sockaddr_storage> addresses);

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_DOORMAN_H_
