#include "lab/requirements.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "lab/child_process.h"
#include "lab/proc_file.h"

namespace syncopate::lab {
namespace {

// Measured on cores of a small server: all hosts of a lab in a ring at once, large packets.
constexpr double kBitsPerCore = 4.8e9;

struct Trial {
  const char* part;    // of the kernel
  const char* option;  // that builds it
  std::vector<std::string> words;
};

std::vector<Trial> Trials(const Spec& spec) {
  std::vector<Trial> trials = {
      {"virtual Ethernet pairs (veth)",
       "CONFIG_VETH",
       {"ip", "link", "add", "t0", "type", "veth", "peer", "name", "t1"}},
      {"bridges", "CONFIG_BRIDGE", {"ip", "link", "add", "t2", "type", "bridge"}},
      {"the shaper tbf",
       "CONFIG_NET_SCH_TBF",
       {"tc", "qdisc", "add", "dev", "t0", "root", "tbf", "rate", "10mbit", "burst", "15000",
        "limit", "15000"}},
  };
  if (std::any_of(spec.links.begin(), spec.links.end(),
                  [](const Link& link) { return link.delay > 0; })) {
    trials.push_back({"netem, which the delay in the lab's file needs",
                      "CONFIG_NET_SCH_NETEM; or take delay out of the file",
                      {"tc", "qdisc", "add", "dev", "t1", "root", "netem", "delay", "1ms"}});
  }
  return trials;
}

absl::Status CheckCongestion(const Spec& spec) {
  if (spec.congestion.empty()) return absl::OkStatus();
  const absl::StatusOr<std::string> known =
      ReadProcFile("/proc/sys/net/ipv4/tcp_available_congestion_control");
  if (!known.ok()) return known.status();
  const std::string padded = absl::StrCat(" ", known->substr(0, known->find('\n')), " ");
  if (padded.find(absl::StrCat(" ", spec.congestion, " ")) != std::string::npos) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat("this kernel has no congestion control \"",
                                                    spec.congestion, "\"; it has", padded));
}

// Tries in the calling process, which is a throw-away one in a fresh namespace; returns the index
// of the first part that is missing, or the number of parts.
int FirstMissing(const std::vector<Trial>& trials) {
  for (size_t i = 0; i < trials.size(); ++i) {
    if (!Run(trials[i].words, "").ok()) return static_cast<int>(i);
  }
  return static_cast<int>(trials.size());
}

}  // namespace

absl::Status CheckBasics() {
  if (geteuid() != 0) {
    return absl::FailedPreconditionError(
        "a lab is made of network namespaces, which only root may make; run this as root (sudo)");
  }
  for (const char* program : {"ip", "tc", "bridge"}) {
    if (FindProgram(program).empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the program ", program, " is missing; install iproute2 (apt-get install iproute2)"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckIperf() {
  if (!FindProgram("iperf3").empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "flows need the program iperf3, which is missing; install it (apt-get install iperf3)");
}

absl::Status CheckRequirements(const Spec& spec) {
  SYNCOPATE_RETURN_IF_ERROR(CheckBasics());
  SYNCOPATE_RETURN_IF_ERROR(CheckCongestion(spec));
  if (!spec.flows.empty()) SYNCOPATE_RETURN_IF_ERROR(CheckIperf());
  const std::vector<Trial> trials = Trials(spec);
  constexpr int kNoNamespace = 100;
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return absl::UnavailableError("no process can be started to try the kernel's parts");
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || unshare(CLONE_NEWNET) != 0) _exit(kNoNamespace);
    _exit(FirstMissing(trials));
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  const int missing = WIFEXITED(status) ? WEXITSTATUS(status) : kNoNamespace;
  if (missing == static_cast<int>(trials.size())) return absl::OkStatus();
  if (missing > static_cast<int>(trials.size())) {
    return absl::FailedPreconditionError(
        "no network namespace can be made here: the kernel lacks CONFIG_NET_NS, or this is a "
        "container without the capability SYS_ADMIN");
  }
  return absl::FailedPreconditionError(
      absl::StrCat("this kernel lacks ", trials[missing].part, " (", trials[missing].option, ")"));
}

double TrafficBitsMax(const Spec& spec) {
  double bits = 0;
  for (const Link& link : spec.links) {
    if (spec.nodes[link.a].is_host) bits += static_cast<double>(link.rate_forward);
    if (spec.nodes[link.b].is_host) bits += static_cast<double>(link.rate_back);
  }
  return bits;
}

std::string CpuLimitWarning(const Spec& spec, int cores) {
  const double asked = TrafficBitsMax(spec);
  const double carried = kBitsPerCore * cores;
  if (asked <= carried) return "";
  return absl::StrFormat(
      "the hosts can ask for %.1f Gbit/s in all, more than the %.1f Gbit/s or so that %d cores "
      "carry: the rates will not hold when all send at once; syncopate lab check measures it",
      asked / 1e9, carried / 1e9, cores);
}

}  // namespace syncopate::lab
