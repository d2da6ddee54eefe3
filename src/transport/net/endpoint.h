// What a worker tells the others about itself before they connect: which host it is on and where it
// listens. Travels as the opaque payload of the rendezvous.
#ifndef SYNCOPATE_TRANSPORT_NET_ENDPOINT_H_
#define SYNCOPATE_TRANSPORT_NET_ENDPOINT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace syncopate::transport::net {

struct Endpoint {
  std::string wire;     // "tcp", "ucx"
  std::string machine;  // equal for workers that can share memory and local sockets
  std::string host;     // its name, for people
  std::string address;  // as the wire wants it
  int lanes = 1;
  std::string terms = {};  // transport/terms.h

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

std::string Encode(const Endpoint& endpoint);
absl::StatusOr<Endpoint> DecodeEndpoint(absl::string_view bytes);

// This boot of this machine and this network namespace: two workers with the same can meet through
// local sockets.
std::string ThisMachine();
std::string ThisHostName();

}  // namespace syncopate::transport::net

#endif  // SYNCOPATE_TRANSPORT_NET_ENDPOINT_H_
