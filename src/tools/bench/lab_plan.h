// How a contestant's ranks come to the hosts of a lab: ours and Gloo by `syncopate launch`, Open
// MPI by its own launcher, which reaches the hosts through a small script.
#ifndef SYNCOPATE_TOOLS_BENCH_LAB_PLAN_H_
#define SYNCOPATE_TOOLS_BENCH_LAB_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lab/lab.h"

namespace syncopate::bench {

// The variable by which a rank that was launched learns which one it is.
inline constexpr const char* kRankVariable = "SYNCOPATE_RANK";

struct LabPlace {
  const lab::Lab* lab = nullptr;
  std::string syncopate;  // path of this command
  std::string agent;      // path of the script that AgentScript() is in
  std::string topology;   // path of the file that ours reads; empty: none
};

// What Open MPI calls as "ssh HOST COMMAND", for /bin/sh.
std::string AgentScript(const lab::Lab& lab, const std::string& syncopate);

// Words before a program that make each rank of a job run it on its host. The launcher itself runs
// on the first host, where all others reach it.
std::vector<std::string> LaunchInLab(const LabPlace& place, const std::vector<int>& slots);

// Words that make Open MPI's launcher run on the first host, and those after its name that make it
// start ranks on the others and use the lab's network only.
std::vector<std::string> BeforeMpirun(const LabPlace& place);
std::vector<std::string> MpirunWords(const LabPlace& place, const std::vector<int>& slots);

}  // namespace syncopate::bench

#endif  // SYNCOPATE_TOOLS_BENCH_LAB_PLAN_H_
