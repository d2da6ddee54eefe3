#include "tools/launch_options.h"

#include <sys/random.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/status.h"
#include "launch/agent_command.h"
#include "launch/agent_frames.h"
#include "launch/host_list.h"
#include "launch/launcher.h"
#include "launch/worker_process.h"
#include "tools/command_line.h"

namespace syncopate::tools {
namespace {

// Variables of ours, and of what we use between hosts, go to the other hosts unasked. The rest of
// this host's environment is not theirs.
constexpr const char* kForwarded[] = {"SYNCOPATE_", "UCX_", "OMP_", "GOMP_", "KMP_"};

absl::StatusOr<std::vector<std::string>> VariablesFor(const LaunchArguments& arguments) {
  std::vector<std::string> variables;
  for (const std::string& variable : launch::InheritedEnvironment()) {
    for (const char* prefix : kForwarded) {
      if (absl::StartsWith(variable, prefix)) variables.push_back(variable);
    }
  }
  std::vector<std::string> asked;
  for (const std::string& variable : arguments.variables) {
    if (variable.empty() || variable[0] == '=') {
      return absl::InvalidArgumentError("-x: a variable without a name; write NAME or NAME=value");
    }
    if (absl::StrContains(variable, '=')) {
      asked.push_back(variable);
      continue;
    }
    const std::optional<std::string> value = ProcessEnvironment()(variable);
    if (!value.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("-x: ", variable, " is not set; set it, or write ", variable, "=value"));
    }
    asked.push_back(absl::StrCat(variable, "=", *value));
  }
  if (!arguments.interfaces.empty()) {
    asked.push_back(absl::StrCat("SYNCOPATE_SOCKET_IFNAME=", arguments.interfaces));
  }
  return launch::WithVariables(variables, asked);
}

absl::Status AddHosts(const LaunchArguments& arguments, std::optional<int> ranks,
                      launch::LaunchOptions& options) {
  std::vector<launch::HostSlots> hosts;
  if (!arguments.hosts.empty()) {
    auto parsed = launch::ParseHostList(arguments.hosts);
    if (!parsed.ok()) return At("-H", parsed.status());
    hosts = *std::move(parsed);
  } else {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string text,
                               ReadFile(arguments.host_file, limits::kHostFileBytesMax));
    SYNCOPATE_ASSIGN_OR_RETURN(hosts, launch::ParseHostFile(arguments.host_file, text));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(options.hosts, launch::PlaceRanks(hosts, ranks));
  options.ranks = options.hosts.back().first_rank + options.hosts.back().ranks;
  options.agent = arguments.agent;
  options.interfaces = arguments.interfaces;
  if (options.interfaces.empty()) {
    options.interfaces = ProcessEnvironment()("SYNCOPATE_SOCKET_IFNAME").value_or("");
  }
  options.remote_program = arguments.remote_program;
  // Refused now rather than once for each host.
  const auto agent =
      launch::AgentCommand(options.agent, "host", false, {"x"}, options.host_timeout_ns);
  return agent.ok() ? absl::OkStatus() : At("--agent", agent.status());
}

// All but where the ranks run.
absl::StatusOr<launch::LaunchOptions> ToOptions(const LaunchArguments& arguments) {
  launch::LaunchOptions options;
  options.name = arguments.name;
  options.end_on_failure = arguments.on_failure == "end";
  if (!options.end_on_failure && arguments.on_failure != "continue") {
    return absl::InvalidArgumentError(
        absl::StrCat("--on-failure: \"", arguments.on_failure, "\" is neither end nor continue"));
  }
  if (!arguments.timeout.empty()) {
    absl::StatusOr<int64_t> timeout_ns = ParseDurationNs(arguments.timeout);
    if (!timeout_ns.ok()) return At("--timeout", timeout_ns.status());
    options.timeout_ns = *timeout_ns;
    options.timeout_text = arguments.timeout;
  }
  absl::StatusOr<int64_t> grace_ns = ParseDurationNs(arguments.grace);
  if (!grace_ns.ok()) return At("--grace", grace_ns.status());
  options.grace_ns = *grace_ns;
  absl::StatusOr<int64_t> start_timeout_ns = ParseDurationNs(arguments.start_timeout);
  if (!start_timeout_ns.ok()) return At("--start-timeout", start_timeout_ns.status());
  options.start_timeout_ns = *start_timeout_ns;
  options.start_timeout_text = arguments.start_timeout;
  absl::StatusOr<int64_t> host_timeout_ns = ParseDurationNs(arguments.host_timeout);
  if (!host_timeout_ns.ok()) return At("--host-timeout", host_timeout_ns.status());
  if (*host_timeout_ns < launch::kHostTimeoutNsMin) {
    return absl::InvalidArgumentError(absl::StrCat("--host-timeout: \"", arguments.host_timeout,
                                                   "\" is too short; use 1s or more"));
  }
  options.host_timeout_ns = *host_timeout_ns;
  options.host_timeout_text = arguments.host_timeout;
  options.tag = !arguments.no_tag;
  SYNCOPATE_ASSIGN_OR_RETURN(options.variables, VariablesFor(arguments));
  options.command = arguments.command;
  if (options.command.empty() || options.command.front().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no program to run; write it after the options, as in syncopate ",
                     arguments.name, arguments.name == "launch" ? " -n 4" : "", " -- ./program"));
  }
  return options;
}

