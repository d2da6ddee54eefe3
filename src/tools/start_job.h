// Commands that run as a job of this very program: on this machine, on named hosts, or in a lab,
// which may be made for it.
#ifndef SYNCOPATE_TOOLS_START_JOB_H_
#define SYNCOPATE_TOOLS_START_JOB_H_

#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"

namespace syncopate::tools {

// Where to run, as on the command line.
struct JobPlace {
  int ranks = 0;                       // 0: as many as the hosts have slots
  std::string hosts, hostfile, agent;  // as `launch` has them
  std::string lab;                     // the name of one that is up, or a file
  bool declared_topology = false;      // in the lab of a file: plan by what the file says
  bool goes_on = false;                // the other ranks go on without one that is lost

  // Whether something was given; otherwise this process may be part of a job already.
  bool given() const { return ranks > 0 || !hosts.empty() || !hostfile.empty() || !lab.empty(); }
};

// Whether a job's lab is given as a file, rather than by the name of one that is up.
bool IsLabFile(const std::string& lab);

// -H, --hostfile, --agent, -n, --lab. `place` must outlive the parsing.
void AddJobPlaceOptions(CLI::App& command, JobPlace& place);

// Every rank of a new job runs this program with `words` (the sub-command first). Returns the exit
// code of the job, which has said itself what went wrong. Signals that would end this process go to
// the job instead (tools/interrupt.h).
absl::StatusOr<int> RunAsJob(const JobPlace& place, const std::vector<std::string>& words);
// Every rank of a new job runs `program`, its path first; `name` is that of the sub-command. What
// is returned is as of RunAsJob().
absl::StatusOr<int> RunProgramAsJob(const JobPlace& place, const std::string& name,
                                    const std::vector<std::string>& program);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_START_JOB_H_
