// An emulated cluster on this machine: hosts are network namespaces, switches are bridges, links
// are shaped. docs/lab.md says what it can do and what it leaves behind (nothing).
//
// Needs root. Commands of several processes may meet; a lock lets one at a time change labs.
#ifndef SYNCOPATE_LAB_LAB_H_
#define SYNCOPATE_LAB_LAB_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "lab/change.h"
#include "lab/plan.h"
#include "lab/spec.h"
#include "model/topology.h"

namespace syncopate::lab {

struct HostAddress {
  std::string name;
  std::string address;  // IPv4, reachable from the other hosts of the lab only
};

// A handle on a lab that is up; the lab stays up when it goes. Not thread-safe.
class Lab {
 public:
  // Makes a lab called spec.name, or `name` if that is not empty. All or nothing: after an error
  // nothing is left. AlreadyExists if one of that name is up. FailedPrecondition if this machine
  // cannot carry labs; the message says why.
  static absl::StatusOr<Lab> Up(const Spec& spec, const std::string& name, const Clock& clock);
  // One that is up; the only one if `name` is empty.
  static absl::StatusOr<Lab> Open(const std::string& name, const Clock& clock);
  // Ends all processes in a lab and takes it away. Works on what is left of a lab, whatever
  // happened to it. NotFound if there is no trace of it.
  static absl::Status Down(const std::string& name, const Clock& clock);

  const std::string& name() const { return plan_.spec.name; }
  const Plan& plan() const { return plan_; }
  // Those that run workers, in order: worker i of a job with one a host is on the i-th.
  std::vector<HostAddress> hosts() const;
  // Words before a command that make it run on a host; `syncopate` is that program's path.
  std::vector<std::string> ExecWords(const std::string& syncopate, const std::string& host) const;
  // For `syncopate launch`: what -H and --agent take.
  std::string HostsWithSlots(const std::vector<int>& slots) const;
  std::string Agent(const std::string& syncopate) const;

  // Makes a change and returns its name: `as`, or the next of its kind ("rate1", "cut2").
  absl::StatusOr<std::string> Apply(Change change, const std::string& as);
  absl::Status Undo(const std::string& change);
  // The changes that stand.
  absl::StatusOr<std::vector<Change>> Changes() const;

 private:
  Lab(Plan plan, const Clock* clock) : plan_(std::move(plan)), clock_(clock) {}

  Plan plan_;
  const Clock* clock_;
};

// How many workers each host gets: `workers` in all, or `per_host` each if that is 0. Neighbours
// stay together; the first hosts get one more where it does not divide evenly.
std::vector<int> SpreadSlots(int hosts, int workers, int per_host);

// The network that the spec declares: a device for each host that runs workers, a capacity for each
// direction of a link; rates are what TCP gets of the shaped ones.
inline constexpr double kPayloadShare = 0.956;
Topology DeclaredTopology(const Spec& spec);

// What goes through the shaper of a link after a pause, by link of DeclaredTopology(), in payload. A file that names
// no congestion control is taken for one with BBR, the default of the kernels that labs were measured on.
struct DeclaredBurst {
  double bytes = 0;      // at once; 0: the link is not shaped
  double bandwidth = 0;  // bytes a second meanwhile
};
std::vector<DeclaredBurst> DeclaredBursts(const Spec& spec);

// Puts the calling process on a host: its network, its name, its view of /sys and /etc/hosts, its
// limit of CPU time, its core. For a process that is about to become another program.
absl::Status BecomeHost(const std::string& lab, const std::string& host);

}  // namespace syncopate::lab

#endif  // SYNCOPATE_LAB_LAB_H_
