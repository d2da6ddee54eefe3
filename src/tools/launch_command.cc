#include "tools/launch_command.h"

#include <sys/random.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/status.h"
#include "tools/command_line.h"
#include "tools/launch/launcher.h"

namespace syncopate {
namespace {

struct LaunchArguments {
  std::string ranks;
  std::string timeout;
  std::string grace = "2s";
  bool tag = false;
  bool no_tag = false;
  std::vector<std::string> command;
};

absl::StatusOr<LaunchOptions> ToOptions(const LaunchArguments& arguments) {
  LaunchOptions options;
  absl::StatusOr<int64_t> ranks = ParseInt(arguments.ranks, 1, limits::kLocalWorkersMax);
  if (!ranks.ok()) return At("-n", ranks.status());
  options.ranks = static_cast<int>(*ranks);
  if (!arguments.timeout.empty()) {
    absl::StatusOr<int64_t> timeout_ns = ParseDurationNs(arguments.timeout);
    if (!timeout_ns.ok()) return At("--timeout", timeout_ns.status());
    options.timeout_ns = *timeout_ns;
    options.timeout_text = arguments.timeout;
  }
  absl::StatusOr<int64_t> grace_ns = ParseDurationNs(arguments.grace);
  if (!grace_ns.ok()) return At("--grace", grace_ns.status());
  options.grace_ns = *grace_ns;
  options.tag = !arguments.no_tag;
  options.command = arguments.command;
  if (options.command.empty() || options.command.front().empty()) {
    return absl::InvalidArgumentError(
        "no program to run; write it after the options, as in syncopate launch -n 4 -- ./program");
  }
  return options;
}

absl::StatusOr<std::string> UniqueJob() {
  uint64_t random[2];
  if (getrandom(random, sizeof(random), 0) != sizeof(random)) {
    return absl::UnavailableError("the system gives no random numbers; try again");
  }
  return absl::StrFormat("launch-%016x%016x", random[0], random[1]);
}

int RunLaunch(const LaunchArguments& arguments) {
  absl::StatusOr<LaunchOptions> options = ToOptions(arguments);
  if (!options.ok()) return Complain("launch", options.status());
  absl::StatusOr<std::string> job = UniqueJob();
  if (!job.ok()) return Complain("launch", job.status());
  options->job = *job;
  return Launch(*options, MonotonicClock());
}

}  // namespace

void AddLaunchCommand(CLI::App& app, int& exit_code) {
  CLI::App* launch =
      app.add_subcommand("launch", "Run a program as the ranks of a job on this machine");
  auto arguments = std::make_shared<LaunchArguments>();
  launch->add_option("-n,--ranks", arguments->ranks, "How many ranks")->required()->type_name("N");
  launch->add_option("--timeout", arguments->timeout, "End all if not done by then: 90s, 10m, 2h")
      ->type_name("TIME");
  launch->add_option("--grace", arguments->grace, "From asking a rank to end to killing it")
      ->type_name("TIME")
      ->capture_default_str();
  auto* no_tag =
      launch->add_flag("--no-tag", arguments->no_tag, "Lines of output do not carry their rank");
  launch->add_flag("--tag-output", arguments->tag, "Lines of output carry their rank (the default)")
      ->excludes(no_tag);
  launch->prefix_command();
  launch->footer(
      "The program and its arguments follow the options, best after \"--\".\n"
      "Each rank gets SYNCOPATE_JOB, _RANK, _SIZE, _LOCAL_RANK and _LOCAL_SIZE. The first that\n"
      "fails ends the others. Rank 0 gets the standard input.\n"
      "Exit code: 0 all ranks exited with 0; a failed rank's own; 128 + signal if a signal ended\n"
      "a rank or the launcher; 1 timeout; 2 bad usage or a program that cannot be run.\n"
      "\n"
      "Examples:\n"
      "  syncopate launch -n 4 -- ./my_training --epochs 3\n"
      "  syncopate launch -n 2 --timeout 10m --no-tag -- sh -c 'echo rank $SYNCOPATE_RANK'");
  launch->callback([launch, arguments, &exit_code] {
    arguments->command = launch->remaining();
    exit_code = RunLaunch(*arguments);
  });
}

}  // namespace syncopate
