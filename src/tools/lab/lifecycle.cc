// Labs come, go, and are listed; programs run on their hosts.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/figures.h"
#include "base/limits.h"
#include "base/own_path.h"
#include "base/parse.h"
#include "base/status.h"
#include "lab/child_process.h"
#include "lab/lab.h"
#include "lab/netns.h"
#include "lab/requirements.h"
#include "lab/state.h"
#include "nlohmann/json.hpp"
#include "tools/command_line.h"
#include "tools/lab/actions.h"

namespace syncopate::tools::labtool {
namespace {

constexpr int kCannotRun = 126;  // as shells have it
constexpr int kNoSuchProgram = 127;

// The lab's own message if the host is not there.
absl::Status GoTo(const std::string& lab, const std::string& host) {
  SYNCOPATE_RETURN_IF_ERROR(lab::CheckBasics());
  const absl::Status there = lab::BecomeHost(lab, host);
  if (!absl::IsNotFound(there)) return there;
  SYNCOPATE_ASSIGN_OR_RETURN(const lab::State state, lab::LoadState(lab));
  SYNCOPATE_RETURN_IF_ERROR(lab::FindHost(state.spec, host).status());
  return absl::FailedPreconditionError(
      absl::StrCat("lab ", lab, " is only half there; clean up with syncopate lab down ", lab));
}

// Becomes the program; returns the exit code if it cannot.
int Become(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  execvp(pointers[0], pointers.data());
  const int error = errno;
  std::cerr << absl::StrCat("syncopate lab: ", words[0], " cannot be run: ", strerror(error), "\n");
  return error == ENOENT ? kNoSuchProgram : kCannotRun;
}

// The hosts that the user names are those of the lab; without, all that run workers take part.
absl::Status ChooseHosts(const lab::Lab& chosen, const std::string& slots_text,
                         LaunchArguments& launch) {
  if (NamesHosts(launch)) return absl::OkStatus();
  int workers = 0;
  int slots = 1;
  if (!launch.ranks.empty()) {
    const absl::StatusOr<int64_t> number = ParseInt(launch.ranks, 1, limits::kWorkersMax);
    if (!number.ok()) return At("-n", number.status());
    workers = static_cast<int>(*number);
  }
  if (!slots_text.empty()) {
    const absl::StatusOr<int64_t> number = ParseInt(slots_text, 1, limits::kLocalWorkersMax);
    if (!number.ok()) return At("--slots", number.status());
    slots = static_cast<int>(*number);
  }
  const int hosts = static_cast<int>(chosen.hosts().size());
  launch.hosts = chosen.HostsWithSlots(lab::SpreadSlots(hosts, workers, slots));
  return absl::OkStatus();
}

// The job that `syncopate launch` would run on the lab's hosts.
absl::StatusOr<LaunchArguments> JobInLab(const Arguments& arguments) {
  LaunchArguments launch = arguments.launch;
  SYNCOPATE_RETURN_IF_ERROR(CheckLaunch(launch));
  SYNCOPATE_ASSIGN_OR_RETURN(const lab::Lab chosen,
                             lab::Lab::Open(arguments.lab, MonotonicClock()));
  SYNCOPATE_RETURN_IF_ERROR(ChooseHosts(chosen, arguments.slots, launch));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string self, OwnPath());
  if (launch.agent.empty()) launch.agent = chosen.Agent(self);
  // The launcher is on the first host, so that all others reach it.
  SYNCOPATE_RETURN_IF_ERROR(GoTo(chosen.name(), chosen.hosts().front().name));
  return launch;
}

absl::StatusOr<std::vector<std::string>> LabsToTakeDown(const Arguments& arguments) {
  if (!arguments.all) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string name, lab::ResolveName(arguments.lab));
    return std::vector<std::string>{name};
  }
  if (!arguments.lab.empty()) {
    return absl::InvalidArgumentError("give either the name of a lab or --all");
  }
  return lab::LabNames();
}

}  // namespace

