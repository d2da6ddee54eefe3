// What a lab is: hosts, switches, the links between them and the traffic in the background. A
// value; docs/lab.md has the TOML form and what every key means.
#ifndef SYNCOPATE_LAB_SPEC_H_
#define SYNCOPATE_LAB_SPEC_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace syncopate::lab {

inline constexpr size_t kFileBytesMax = size_t{1} << 20;
inline constexpr int kHostsMax = 128;  // each knows the hardware address of each other
inline constexpr int kSwitchesMax = 256;
inline constexpr int kLinksMax = 8192;  // every pair of kHostsMax hosts
inline constexpr int kFlowsMax = 256;
inline constexpr int kLabNameBytesMax = 32;
inline constexpr int kNodeNameBytesMax = 15;
inline constexpr int64_t kRateBitsMin = 64'000;  // bit/s; below, one large packet takes seconds
inline constexpr int64_t kRateBitsMax = 400'000'000'000;
inline constexpr double kDelaySecondsMax = 10;
inline constexpr int64_t kQueueBytesLeast = 70'000;  // a large packet must fit
inline constexpr double kCoresMin = 0.01;            // of a host
inline constexpr double kCoresMax = 4096;
inline constexpr int kFlowSecondsDefault = 600;
inline constexpr int kFlowSecondsMax = 86'400;

struct Node {
  std::string name;
  bool is_host = false;    // else a switch
  bool bystander = false;  // a host for traffic in the background; it runs no workers
  double cores = 0;        // of the machine's, that a host may use at most; 0: all

  friend bool operator==(const Node&, const Node&) = default;
};

// A cable with a rate of its own in each direction.
struct Link {
  int a = -1;  // nodes
  int b = -1;
  int64_t rate_forward = 0;  // a to b, bit/s as the shaper counts them; 0: not shaped
  int64_t rate_back = 0;     // b to a
  double delay = 0;          // seconds, each way
  int64_t queue_bytes = 0;   // before the shaper, each way; 0: chosen by the rate

  friend bool operator==(const Link&, const Link&) = default;
};

// A flow in the background, as long as the lab is up or `seconds` have passed: of TCP, which shares
// links with others, or of UDP, which keeps its rate whatever others get.
struct BackgroundFlow {
  int from = -1;  // nodes that are hosts
  int to = -1;
  int64_t rate = 0;  // bit/s; 0: what the network gives
  int seconds = kFlowSecondsDefault;
  bool udp = false;

  friend bool operator==(const BackgroundFlow&, const BackgroundFlow&) = default;
};

struct Spec {
  std::string name;
  std::string congestion;    // TCP's congestion control on the hosts; empty: the kernel's default
  bool fixed_cores = false;  // each host keeps to one of the machine's cores
  std::vector<Node> nodes;
  std::vector<Link> links;
  std::vector<BackgroundFlow> flows;

  friend bool operator==(const Spec&, const Spec&) = default;
};

// The first fault. A valid lab has a host, names that are unique and can be used, references that
// exist, switches before hosts, and a way between any two hosts that passes only through switches.
absl::Status Validate(const Spec& spec);

// The text form, TOML. ParseLab(ToToml(s)) == s for every valid s. `place` (a file's name) stands
// before the line and column of a fault. ParseLab validates, and refuses unknown keys.
std::string ToToml(const Spec& spec);
absl::StatusOr<Spec> ParseLab(absl::string_view text, absl::string_view place);
absl::StatusOr<Spec> ReadLab(const std::string& path);

// Nodes that are hosts, in order; and those of them that run workers.
std::vector<int> Hosts(const Spec& spec);
std::vector<int> WorkerHosts(const Spec& spec);
// The node with this name; the error names those that there are.
absl::StatusOr<int> FindNode(const Spec& spec, absl::string_view name);
absl::StatusOr<int> FindHost(const Spec& spec, absl::string_view name);
// The first link between two nodes, or -1.
int FindLink(const Spec& spec, int a, int b);

// A flow of UDP needs a rate, since nothing else bounds it.
absl::Status CheckFlowRate(bool udp, int64_t rate);

// Letters, digits, "-" and "_", not first a "-", at most that many bytes.
absl::Status CheckName(absl::string_view name, int bytes_max);

// Bits per second: "200mbit" as tc writes it, "200Mbit/s", "25MB/s"; "none" is 0, not shaped.
absl::StatusOr<int64_t> ParseLinkRate(absl::string_view text);
// The shortest text that ParseLinkRate reads back: "200mbit", "none".
std::string FormatLinkRate(int64_t bits);

}  // namespace syncopate::lab

#endif  // SYNCOPATE_LAB_SPEC_H_
