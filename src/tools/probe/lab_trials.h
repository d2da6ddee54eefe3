// Tries the probe on random labs whose shape is known and tells how well it did.
#ifndef SYNCOPATE_TOOLS_PROBE_LAB_TRIALS_H_
#define SYNCOPATE_TOOLS_PROBE_LAB_TRIALS_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/progress.h"
#include "lab/spec.h"
#include "probe/shape.h"

namespace syncopate::tools {

struct TrialsOptions {
  int labs = 20;
  uint64_t seed = 1;
  int64_t nic_bits = 200'000'000;  // bit/s of most hosts
  double budget_seconds = 0;       // chosen by the number of hosts
  int cancel_fd = -1;              // readable: no more of it
};

struct TrialRow {
  uint64_t seed = 0;
  int hosts = 0;
  int racks = 0;
  bool racks_right = false;
  int capacities = 0;
  int within = 0;  // 10 %
  double seconds = 0;
  int experiments = 0;
  std::vector<std::string> notes;  // what was found wrong, and whether the machine was disturbed
};

// The lab whose shape `shape` is: a switch a rack below one called "core".
lab::Spec LabOf(const probe::NetworkShape& shape, const std::string& name);

// Makes the labs one after the other, probes each and takes it down; a line for each as it comes.
// `progress` must have no thread: the workers are forked. Needs root.
absl::StatusOr<std::vector<TrialRow>> RunLabTrials(const TrialsOptions& options, const Clock& clock,
                                                   Progress& progress, std::ostream& out);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_PROBE_LAB_TRIALS_H_
