// Slurm's short form of a list of nodes: "node[01-03,7],login".
#ifndef SYNCOPATE_CONTROL_SLURM_NODES_H_
#define SYNCOPATE_CONTROL_SLURM_NODES_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace syncopate::control {

// The first node of the list, where Slurm starts rank 0: "node01".
absl::StatusOr<std::string> FirstSlurmNode(absl::string_view list);

}  // namespace syncopate::control

#endif  // SYNCOPATE_CONTROL_SLURM_NODES_H_
