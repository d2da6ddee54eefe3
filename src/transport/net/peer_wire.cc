#include "transport/net/peer_wire.h"

#include <sys/socket.h>

namespace syncopate::transport::net {

void PeerWire::Close(int rank, bool politely) {
  Connection& connection = this->connection(rank);
  if (!connection.open) return;
  if (politely) {
    connection.closing = true;
    FinishClosing(rank);
    return;
  }
  PrepareReset(rank);
  End(rank, absl::OkStatus());
  std::erase_if(ended_, [&](const auto& entry) { return entry.first == rank; });
}

void PeerWire::FinishClosing(int rank) {
  Connection& connection = this->connection(rank);
  if (!connection.open || connection.shut || !Flushed(rank)) return;
  connection.shut = true;
  SayFarewell(rank);
}

bool PeerWire::TellEnded() {
  bool any = false;
  for (const auto& [rank, why] : std::exchange(ended_, {})) {
    any = true;
    handler_.Closed(rank, why);
  }
  return any;
}

void PeerWire::ResetOnClose(int socket) {
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

}  // namespace syncopate::transport::net
