#include "worker/network.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/status.h"
#include "probe/shape.h"
#include "worker/known_network.h"

namespace syncopate::worker {
namespace {

// A plain data-centre Ethernet.
constexpr double kGuessedBytesPerSecond = 10e9 / 8;
constexpr double kGuessedLatencySeconds = 50e-6;

}  // namespace

Network GuessNetwork(const std::vector<std::string>& hosts) {
  probe::NetworkShape shape;
  std::map<std::string, size_t> known;
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    const auto [place, fresh] = known.emplace(hosts[rank], shape.hosts.size());
    if (fresh) {
      shape.hosts.push_back({.name = hosts[rank],
                             .workers = {},
                             .rack = 0,
                             .out = kGuessedBytesPerSecond,
                             .in = kGuessedBytesPerSecond});
    }
    shape.hosts[place->second].workers.push_back(static_cast<int>(rank));
  }
  probe::NetworkShape::Rack rack;
  rack.name = "rack0";
  for (size_t host = 0; host < shape.hosts.size(); ++host) {
    rack.hosts.push_back(static_cast<int>(host));
  }
  rack.up = rack.down = kGuessedBytesPerSecond * static_cast<double>(shape.hosts.size());
  rack.latency = kGuessedLatencySeconds;
  shape.racks.push_back(std::move(rack));
  probe::NetworkShape::Pod pod;
  pod.name = "pod0";
  pod.racks = {0};
  shape.pods.push_back(std::move(pod));
  Network network;
  network.topology = probe::ToTopology(shape);
  network.topology.source = "guessed";
  network.placement = *PlaceByHost(network.topology, hosts);
  return network;
}

absl::StatusOr<std::vector<int>> PlaceByHost(const Topology& topology,
                                             const std::vector<std::string>& hosts) {
  std::map<std::string, std::vector<int>> devices;  // by host
  for (const int device : Devices(topology)) {
    const Topology::Node& node = topology.nodes[static_cast<size_t>(device)];
    const std::string& host =
        node.host >= 0 ? topology.nodes[static_cast<size_t>(node.host)].id : node.id;
    devices[host].push_back(device);
  }
  std::vector<int> placement;
  std::map<std::string, size_t> used;
  std::string unknown;
  for (const std::string& host : hosts) {
    const auto found = devices.find(host);
    if (found == devices.end()) {
      unknown = host;
      break;
    }
    placement.push_back(found->second[used[host]++ % found->second.size()]);
  }
  if (unknown.empty()) return placement;
  absl::StatusOr<std::vector<int>> in_order =
      PlaceInOrder(topology, static_cast<int>(hosts.size()));
  if (in_order.ok()) return in_order;
  return absl::FailedPreconditionError(absl::StrCat(
      "host \"", unknown, "\" is not in it, and it has fewer devices than the job has ",
      "workers; measure the network of these hosts with syncopate probe"));
}

absl::StatusOr<Network> LoadNetwork(const Environment& environment,
                                    const std::vector<std::string>& hosts) {
  std::optional<std::string> file = environment("SYNCOPATE_TOPO_FILE");
  const ProbeChoice choice = ResolveProbe(environment);
  const bool probed = (!file || file->empty()) && choice.mode == ProbeChoice::Mode::kFile;
  if (probed) file = choice.file;
  if (!file || file->empty()) return GuessNetwork(hosts);
  const std::string place =
      absl::StrCat(probed ? "SYNCOPATE_PROBE=" : "SYNCOPATE_TOPO_FILE=", *file);
  absl::StatusOr<std::string> text = ReadFile(*file, limits::kTopologyTextBytesMax);
  if (!text.ok()) return At(place, text.status());
  Network network;
  absl::StatusOr<Topology> topology = ParseTopology(*text);
  if (!topology.ok()) return At(place, topology.status());
  network.topology = *std::move(topology);
  absl::StatusOr<std::vector<int>> placement = PlaceByHost(network.topology, hosts);
  if (!placement.ok()) return At(place, placement.status());
  network.placement = *std::move(placement);
  network.measured = true;
  return network;
}

}  // namespace syncopate::worker
