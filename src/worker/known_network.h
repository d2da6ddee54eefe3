// What a job on several hosts knows of its network that nobody has declared: what an earlier job of the same
// hosts has measured and kept, or what this one measures before it begins.
#ifndef SYNCOPATE_WORKER_KNOWN_NETWORK_H_
#define SYNCOPATE_WORKER_KNOWN_NETWORK_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/environment.h"
#include "model/topology.h"
#include "transport/transport.h"

namespace syncopate::worker {

// SYNCOPATE_PROBE.
struct ProbeChoice {
  enum class Mode : uint8_t {
    kKept,   // not set: what was measured before is used
    kOff,    // nor that
    kStart,  // measure before the job begins, unless it was measured before
    kFile,   // as SYNCOPATE_TOPO_FILE
  };
  Mode mode = Mode::kKept;
  std::string file = {};
};
ProbeChoice ResolveProbe(const Environment& environment);

// What all workers must have in common; empty: nothing.
std::string ProbeTerms(const ProbeChoice& choice);

struct KnownNetwork {
  Topology topology;   // worker i is on the i-th device
  std::string reason;  // how it is known, in a line for people
};

// What is kept of a network; nothing if there is nothing, or nothing that can be used, which is logged. `hosts` by
// rank.
std::optional<KnownNetwork> LoadKnownNetwork(const Environment& environment,
                                             const std::vector<std::string>& hosts);
absl::Status SaveKnownNetwork(const Environment& environment, const std::vector<std::string>& hosts,
                              const Topology& topology);

// All workers of the job call this before anything else uses the transport. Rank 0 gets what it knows, measured in
// kProbeSeconds or so unless it was kept; the others nothing.
inline constexpr double kProbeSeconds = 8;
absl::StatusOr<std::optional<KnownNetwork>> ProbeAtStart(transport::Transport& transport,
                                                         const Clock& clock,
                                                         const Environment& environment,
                                                         const std::vector<std::string>& hosts);

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_KNOWN_NETWORK_H_
