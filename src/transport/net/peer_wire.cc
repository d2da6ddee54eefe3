#include "transport/net/peer_wire.h"

namespace syncopate::transport::net {

void PeerWire::Close(int rank, bool politely) {
  Connection& connection = this->connection(rank);
  if (!connection.open) return;
  if (politely) {
    connection.closing = true;
    FinishClosing(rank);
    return;
  }
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

}  // namespace syncopate::transport::net
