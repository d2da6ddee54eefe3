// Runs a program as the N ranks of a job, on this machine or on many hosts.
//
// Two processes watch over the job, so that nothing of it outlives the launcher however that ends:
//
//   launcher ── supervisor ─┬─ rank 0 ── …
//                       └─ rank 1 ── …
//
// The supervisor starts the ranks, passes their output on and ends them. Both are child subreapers:
// whatever a rank leaves behind becomes a child of the supervisor and, if the supervisor is killed,
// of the launcher. If one of the two dies, the other kills all that is below; a rank also dies with
// the supervisor by itself. What escapes is only what ranks have forked, and only if both are
// killed at the same moment; the supervisor has a session of its own, so no signal to a group or
// terminal does that.
//
// In a job of many hosts the supervisor's children are agents (ssh), one for each host, and at the
// far end of each stands such a pair again:
//
//   launcher ── supervisor ── agent …… launcher' ── supervisor' ─┬─ rank 4
//                                                        └─ rank 5
//
// The far pair ends everything when its agent, and so its standard input, goes. Where the network
// goes silently nothing ends, so supervisor and supervisor' also send each other signs of life
// (launch/heartbeat.h): without them the one holds the host for lost, and the other ends its ranks.
#ifndef SYNCOPATE_LAUNCH_LAUNCHER_H_
#define SYNCOPATE_LAUNCH_LAUNCHER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "launch/host_list.h"

namespace syncopate::launch {

struct LaunchOptions {
  std::string job;              // its id: unique on this machine
  std::string name = "launch";  // of the command in whose name is spoken
  int ranks = 1;
  std::vector<std::string> command;    // the program and its arguments; not empty
  std::optional<int64_t> timeout_ns;   // nothing: as long as it takes
  std::string timeout_text;            // as the user wrote it
  int64_t grace_ns = 2'000'000'000;    // between asking a rank to end and killing it
  bool tag = true;                     // lines of output carry the rank
  bool end_on_failure = true;          // the first rank that fails ends the others
  std::vector<std::string> variables;  // "NAME=value", for all ranks

  // Only for jobs of many hosts; `ranks` is their sum then.
  std::vector<HostRanks> hosts;
  std::string agent;           // "CMD {host}"; empty: ssh
  std::string interfaces;      // as SYNCOPATE_SOCKET_IFNAME has it; empty: the default
  std::string remote_program;  // the syncopate command on the hosts
  int64_t start_timeout_ns = 120'000'000'000;
  std::string start_timeout_text = "2m";
  // How long a host may be silent for the launcher, or the launcher for a host.
  int64_t host_timeout_ns = 60'000'000'000;
  std::string host_timeout_text = "60s";
};

// Returns the exit code (ExitCode() of launch/outcome.h) after it has said on standard error
// what went wrong, if anything did. When it returns, no process of the job is left. The calling
// process must have one thread only.
int Launch(const LaunchOptions& options, const Clock& clock);

// The part of Launch() that runs on another host: starts the ranks that the launcher tells on
// standard input, and says on standard output what becomes of them (launch/agent_frames.h).
// When standard input ends, everything does. Conditions as above.
int LaunchRemote(const Clock& clock);

}  // namespace syncopate::launch

#endif  // SYNCOPATE_LAUNCH_LAUNCHER_H_
