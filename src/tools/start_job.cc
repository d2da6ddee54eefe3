#include "tools/start_job.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/own_path.h"
#include "base/parse.h"
#include "base/status.h"
#include "lab/scoped_lab.h"
#include "lab/spec.h"
#include "model/topology.h"
#include "tools/bench/loaded_topology.h"
#include "tools/bench/workspace.h"
#include "tools/command_line.h"

namespace syncopate::tools {
namespace {

// `syncopate launch` or `syncopate lab run`. `lab` is the name of one that is up, or empty.
absl::StatusOr<std::vector<std::string>> JobCommand(const JobPlace& place, const std::string& lab,
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

// Where the job finds what the lab's file says of its network.
absl::StatusOr<std::unique_ptr<bench::Workspace>> DeclareTopology(const lab::Spec& spec) {
  const char* base = access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
  SYNCOPATE_ASSIGN_OR_RETURN(std::unique_ptr<bench::Workspace> folder,
                             bench::Workspace::Make(base));
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
                             JobCommand(place, name, program));
  std::unique_ptr<bench::Workspace> folder;
  if (place.declared_topology && !ProcessEnvironment()("SYNCOPATE_TOPO_FILE")) {
    SYNCOPATE_ASSIGN_OR_RETURN(folder, DeclareTopology(spec));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<lab::ScopedLab> lab,
                             lab::ScopedLab::Up(spec, name, MonotonicClock()));
  const pid_t job = fork();
  if (job < 0) return absl::UnavailableError(absl::StrCat("cannot fork: ", strerror(errno)));
  if (job == 0) _exit(Complain(command_name, Become(command)));
  int state = 0;
  while (waitpid(job, &state, 0) < 0) {
    if (errno != EINTR) return absl::InternalError(absl::StrCat("wait: ", strerror(errno)));
  }
  return WIFEXITED(state) ? WEXITSTATUS(state) : kFailed;
}

}  // namespace

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
  if (absl::StrContains(place.lab, '.')) {  // no lab's name has one
    return RunInLabOf(place, name, program);
  }
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<std::string> command,
                             JobCommand(place, place.lab, program));
  return Become(std::move(command));
}

absl::StatusOr<int> RunAsJob(const JobPlace& place, const std::vector<std::string>& words) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string self, OwnPath());
  std::vector<std::string> program = {self};
  program.insert(program.end(), words.begin(), words.end());
  return RunProgramAsJob(place, words.front(), program);
}

}  // namespace syncopate::tools
