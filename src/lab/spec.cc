#include "lab/spec.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/parse.h"
#include "base/status.h"
#include "lab/forwarding.h"

namespace syncopate::lab {
namespace {

std::string Names(const Spec& spec, bool hosts_only) {
  std::vector<std::string> names;
  for (const Node& node : spec.nodes) {
    if (node.is_host || !hosts_only) names.push_back(node.name);
  }
  constexpr size_t kShown = 24;
  if (names.size() > kShown) {
    names.resize(kShown);
    names.push_back("...");
  }
  return absl::StrJoin(names, ", ");
}

absl::Status CheckRate(absl::string_view place, int64_t rate) {
  if (rate == 0 || (rate >= kRateBitsMin && rate <= kRateBitsMax)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(place, ": a rate of ", rate, " bit/s is not from ",
                                                 kRateBitsMin, " to ", kRateBitsMax));
}

absl::Status CheckNodes(const Spec& spec) {
  const auto hosts = static_cast<int>(Hosts(spec).size());
  const int switches = static_cast<int>(spec.nodes.size()) - hosts;
  if (WorkerHosts(spec).empty()) {
    return absl::InvalidArgumentError(
        "the lab has no host for workers; add [[host]] with a name, without bystander");
  }
  if (hosts > kHostsMax || switches > kSwitchesMax) {
    return absl::InvalidArgumentError(absl::StrCat("the lab has ", hosts, " hosts and ", switches,
                                                   " switches; at most ", kHostsMax, " and ",
                                                   kSwitchesMax, " are possible"));
  }
  absl::flat_hash_set<std::string> seen;
  bool host_seen = false;
  for (const Node& node : spec.nodes) {
    SYNCOPATE_RETURN_IF_ERROR(CheckName(node.name, kNodeNameBytesMax));
    if (host_seen && !node.is_host) {
      return absl::InvalidArgumentError(
          absl::StrCat("switch ", node.name, " stands behind a host; list switches first"));
    }
    host_seen = node.is_host;
    if (node.bystander && !node.is_host) {
      return absl::InvalidArgumentError(
          absl::StrCat("switch ", node.name, " cannot be a bystander"));
    }
    if (node.cores != 0 &&
        (!node.is_host || !(node.cores >= kCoresMin && node.cores <= kCoresMax))) {
      return absl::InvalidArgumentError(
          absl::StrCat("cores of ", node.name, ": a host has from ", kCoresMin, " to ", kCoresMax));
    }
    if (!seen.insert(node.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", node.name, "\" is the name of two hosts or switches; rename one"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckLinks(const Spec& spec) {
  const int nodes = static_cast<int>(spec.nodes.size());
  if (spec.links.size() > kLinksMax) {
    return absl::InvalidArgumentError(absl::StrCat("the lab has ", spec.links.size(),
                                                   " links; at most ", kLinksMax, " are possible"));
  }
  absl::flat_hash_set<std::pair<int, int>> seen;
  for (const Link& link : spec.links) {
    if (std::min(link.a, link.b) < 0 || std::max(link.a, link.b) >= nodes || link.a == link.b) {
      return absl::InvalidArgumentError("a link does not join two nodes of the lab");
    }
    const std::string place =
        absl::StrCat("link ", spec.nodes[link.a].name, " ", spec.nodes[link.b].name);
    if (!seen.insert(std::minmax(link.a, link.b)).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(place, ": there are two links between these; keep one"));
    }
    SYNCOPATE_RETURN_IF_ERROR(CheckRate(place, link.rate_forward));
    SYNCOPATE_RETURN_IF_ERROR(CheckRate(place, link.rate_back));
    if (!(link.delay >= 0 && link.delay <= kDelaySecondsMax)) {
      return absl::InvalidArgumentError(absl::StrCat(place, ": a delay of ", link.delay,
                                                     " s is not from 0 to ", kDelaySecondsMax));
    }
    if (link.queue_bytes != 0 &&
        (link.queue_bytes < kQueueBytesLeast || link.queue_bytes > (int64_t{1} << 30))) {
      return absl::InvalidArgumentError(absl::StrCat(place, ": a queue of ", link.queue_bytes,
                                                     " bytes is not from ", kQueueBytesLeast,
                                                     " (a large packet must fit) to 1 GiB"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFlows(const Spec& spec) {
  const int nodes = static_cast<int>(spec.nodes.size());
  if (spec.flows.size() > kFlowsMax) {
    return absl::InvalidArgumentError(absl::StrCat("the lab has ", spec.flows.size(),
                                                   " flows; at most ", kFlowsMax, " are possible"));
  }
  for (const BackgroundFlow& flow : spec.flows) {
    if (std::min(flow.from, flow.to) < 0 || std::max(flow.from, flow.to) >= nodes ||
        flow.from == flow.to || !spec.nodes[flow.from].is_host || !spec.nodes[flow.to].is_host) {
      return absl::InvalidArgumentError("a flow does not go from one host to another");
    }
    SYNCOPATE_RETURN_IF_ERROR(CheckRate("flow", flow.rate));
    SYNCOPATE_RETURN_IF_ERROR(CheckFlowRate(flow.udp, flow.rate));
    if (flow.seconds < 1 || flow.seconds > kFlowSecondsMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("flow: ", flow.seconds, " seconds are not from 1 to ", kFlowSecondsMax));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckName(absl::string_view name, int bytes_max) {
  const bool good =
      !name.empty() && name.size() <= static_cast<size_t>(bytes_max) && name[0] != '-' &&
      std::all_of(name.begin(), name.end(), [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
      });
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"", name.substr(0, 64), "\" cannot be a name; use 1 to ", bytes_max,
                   " letters, digits, \"-\" and \"_\", beginning with a letter or digit"));
}

std::vector<int> Hosts(const Spec& spec) {
  std::vector<int> hosts;
  for (size_t i = 0; i < spec.nodes.size(); ++i) {
    if (spec.nodes[i].is_host) hosts.push_back(static_cast<int>(i));
  }
  return hosts;
}

std::vector<int> WorkerHosts(const Spec& spec) {
  std::vector<int> hosts = Hosts(spec);
  hosts.erase(std::remove_if(hosts.begin(), hosts.end(),
                             [&](int host) { return spec.nodes[host].bystander; }),
              hosts.end());
  return hosts;
}

absl::StatusOr<int> FindNode(const Spec& spec, absl::string_view name) {
  for (size_t i = 0; i < spec.nodes.size(); ++i) {
    if (spec.nodes[i].name == name) return static_cast<int>(i);
  }
  return absl::InvalidArgumentError(absl::StrCat("\"", name,
                                                 "\" is neither host nor switch of lab ", spec.name,
                                                 "; it has ", Names(spec, false)));
}

absl::StatusOr<int> FindHost(const Spec& spec, absl::string_view name) {
  for (const int host : Hosts(spec)) {
    if (spec.nodes[host].name == name) return host;
  }
  return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" is not a host of lab ", spec.name,
                                                 "; hosts: ", Names(spec, true)));
}

int FindLink(const Spec& spec, int a, int b) {
  for (size_t i = 0; i < spec.links.size(); ++i) {
    const Link& link = spec.links[i];
    if ((link.a == a && link.b == b) || (link.a == b && link.b == a)) return static_cast<int>(i);
  }
  return -1;
}

absl::Status CheckFlowRate(bool udp, int64_t rate) {
  if (!udp || rate > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "a flow of UDP needs a rate, such as 50mbit: it sends at that whatever the network gives");
}

absl::Status Validate(const Spec& spec) {
  const absl::Status name = CheckName(spec.name, kLabNameBytesMax);
  if (!name.ok()) return At("name of the lab", name);
  if (!spec.congestion.empty()) {
    const absl::Status congestion = CheckName(spec.congestion, 15);
    if (!congestion.ok()) return At("congestion", congestion);
  }
  SYNCOPATE_RETURN_IF_ERROR(CheckNodes(spec));
  SYNCOPATE_RETURN_IF_ERROR(CheckLinks(spec));
  SYNCOPATE_RETURN_IF_ERROR(CheckFlows(spec));
  return ComputeForwarding(spec).status();
}

absl::StatusOr<Spec> ReadLab(const std::string& path) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kFileBytesMax));
  return ParseLab(text, path);
}

}  // namespace syncopate::lab
