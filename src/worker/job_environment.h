// Finds out the job, rank and size of this worker from the variables that its launcher set.
#ifndef SYNCOPATE_WORKER_JOB_ENVIRONMENT_H_
#define SYNCOPATE_WORKER_JOB_ENVIRONMENT_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/environment.h"
#include "syncopate/syncopate.h"

namespace syncopate::worker {

// The arguments of the nearest ancestor of this process whose program has the given name; nothing
// if there is none. A seam: MPICH's launcher tells a job's identity only on its own command line.
using FindAncestor =
    std::function<std::optional<std::vector<std::string>>(const std::string& program)>;

// Looks in /proc. `program` has at most 15 characters, as the kernel keeps no more of a name.
FindAncestor ProcessAncestors();

// Asks for the variables of `syncopate launch`, torchrun, Open MPI, PMI (MPICH and its relatives)
// and Slurm, in this order; docs/launch.md lists them. The first launcher whose variables are there
// is believed. Returns nothing if there is none: the worker is alone. A value that cannot be right
// is an InvalidArgument that names the variable, its value and the remedy.
absl::StatusOr<std::optional<Job>> JobFromEnvironment(
    const Environment& environment, const FindAncestor& find_ancestor = ProcessAncestors());

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_JOB_ENVIRONMENT_H_
