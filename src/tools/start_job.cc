#include "tools/start_job.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/own_path.h"
#include "base/parse.h"
#include "base/pidfd.h"
#include "base/progress.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "lab/scoped_lab.h"
#include "lab/spec.h"
#include "model/topology.h"
#include "tools/bench/loaded_topology.h"
#include "tools/bench/workspace.h"
#include "tools/command_line.h"
#include "tools/interrupt.h"

namespace syncopate::tools {
namespace {

constexpr const char* kProgressOnTerminal = "5s";

// `syncopate launch` or `syncopate lab run`, which speaks in the name of the sub-command `name`.
// `lab` is the name of one that is up, or empty.
absl::StatusOr<std::vector<std::string>> JobCommand(const JobPlace& place, const std::string& name,
                                                    const std::string& lab,
                                                    const std::vector<std::string>& program) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string self, OwnPath());
  std::vector<std::string> command = {self};
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) command.insert(command.end(), {option, value});
  };
  if (!lab.empty()) {
    command.insert(command.end(), {"lab", "run", "--no-tag"});
    add("--lab", lab);
  } else {
    command.insert(command.end(), {"launch", "--no-tag"});
    add("-H", place.hosts);
    add("--hostfile", place.hostfile);
    add("--agent", place.agent);
  }
  add("--in-name-of", name);
  if (place.goes_on) add("--on-failure", "continue");
  if (place.ranks > 0) add("-n", absl::StrCat(place.ranks));
  command.push_back("--");
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

// Becomes that command. Returns only if that fails.
absl::Status Become(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  return absl::FailedPreconditionError(
      absl::StrCat("cannot run ", words[0], ": ", strerror(errno)));
}

// Runs that command beside this one and returns its exit code. It has a process group of its own: a
// signal of the terminal comes to it once, from here. It is asked to end when this process dies.
absl::StatusOr<int> RunChild(const std::string& name, const std::vector<std::string>& command,
                             const InterruptScope& interrupt) {
  const pid_t parent = getpid();
  const pid_t job = fork();
  if (job < 0) return absl::UnavailableError(absl::StrCat("cannot fork: ", strerror(errno)));
  if (job == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(kFailed);
    _exit(Complain(name, Become(command)));
  }
  setpgid(job, job);  // whichever of the two is first
  const UniqueFd ended = OpenPidFd(job);
  pollfd polls[] = {{ended.get(), POLLIN, 0}, {interrupt.fd(), POLLIN, 0}};
  while (ended.ok() && polls[0].revents == 0) {
    if (poll(polls, std::size(polls), -1) < 0) continue;
    while (const int signal = interrupt.Take()) kill(job, signal);
  }
  int state = 0;
  while (waitpid(job, &state, 0) < 0) {
    if (errno != EINTR) return absl::InternalError(absl::StrCat("wait: ", strerror(errno)));
  }
  if (WIFEXITED(state)) return WEXITSTATUS(state);
  if (InterruptSignal() != 0) return Interrupted();  // it had no time to say so
  return kFailed;
}

// Where the job finds what the lab's file says of its network.
absl::StatusOr<std::unique_ptr<bench::Workspace>> DeclareTopology(const lab::Spec& spec) {
  SYNCOPATE_ASSIGN_OR_RETURN(std::unique_ptr<bench::Workspace> folder,
                             bench::Workspace::Make(bench::ScratchBase(ProcessEnvironment())));
  const std::string path = absl::StrCat(folder->path(), "/topology.json");
  const int cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  SYNCOPATE_RETURN_IF_ERROR(WriteFile(path, ToJson(bench::LoadedTopology(spec, cores))));
  setenv("SYNCOPATE_TOPO_FILE", path.c_str(), 1);
  return folder;
}

// Makes the lab of a file, runs the job in it, and takes it away.
absl::StatusOr<int> RunInLabOf(const JobPlace& place, const std::string& command_name,
                               const std::vector<std::string>& program) {
  SYNCOPATE_ASSIGN_OR_RETURN(const lab::Spec spec, lab::ReadLab(place.lab));
  const std::string name = absl::StrCat(command_name, "-", getpid());
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<std::string> command,
                             JobCommand(place, command_name, name, program));
  const InterruptScope interrupt;  // until everything else is cleaned up
  std::unique_ptr<bench::Workspace> folder;
  if (place.declared_topology && !ProcessEnvironment()("SYNCOPATE_TOPO_FILE")) {
    SYNCOPATE_ASSIGN_OR_RETURN(folder, DeclareTopology(spec));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<lab::ScopedLab> lab,
                             lab::ScopedLab::Up(spec, name, MonotonicClock()));
  if (InterruptSignal() != 0) return Interrupted();
  return RunChild(command_name, command, interrupt);
}

}  // namespace

bool IsLabFile(const std::string& lab) { return absl::StrContains(lab, '.'); }  // no name has one

void AddJobPlaceOptions(CLI::App& command, JobPlace& place) {
  auto* hosts = command.add_option("-H,--hosts", place.hosts, "Hosts, as `launch -H` has them")
                    ->type_name("HOST[:SLOTS],...");
  auto* hostfile =
      command.add_option("--hostfile", place.hostfile, "File with hosts, as `launch` reads it")
          ->type_name("FILE")
          ->excludes(hosts);
  command.add_option("--agent", place.agent, "How to run a command on a host (see launch)")
      ->type_name("CMD");
  command.add_option("-n,--ranks", place.ranks, "How many ranks (see launch)")
      ->check(WholeNumberFrom(1))
      ->type_name("N");
  command
      .add_option("--lab", place.lab, "In a lab: one that is up, or the one of a file, made for it")
      ->type_name("NAME|FILE.toml")
      ->excludes(hosts)
      ->excludes(hostfile);
}

absl::StatusOr<int> RunProgramAsJob(const JobPlace& place, const std::string& name,
                                    const std::vector<std::string>& program) {
  // The ranks write to a pipe, line by line. Where these lines end up on a terminal, more of them
  // are welcome.
  if (isatty(STDERR_FILENO) == 1) setenv(kProgressVariable, kProgressOnTerminal, 0);
  if (IsLabFile(place.lab)) return RunInLabOf(place, name, program);
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<std::string> command,
                             JobCommand(place, name, place.lab, program));
  const InterruptScope interrupt;
  return RunChild(name, command, interrupt);
}

absl::StatusOr<int> RunAsJob(const JobPlace& place, const std::vector<std::string>& words) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string self, OwnPath());
  std::vector<std::string> program = {self};
  program.insert(program.end(), words.begin(), words.end());
  return RunProgramAsJob(place, words.front(), program);
}

}  // namespace syncopate::tools
