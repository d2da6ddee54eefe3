// Which way packets take through a lab. Labs learn nothing from traffic: every switch and every
// host is told where each host is, so that any graph of switches works (bridges that learn would
// need a tree), and nothing but the users' own packets travels.
#ifndef SYNCOPATE_LAB_FORWARDING_H_
#define SYNCOPATE_LAB_FORWARDING_H_

#include <vector>

#include "absl/status/statusor.h"
#include "lab/spec.h"

namespace syncopate::lab {

struct Forwarding {
  // link[node][target]: the link that a packet for node `target` (a host) takes from `node`; -1 for
  // the target itself, for targets that are switches, and where there is no way.
  std::vector<std::vector<int>> link;
};

// Ways of fewest links, through switches only; equal ones by the order of the links.
// InvalidArgument if two hosts cannot reach each other. The references in `spec` must be valid.
absl::StatusOr<Forwarding> ComputeForwarding(const Spec& spec);

// The links from one host to another, in order.
std::vector<int> Path(const Spec& spec, const Forwarding& forwarding, int from, int to);

// The node at the other end.
inline int OtherEnd(const Link& link, int node) { return link.a == node ? link.b : link.a; }

}  // namespace syncopate::lab

#endif  // SYNCOPATE_LAB_FORWARDING_H_
