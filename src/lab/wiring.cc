#include "lab/wiring.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace syncopate::lab {
namespace {

// Where packets to a blocked host go: a hardware address that no switch knows.
constexpr char kNowhere[] = "02:5a:ff:ff:ff:ff";
constexpr absl::string_view kFirst = "eth0";
constexpr int64_t kLargePacketBytes = 70'000;  // 64 KiB of payload and the headers of its segments
constexpr int64_t kQueueBytesMin = int64_t{128} << 10;
constexpr int64_t kDelayedPacketsMax = 100'000;

// Collects lines by tool and namespace, in order of first use.
class Scripts {
 public:
  template <typename... Args>
  void Add(absl::string_view tool, const std::string& netns, const Args&... args) {
    const auto [found, is_new] = index_.insert({{std::string(tool), netns}, scripts_.size()});
    if (is_new) scripts_.push_back({std::string(tool), netns, ""});
    absl::StrAppend(&scripts_[found->second].text, args..., "\n");
  }
  std::vector<Script> Take() { return std::move(scripts_); }

 private:
  std::map<std::pair<std::string, std::string>, size_t> index_;
  std::vector<Script> scripts_;
};

void Shape(const Plan& plan, int link, int direction, const Setting& setting, bool fresh,
           Scripts& scripts) {
  const Port& port = plan.ports[link][direction];
  const Link& spec = plan.spec.links[link];
  const std::string dev = absl::StrCat("qdisc replace dev ", port.interface, " root ");
  if (setting.cut) {
    scripts.Add("tc", port.netns, dev, "blackhole");
    return;
  }
  if (setting.rate > 0) {
    const int64_t queue = spec.queue_bytes > 0 ? spec.queue_bytes : QueueBytes(setting.rate);
    scripts.Add("tc", port.netns, dev, "handle 1: tbf rate ", setting.rate, "bit burst ",
                BurstBytes(setting.rate), " limit ", queue);
  } else if (spec.delay == 0 && !fresh) {
    scripts.Add("tc", port.netns, dev, "noqueue");
  }
  if (spec.delay > 0) {
    scripts.Add("tc", port.netns, "qdisc replace dev ", port.interface,
                setting.rate > 0 ? " parent 1:1" : " root", " handle 2: netem delay ",
                absl::StrFormat("%.0f", spec.delay * 1e6), "us limit ", kDelayedPacketsMax);
  }
}

// How `from` finds `to`: both ends are told, nothing is asked on the wire.
void Introduce(const Plan& plan, int from, int to, bool blocked, Scripts& scripts) {
  const int link = plan.forwarding.link[from][to];
  const int side = plan.spec.links[link].a == from ? 0 : 1;
  scripts.Add("ip", plan.netns[from], "neigh replace ", plan.address[to], " lladdr ",
              blocked ? kNowhere : plan.mac[to], " dev ", plan.ports[link][side].interface,
              " nud permanent");
}

void AddSwitches(const Plan& plan, Scripts& scripts) {
  scripts.Add("ip", plan.fabric, "link set lo up");
  for (size_t i = 0; i < plan.spec.nodes.size(); ++i) {
    if (plan.bridge[i].empty()) continue;
    scripts.Add("ip", plan.fabric, "link add ", plan.bridge[i],
                " type bridge stp_state 0 mcast_snooping 0");
    scripts.Add("ip", plan.fabric, "link set ", plan.bridge[i], " alias ", plan.spec.nodes[i].name,
                " up");
  }
}

void AddLinks(const Plan& plan, Scripts& scripts) {
  for (size_t i = 0; i < plan.spec.links.size(); ++i) {
    const int ends[] = {plan.spec.links[i].a, plan.spec.links[i].b};
    // Made where a switch is, if there is one, so that one script makes nearly all.
    const int near = plan.bridge[ends[0]].empty() ? 1 : 0;
    const Port& here = plan.ports[i][near];
    const Port& there = plan.ports[i][1 - near];
    scripts.Add("ip", here.netns, "link add ", here.interface, " type veth peer name ",
                there.interface, " netns ", there.netns);
  }
  for (size_t i = 0; i < plan.spec.links.size(); ++i) {
    const int ends[] = {plan.spec.links[i].a, plan.spec.links[i].b};
    for (const int side : {0, 1}) {
      const std::string& bridge = plan.bridge[ends[side]];
      if (bridge.empty()) continue;
      const std::string& port = plan.ports[i][side].interface;
      scripts.Add("ip", plan.fabric, "link set ", port, " master ", bridge, " up");
      scripts.Add("ip", plan.fabric, "link set ", port,
                  " type bridge_slave learning off flood off mcast_flood off bcast_flood off");
    }
  }
}

void AddHost(const Plan& plan, int host, Scripts& scripts) {
  const std::string& netns = plan.netns[host];
  // By route: what a namespace has as its default may only be chosen among those that the whole
  // machine allows to everybody.
  const std::string congestion =
      plan.spec.congestion.empty() ? "" : absl::StrCat(" congctl ", plan.spec.congestion);
  scripts.Add("ip", netns, "link set lo up");
  for (size_t i = 0; i < plan.spec.links.size(); ++i) {
    const Link& link = plan.spec.links[i];
    if (link.a != host && link.b != host) continue;
    // Every interface of a host has the host's one address, so that it is the same machine to all.
    // The first one leads to the whole network, the others to whom a route says.
    const std::string& port = plan.ports[i][link.a == host ? 0 : 1].interface;
    scripts.Add("ip", netns, "link set ", port, " address ", plan.mac[host], " up");
    scripts.Add("ip", netns, "addr add ", plan.address[host], port == kFirst ? "/16" : "/32",
                " dev ", port, " noprefixroute");
    if (port == kFirst) {
      scripts.Add("ip", netns, "route add 10.250.0.0/16 dev ", port, " scope link src ",
                  plan.address[host], congestion);
    }
  }
  for (const int other : Hosts(plan.spec)) {
    if (other == host) continue;
    const int link = plan.forwarding.link[host][other];
    const std::string& port = plan.ports[link][plan.spec.links[link].a == host ? 0 : 1].interface;
    if (port == kFirst) continue;
    scripts.Add("ip", netns, "route add ", plan.address[other], "/32 dev ", port, " src ",
                plan.address[host], congestion);
  }
}

void AddForwarding(const Plan& plan, Scripts& scripts) {
  for (size_t node = 0; node < plan.spec.nodes.size(); ++node) {
    if (plan.bridge[node].empty()) continue;
    for (const int host : Hosts(plan.spec)) {
      const int link = plan.forwarding.link[node][host];
      if (link < 0) continue;
      const int side = plan.spec.links[link].a == static_cast<int>(node) ? 0 : 1;
      scripts.Add("bridge", plan.fabric, "fdb replace ", plan.mac[host], " dev ",
                  plan.ports[link][side].interface, " master static");
    }
  }
}

}  // namespace

