// How a lab is laid out on this machine: which network namespace, interface, address and hardware
// address each part gets. A pure function of the lab, so that every command computes the same.
//
// Namespaces are called "sy.LAB" (all switches) and "sy.LAB.HOST"; names of labs and hosts have no
// dot, so no two labs can clash. The addresses live inside the namespaces only.
#ifndef SYNCOPATE_LAB_PLAN_H_
#define SYNCOPATE_LAB_PLAN_H_

#include <array>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "lab/forwarding.h"
#include "lab/spec.h"

namespace syncopate::lab {

// One end of a link.
struct Port {
  std::string netns;
  std::string interface;
};

struct Plan {
  Spec spec;
  Forwarding forwarding;
  std::string fabric;                      // the namespace of the switches
  std::vector<std::string> netns;          // by node
  std::vector<std::string> bridge;         // by node; empty for hosts
  std::vector<std::string> address;        // by node; empty for switches
  std::vector<std::string> mac;            // by node; empty for switches
  std::vector<std::array<Port, 2>> ports;  // by link: at a, at b
};

// `spec` must be valid; its name is the lab's.
Plan MakePlan(const Spec& spec);

std::string FabricNamespace(absl::string_view lab);
std::string HostNamespace(absl::string_view lab, absl::string_view host);
// Whether a namespace of this name is part of the lab.
bool IsNamespaceOf(absl::string_view lab, absl::string_view netns);
// The lab that a namespace of this name is part of; empty if none.
std::string LabOfNamespace(absl::string_view netns);

// All hosts by name, as /etc/hosts has them.
std::string HostsFile(const Plan& plan);

}  // namespace syncopate::lab

#endif  // SYNCOPATE_LAB_PLAN_H_
