// Which of this machine's network interfaces to use: as NCCL's users know it, by
// SYNCOPATE_SOCKET_IFNAME.
#ifndef SYNCOPATE_CONTROL_INTERFACES_H_
#define SYNCOPATE_CONTROL_INTERFACES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace syncopate::control {

struct InterfaceAddress {
  std::string name;     // "eth0"
  std::string address;  // "10.0.0.1", "fd00::1"
  bool up = true;
  bool loopback = false;
  bool ipv6 = false;

  friend bool operator==(const InterfaceAddress&, const InterfaceAddress&) = default;
};

// All addresses of this machine (of its network namespace), in the kernel's order. Link-local IPv6
// addresses are left out: they mean nothing to another host.
absl::StatusOr<std::vector<InterfaceAddress>> ListInterfaces();

// The addresses to use, best first, one for each interface (IPv4 where it has both kinds). `text`
// is the user's choice:
//   "eth0,ib"     interfaces whose names begin so, in this order
//   "=eth0"       exactly these names
//   "^lo,docker"  all but those whose names begin so; "^=lo" all but exactly these
//   ""            the first that is up and neither loopback nor a bridge of virtual machines; if
//                 there is none, whatever else is up, loopback last
// An interface that is down is never chosen. If nothing is left: an error that shows what there is.
absl::StatusOr<std::vector<InterfaceAddress>> ChooseInterfaces(
    absl::string_view text, const std::vector<InterfaceAddress>& list);

// What the interface's link carries, as the kernel says; 0 if it does not know.
double LinkBitsPerSecond(const std::string& interface);

// How many TCP connections for each pair of workers such a link needs: a connection has at most
// 128 KiB in flight, which is 10 Gbit/s where a round trip takes a tenth of a millisecond.
int ConnectionsFor(double link_bits_per_second);

// "10.0.0.1:4711", "[fd00::1]:4711".
std::string JoinAddress(absl::string_view address, int port);

}  // namespace syncopate::control

#endif  // SYNCOPATE_CONTROL_INTERFACES_H_