int64_t BurstBytes(int64_t rate_bits) {
  return std::max(rate_bits / 8 / 1000, 2 * kLargePacketBytes);
}

int64_t QueueBytes(int64_t rate_bits) {
  // 256 KiB at 200 Mbit/s, and in proportion.
  return std::max(kQueueBytesMin,
                  static_cast<int64_t>(static_cast<double>(rate_bits) / 8 * 0.0105));
}

Script NamespaceScript(const Plan& plan) {
  std::string text = absl::StrCat("netns add ", plan.fabric, "\n");
  for (const int host : Hosts(plan.spec)) {
    absl::StrAppend(&text, "netns add ", plan.netns[host], "\n");
  }
  return {"ip", "", text};
}

std::vector<Script> WiringScripts(const Plan& plan, const Settings& settings) {
  Scripts links;
  AddSwitches(plan, links);
  AddLinks(plan, links);
  Scripts rest;
  for (const int host : Hosts(plan.spec)) AddHost(plan, host, rest);
  for (const int from : Hosts(plan.spec)) {
    for (const int to : Hosts(plan.spec)) {
      if (from != to) Introduce(plan, from, to, settings.blocked.count({from, to}) != 0, rest);
    }
  }
  AddForwarding(plan, rest);
  for (size_t i = 0; i < plan.spec.links.size(); ++i) {
    for (const int direction : {0, 1}) {
      Shape(plan, static_cast<int>(i), direction, settings.links[i][direction], true, rest);
    }
  }
  std::vector<Script> scripts = links.Take();
  for (Script& script : rest.Take()) scripts.push_back(std::move(script));
  return scripts;
}

std::vector<Script> ChangeScripts(const Plan& plan, const Settings& before, const Settings& after) {
  Scripts scripts;
  for (size_t i = 0; i < plan.spec.links.size(); ++i) {
    for (const int direction : {0, 1}) {
      if (before.links[i][direction] == after.links[i][direction]) continue;
      Shape(plan, static_cast<int>(i), direction, after.links[i][direction], false, scripts);
    }
  }
  for (const auto& [from, to] : after.blocked) {
    if (before.blocked.count({from, to}) == 0) Introduce(plan, from, to, true, scripts);
  }
  for (const auto& [from, to] : before.blocked) {
    if (after.blocked.count({from, to}) == 0) Introduce(plan, from, to, false, scripts);
  }
  return scripts.Take();
}

}  // namespace syncopate::lab