absl::Status PlaceRanks(const LaunchArguments& arguments, launch::LaunchOptions& options) {
  const bool many_hosts = NamesHosts(arguments);
  std::optional<int> ranks;
  if (!many_hosts || !arguments.ranks.empty()) {
    if (arguments.ranks.empty()) {
      return absl::InvalidArgumentError(
          "how many ranks? -n 4 runs four on this machine, -H node1:4,node2:4 uses hosts");
    }
    absl::StatusOr<int64_t> count =
        ParseInt(arguments.ranks, 1, many_hosts ? limits::kWorkersMax : limits::kLocalWorkersMax);
    if (!count.ok()) return At("-n", count.status());
    ranks = static_cast<int>(*count);
    options.ranks = *ranks;
  }
  return many_hosts ? AddHosts(arguments, ranks, options) : absl::OkStatus();
}

absl::StatusOr<std::string> UniqueJob() {
  uint64_t random[2];
  if (getrandom(random, sizeof(random), 0) != sizeof(random)) {
    return absl::UnavailableError("the system gives no random numbers; try again");
  }
  return absl::StrFormat("launch-%016x%016x", random[0], random[1]);
}

absl::StatusOr<launch::LaunchOptions> WholeOptions(const LaunchArguments& arguments) {
  SYNCOPATE_ASSIGN_OR_RETURN(launch::LaunchOptions options, ToOptions(arguments));
  SYNCOPATE_RETURN_IF_ERROR(PlaceRanks(arguments, options));
  SYNCOPATE_ASSIGN_OR_RETURN(options.job, UniqueJob());
  return options;
}

}  // namespace

void AddLaunchOptions(CLI::App& command, LaunchArguments& arguments) {
  command.add_option("-n,--ranks", arguments.ranks, "How many ranks; with hosts: all their slots")
      ->type_name("N");
  auto* hosts = command.add_option("-H,--host", arguments.hosts, "Hosts and their slots")
                    ->type_name("HOST[:SLOTS],...");
  command.add_option("--hostfile", arguments.host_file, "A file with a host a line: node1 slots=4")
      ->type_name("FILE")
      ->excludes(hosts);
  command
      .add_option("--agent", arguments.agent,
                  "How to run a command on a host; the default is ssh in batch mode")
      ->type_name("\"CMD {host}\"");
  command
      .add_option("--interface", arguments.interfaces,
                  "Network interfaces to use, as SYNCOPATE_SOCKET_IFNAME has them")
      ->type_name("IF");
  command
      .add_option("--remote-syncopate", arguments.remote_program,
                  "The syncopate command on the hosts; the default is this one's path")
      ->type_name("PATH");
  command
      .add_option(
          "--start-timeout", arguments.start_timeout,
          "Longest time for hosts to start, and for all ranks to meet once the first has come")
      ->type_name("TIME")
      ->capture_default_str();
  command
      .add_option(
          "--host-timeout", arguments.host_timeout,
          "Longest silence of a host before it is lost, and of ours before hosts end their ranks")
      ->type_name("TIME")
      ->capture_default_str();
  command
      .add_option(
          "-x,--export", arguments.variables,
          "A variable for the ranks; hosts get SYNCOPATE_*, UCX_*, OMP_*, GOMP_* and KMP_* anyway")
      ->type_name("NAME[=VALUE]")
      ->take_all()
      ->allow_extra_args(false);  // one each time: the next word may be the program
  command
      .add_option("--on-failure", arguments.on_failure,
                  "When a rank fails: end the others, or let them continue")
      ->type_name("end|continue")
      ->capture_default_str();
  command.add_option("--timeout", arguments.timeout, "End all if not done by then: 90s, 10m, 2h")
      ->type_name("TIME");
  command
      .add_option("--grace", arguments.grace, "Time between asking a rank to end and killing it")
      ->type_name("TIME")
      ->capture_default_str();
  auto* no_tag =
      command.add_flag("--no-tag", arguments.no_tag, "Lines of output do not carry their rank");
  command.add_flag("--tag-output", arguments.tag, "Lines of output carry their rank (the default)")
      ->excludes(no_tag);
  // For commands that run as jobs (tools/start_job.h).
  command.add_option("--in-name-of", arguments.name)->group("");
  command.prefix_command();
}

bool NamesHosts(const LaunchArguments& arguments) {
  return !arguments.hosts.empty() || !arguments.host_file.empty();
}

absl::Status CheckLaunch(const LaunchArguments& arguments) { return ToOptions(arguments).status(); }

int RunLaunch(const LaunchArguments& arguments) {
  const absl::StatusOr<launch::LaunchOptions> options = WholeOptions(arguments);
  if (!options.ok()) return Complain(arguments.name, options.status());
  return launch::Launch(*options, MonotonicClock());
}

}  // namespace syncopate::tools
