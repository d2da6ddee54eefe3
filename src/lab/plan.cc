#include "lab/plan.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace syncopate::lab {
namespace {

constexpr absl::string_view kPrefix = "sy.";
constexpr int kHostsPerThirdByte = 250;

}  // namespace

std::string FabricNamespace(absl::string_view lab) { return absl::StrCat(kPrefix, lab); }

std::string HostNamespace(absl::string_view lab, absl::string_view host) {
  return absl::StrCat(kPrefix, lab, ".", host);
}

std::string LabOfNamespace(absl::string_view netns) {
  if (!absl::ConsumePrefix(&netns, kPrefix)) return "";
  const std::string lab(netns.substr(0, netns.find('.')));
  return CheckName(lab, kLabNameBytesMax).ok() ? lab : "";
}

bool IsNamespaceOf(absl::string_view lab, absl::string_view netns) {
  return !lab.empty() && LabOfNamespace(netns) == lab;
}

Plan MakePlan(const Spec& spec) {
  Plan plan;
  plan.spec = spec;
  plan.forwarding = ComputeForwarding(spec).value();
  plan.fabric = FabricNamespace(spec.name);
  const size_t nodes = spec.nodes.size();
  plan.netns.assign(nodes, plan.fabric);
  plan.bridge.resize(nodes);
  plan.address.resize(nodes);
  plan.mac.resize(nodes);
  int hosts = 0;
  int switches = 0;
  for (size_t i = 0; i < nodes; ++i) {
    if (!spec.nodes[i].is_host) {
      plan.bridge[i] = absl::StrCat("s", switches++);
      continue;
    }
    plan.netns[i] = HostNamespace(spec.name, spec.nodes[i].name);
    plan.address[i] =
        absl::StrCat("10.250.", hosts / kHostsPerThirdByte, ".", hosts % kHostsPerThirdByte + 1);
    plan.mac[i] = absl::StrFormat("02:5a:00:00:%02x:%02x", hosts >> 8, hosts & 0xff);
    ++hosts;
  }
  std::vector<int> interfaces(nodes, 0);
  for (size_t i = 0; i < spec.links.size(); ++i) {
    const int ends[] = {spec.links[i].a, spec.links[i].b};
    std::array<Port, 2> ports;
    for (const int side : {0, 1}) {
      ports[side].netns = plan.netns[ends[side]];
      ports[side].interface = spec.nodes[ends[side]].is_host
                                  ? absl::StrCat("eth", interfaces[ends[side]]++)
                                  : absl::StrCat("l", i, side == 0 ? "a" : "b");
    }
    plan.ports.push_back(ports);
  }
  return plan;
}

std::string HostsFile(const Plan& plan) {
  std::string text = "127.0.0.1 localhost\n";
  for (const int host : Hosts(plan.spec)) {
    absl::StrAppend(&text, plan.address[host], " ", plan.spec.nodes[host].name, "\n");
  }
  return text;
}

}  // namespace syncopate::lab
