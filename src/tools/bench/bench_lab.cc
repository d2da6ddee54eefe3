#include "tools/bench/bench_lab.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "lab/forwarding.h"
#include "tools/command_line.h"

namespace syncopate::bench {
namespace {

// Of a core, to send or receive a message between hosts, with all that the kernel does for it.
constexpr double kMessageSeconds = 20e-6;
constexpr double kShareLeft = 0.5;     // by a flow without a rate
constexpr double kShareLeftMin = 0.1;  // TCP gives others some room, whatever a flow wants

// The life of the guard. It holds none of the command's files, or a reader of the command's output
// would wait for it.
[[noreturn]] void Guard(UniqueFd lifeline, const std::string& lab, const Clock& clock) {
  setsid();  // Ctrl-C is for the command
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_IGN);
  const int nothing = open("/dev/null", O_RDWR);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, fd);
  char byte = 0;
  while (read(lifeline.get(), &byte, 1) < 0 && errno == EINTR) {
  }
  lab::Lab::Down(lab, clock).IgnoreError();  // NotFound: the command has done it
  _exit(0);
}

}  // namespace

absl::StatusOr<std::unique_ptr<BenchLab>> BenchLab::Up(const lab::Spec& spec,
                                                       const std::string& name,
                                                       const Clock& clock) {
  auto bench_lab = std::unique_ptr<BenchLab>(new BenchLab(name, clock));
  SYNCOPATE_RETURN_IF_ERROR(bench_lab->StartGuard());
  SYNCOPATE_ASSIGN_OR_RETURN(lab::Lab lab, lab::Lab::Up(spec, name, clock));
  bench_lab->lab_ = std::make_unique<lab::Lab>(std::move(lab));
  return bench_lab;
}

absl::Status BenchLab::StartGuard() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return absl::UnavailableError(absl::StrCat("no pipe for the lab: ", std::strerror(errno)));
  }
  UniqueFd guards(ends[0]);
  lifeline_ = UniqueFd(ends[1]);
  guard_ = fork();
  if (guard_ == 0) {
    lifeline_.Reset();
    Guard(std::move(guards), name_, clock_);
  }
  if (guard_ < 0) {
    return absl::UnavailableError(absl::StrCat("cannot fork: ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

BenchLab::~BenchLab() {
  if (lab_ != nullptr) {
    const absl::Status down = lab::Lab::Down(name_, clock_);
    if (!down.ok()) Complain("bench", At(absl::StrCat("taking down lab ", name_), down));
  }
  lifeline_.Reset();
  if (guard_ > 0) waitpid(guard_, nullptr, 0);
}

Topology LoadedTopology(const lab::Spec& spec, int cores) {
  Topology topology = lab::DeclaredTopology(spec);
  const std::vector<int> devices = Devices(topology);
  const double hosts_a_core = static_cast<double>(devices.size()) / cores;
  for (const int device : devices) {
    topology.nodes[device].message_overhead = kMessageSeconds * std::max(1.0, hosts_a_core);
  }
  const absl::StatusOr<lab::Forwarding> forwarding = lab::ComputeForwarding(spec);
  if (!forwarding.ok()) return topology;  // not valid, so no lab
  for (const lab::BackgroundFlow& flow : spec.flows) {
    int here = flow.from;
    for (const int index : lab::Path(spec, *forwarding, flow.from, flow.to)) {
      const int next = lab::OtherEnd(spec.links[index], here);
      for (Topology::Link& link : topology.links) {
        if (topology.nodes[link.from].id != spec.nodes[here].name ||
            topology.nodes[link.to].id != spec.nodes[next].name) {
          continue;
        }
        double left = kShareLeft;
        if (flow.rate > 0) {
          left = 1 - static_cast<double>(flow.rate) / 8 * lab::kPayloadShare / link.bandwidth;
        }
        link.bandwidth *= std::max(left, kShareLeftMin);
        for (const int capacity : link.capacities) {
          topology.capacities[capacity].bandwidth = link.bandwidth;
        }
        break;
      }
      here = next;
    }
  }
  return topology;
}

}  // namespace syncopate::bench
