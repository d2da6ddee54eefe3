// Lists of hosts, nodes and interfaces, and command lines of agents, as users and launchers write
// them: whatever is accepted keeps the limits.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/limits.h"
#include "control/interfaces.h"
#include "control/slurm_nodes.h"
#include "launch/agent_command.h"
#include "launch/host_list.h"

namespace syncopate {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

void CheckHosts(const absl::StatusOr<std::vector<launch::HostSlots>>& hosts) {
  if (!hosts.ok()) return;
  for (const launch::HostSlots& host : *hosts) {
    Require(!host.host.empty() && host.host[0] != '-');
    Require(host.slots >= 1 && host.slots <= limits::kLocalWorkersMax);
  }
  const auto placed = launch::PlaceRanks(*hosts, std::nullopt);
  if (!placed.ok()) return;
  int next = 0;
  for (const launch::HostRanks& place : *placed) {
    Require(place.first_rank == next && place.ranks >= 1);
    next += place.ranks;
  }
  Require(next <= limits::kWorkersMax);
}

}  // namespace
}  // namespace syncopate

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syncopate;
  const std::string text(reinterpret_cast<const char*>(data), size);
  CheckHosts(launch::ParseHostList(text));
  CheckHosts(launch::ParseHostFile("file", text));
  const auto node = control::FirstSlurmNode(text);
  Require(!node.ok() || (!node->empty() && node->size() <= limits::kHostNameBytesMax + 1));
  const auto words = launch::SplitWords(launch::ShellQuote(text));
  Require(words.ok() && words->size() == 1 && words->front() == text);
  (void)launch::AgentCommand(text, "host", false, {"program"}, 60'000'000'000).ok();
  const std::vector<control::InterfaceAddress> list = {
      {.name = "lo", .address = "127.0.0.1", .loopback = true},
      {.name = "eth0", .address = "10.0.0.1"}};
  const auto chosen = control::ChooseInterfaces(text, list);
  Require(!chosen.ok() || !chosen->empty());
  return 0;
}
