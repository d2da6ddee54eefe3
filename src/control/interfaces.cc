#include "control/interfaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace syncopate::control {
namespace {

using Addresses = std::vector<InterfaceAddress>;

// Bridges to machines and containers inside this host: nobody outside reaches us by them.
constexpr const char* kInnerBridges[] = {"docker", "virbr", "lxcbr", "cni", "veth"};

bool IsInnerBridge(const std::string& name) {
  return std::any_of(std::begin(kInnerBridges), std::end(kInnerBridges),
                     [&](const char* prefix) { return absl::StartsWith(name, prefix); });
}

// Those of `list` that `wanted` accepts and that are up, one address for each name.
Addresses Select(const Addresses& list,
                 const std::function<bool(const InterfaceAddress&)>& wanted) {
  Addresses chosen;
  for (const InterfaceAddress& each : list) {
    if (!each.up || !wanted(each)) continue;
    auto same = std::find_if(chosen.begin(), chosen.end(),
                             [&](const InterfaceAddress& c) { return c.name == each.name; });
    if (same == chosen.end()) {
      chosen.push_back(each);
    } else if (same->ipv6 && !each.ipv6) {
      *same = each;
    }
  }
  return chosen;
}

// IPv4 first; the order is kept otherwise.
Addresses Ipv4First(Addresses list) {
  std::stable_partition(list.begin(), list.end(),
                        [](const InterfaceAddress& each) { return !each.ipv6; });
  return list;
}

Addresses ByDefault(const Addresses& list) {
  Addresses chosen = Ipv4First(Select(list, [](const InterfaceAddress& each) {
    return !each.loopback && !IsInnerBridge(each.name);
  }));
  if (chosen.empty()) {
    chosen = Ipv4First(Select(list, [](const InterfaceAddress& each) { return !each.loopback; }));
  }
  if (chosen.empty()) {
    chosen = Ipv4First(Select(list, [](const InterfaceAddress&) { return true; }));
  }
  if (chosen.size() > 1) chosen.resize(1);
  return chosen;
}

std::string Describe(const Addresses& list) {
  if (list.empty()) return "there is none";
  return absl::StrJoin(list, ", ", [](std::string* out, const InterfaceAddress& each) {
    absl::StrAppend(out, each.name, " (", each.address, each.up ? "" : ", down", ")");
  });
}

}  // namespace

absl::StatusOr<Addresses> ListInterfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot list the network interfaces: ", std::strerror(errno)));
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(first, freeifaddrs);
  Addresses list;
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    const int family = each->ifa_addr->sa_family;
    const void* bytes = nullptr;
    if (family == AF_INET) {
      bytes = &reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr;
    } else if (family == AF_INET6) {
      const auto* address = reinterpret_cast<const sockaddr_in6*>(each->ifa_addr);
      if (IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr)) continue;
      bytes = &address->sin6_addr;
    } else {
      continue;
    }
    char text[INET6_ADDRSTRLEN] = "";
    if (inet_ntop(family, bytes, text, sizeof(text)) == nullptr) continue;
    list.push_back({.name = each->ifa_name,
                    .address = text,
                    .up = (each->ifa_flags & IFF_UP) != 0,
                    .loopback = (each->ifa_flags & IFF_LOOPBACK) != 0,
                    .ipv6 = family == AF_INET6});
  }
  return list;
}

absl::StatusOr<Addresses> ChooseInterfaces(absl::string_view text, const Addresses& list) {
  absl::string_view rest = text;
  const bool exclude = absl::ConsumePrefix(&rest, "^");
  const bool exact = absl::ConsumePrefix(&rest, "=");
  const std::vector<std::string> names = absl::StrSplit(rest, ',', absl::SkipWhitespace());
  if (names.empty() && (exclude || exact)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", text, "\" names no interface; write for example eth0, =eth0, or ^lo,docker"));
  }
  const auto fits = [&](const InterfaceAddress& each, const std::string& name) {
    return exact ? each.name == name : absl::StartsWith(each.name, name);
  };
  Addresses chosen;
  if (names.empty()) {
    chosen = ByDefault(list);
  } else if (exclude) {
    chosen = Select(list, [&](const InterfaceAddress& each) {
      return std::none_of(names.begin(), names.end(),
                          [&](const std::string& name) { return fits(each, name); });
    });
  } else {
    for (const std::string& name : names) {
      for (InterfaceAddress& each :
           Select(list, [&](const InterfaceAddress& candidate) { return fits(candidate, name); })) {
        if (std::find(chosen.begin(), chosen.end(), each) == chosen.end()) chosen.push_back(each);
      }
    }
  }
  if (!chosen.empty()) return chosen;
  if (names.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no network interface is up and has an address (", Describe(list), ")"));
  }
  return absl::NotFoundError(
      absl::StrCat("\"", text, "\" fits no interface that is up; this host has: ", Describe(list),
                   "; change SYNCOPATE_SOCKET_IFNAME"));
}

double LinkBitsPerSecond(const std::string& interface) {
  std::ifstream file("/sys/class/net/" + interface + "/speed");
  double megabits = 0;
  return file >> megabits && megabits > 0 ? megabits * 1e6 : 0;
}

int ConnectionsFor(double link_bits_per_second) {
  constexpr double kEach = 10e9;
  constexpr int kMax = 8;
  return std::clamp(static_cast<int>(std::ceil(link_bits_per_second / kEach)), 1, kMax);
}

std::string JoinAddress(absl::string_view address, int port) {
  if (absl::StrContains(address, ':')) return absl::StrCat("[", address, "]:", port);
  return absl::StrCat(address, ":", port);
}

}  // namespace syncopate::control
