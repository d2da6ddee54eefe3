// How a contestant's ranks come to the hosts of a lab: ours and Gloo by `syncopate launch`, Open
// MPI by its own launcher, which reaches the hosts through a small script.
#ifndef SYNCOPATE_TOOLS_BENCH_LAB_PLAN_H_
#define SYNCOPATE_TOOLS_BENCH_LAB_PLAN_H_

#include <string>
#include <vector>

#include "lab/lab.h"

namespace syncopate::tools::bench {

// The variable by which a rank that was launched learns which one it is.
inline constexpr const char* kRankVariable = "SYNCOPATE_RANK";

struct LabPlace {
  std::vector<std::string> exec;     // words before a command that runs on the lab's first host
  std::vector<std::string> launch;   // words before a command that every rank runs on its host
  std::string hosts;                 // with their slots: "h0:2,h1:2"
  std::vector<std::string> host_of;  // by rank
  std::string agent;                 // path of the file that AgentScript() is in
  std::string topology;              // path of the file that ours reads; empty: none
};

// `syncopate` is the path of this command, `slots` the workers on each host.
LabPlace PlaceInLab(const lab::Lab& lab, const std::string& syncopate,
                    const std::vector<int>& slots);

// What Open MPI calls as "ssh HOST COMMAND", for /bin/sh.
std::string AgentScript(const std::string& lab, const std::string& syncopate);

// Words before a program that make each rank of a job run it. The launcher itself runs on the first
// host, where all others reach it.
std::vector<std::string> LaunchInLab(const LabPlace& place);

// Words after the name of Open MPI's launcher that make it start ranks on the hosts.
std::vector<std::string> MpirunWords(const LabPlace& place);

}  // namespace syncopate::tools::bench

#endif  // SYNCOPATE_TOOLS_BENCH_LAB_PLAN_H_