int Up(const Arguments& arguments) {
  const absl::StatusOr<lab::Spec> spec = lab::ReadLab(arguments.file);
  if (!spec.ok()) return Complain("lab up", spec.status());
  const absl::StatusOr<lab::Lab> made = lab::Lab::Up(*spec, arguments.name, MonotonicClock());
  if (!made.ok()) return Complain("lab up", made.status());
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const std::string warning = lab::CpuLimitWarning(*spec, cores);
  if (!warning.empty()) std::cerr << absl::StrCat("syncopate lab up: note: ", warning, "\n");
  const std::vector<lab::HostAddress> hosts = made->hosts();
  std::cout << absl::StrCat("lab ", made->name(), " is up: ", CountOf(hosts.size(), "host"), ", ",
                            hosts.front().name, " (", hosts.front().address, ") to ",
                            hosts.back().name, " (", hosts.back().address, ")\n");
  return kDone;
}

int Down(const Arguments& arguments) {
  const absl::StatusOr<std::vector<std::string>> names = LabsToTakeDown(arguments);
  if (!names.ok()) return Complain("lab down", names.status());
  int code = kDone;
  for (const std::string& name : *names) {
    const absl::Status done = lab::Lab::Down(name, MonotonicClock());
    if (!done.ok()) {
      code = Complain("lab down", done);
    } else {
      std::cout << absl::StrCat("lab ", name, " is gone\n");
    }
  }
  return code;
}

int List(const Arguments& arguments) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  const std::vector<std::string> names = lab::LabNames();
  if (names.empty() && !arguments.json) {
    std::cout << "no lab is up; start one with syncopate lab up FILE.toml, for example "
                 "labs/two-racks.toml\n";
  }
  for (const std::string& name : names) {
    const absl::StatusOr<lab::State> state = lab::LoadState(name);
    const bool complete = state.ok() && state->complete;
    const size_t hosts = state.ok() ? lab::Hosts(state->spec).size() : 0;
    const size_t changes = state.ok() ? state->changes.size() : 0;
    if (arguments.json) {
      rows.push_back({{"lab", name}, {"up", complete}, {"hosts", hosts}, {"changes", changes}});
    } else if (complete) {
      std::cout << absl::StrCat(name, "  ", CountOf(hosts, "host"), ", ",
                                CountOf(changes, "change"), "\n");
    } else {
      std::cout << absl::StrCat(name, "  half made; clean up with syncopate lab down ", name, "\n");
    }
  }
  if (arguments.json) std::cout << rows.dump(1) << "\n";
  return kDone;
}

int PrintTopology(const Arguments& arguments) {
  const absl::StatusOr<lab::Spec> spec = lab::ReadLab(arguments.file);
  if (!spec.ok()) return Complain("lab topology", spec.status());
  std::cout << ToJson(lab::DeclaredTopology(*spec));
  return kDone;
}

int Exec(const Arguments& arguments) {
  std::vector<std::string> words = arguments.words;
  if (words.size() > 1 && words[1] == "--") words.erase(words.begin() + 1);
  if (words.size() < 2) {
    return Complain("lab exec", absl::InvalidArgumentError(
                                    "name a host and a program: syncopate lab exec h0 -- ip addr"));
  }
  const absl::StatusOr<std::string> lab = lab::ResolveName(arguments.lab);
  if (!lab.ok()) return Complain("lab exec", lab.status());
  const absl::Status there = GoTo(*lab, words[0]);
  if (!there.ok()) return Complain("lab exec", there);
  words.erase(words.begin());
  return Become(words);
}

int RunJob(const Arguments& arguments) {
  const absl::StatusOr<LaunchArguments> launch = JobInLab(arguments);
  return launch.ok() ? RunLaunch(*launch) : Complain(arguments.launch.name, launch.status());
}

}  // namespace syncopate::tools::labtool
