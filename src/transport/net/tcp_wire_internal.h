// What the files of TcpWire share.
#ifndef SYNCOPATE_TRANSPORT_NET_TCP_WIRE_INTERNAL_H_
#define SYNCOPATE_TRANSPORT_NET_TCP_WIRE_INTERNAL_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

namespace syncopate::transport::net {

// How much is read from one lane before the others get a turn.
inline constexpr size_t kReadBytes = 1 << 20;

// Reads, and tells when the last of these bytes came to this host by the kernel's real-time clock,
// whether or not this process was running then; 0: not known.
ssize_t ReadAt(int fd, iovec* parts, int count, int64_t& time_ns);

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_TCP_WIRE_INTERNAL_H_
