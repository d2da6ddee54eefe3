#include "tools/launch_command.h"

#include <memory>

#include "absl/status/status.h"
#include "base/clock.h"
#include "launch/launcher.h"
#include "tools/command_line.h"
#include "tools/launch_options.h"
#include "tools/usage_message.h"

namespace syncopate::tools {

void AddLaunchCommand(CLI::App& app, int& exit_code) {
  CLI::App* launch =
      app.add_subcommand("launch", "Run a program as the ranks of a job, here or on many hosts");
  auto arguments = std::make_shared<LaunchArguments>();
  arguments->name = "launch";
  AddLaunchOptions(*launch, *arguments);
  auto remote = std::make_shared<bool>(false);
  launch->add_flag("--remote", *remote)->group("");  // our own other end
  launch->footer(
      "The program and its arguments follow the options, best after \"--\".\n"
      "Each rank gets SYNCOPATE_JOB, _RANK, _SIZE, _LOCAL_RANK and _LOCAL_SIZE; on hosts also\n"
      "_HOST, and _RENDEZVOUS and _KEY, by which the ranks find each other. Rank 0 gets the\n"
      "standard input. The first rank that fails ends the others, unless --on-failure continue.\n"
      "Exit code: 0 all ranks exited with 0; a failed rank's own; 128 + signal if a signal ended\n"
      "a rank or the launcher; 1 timeout; 2 bad usage or a program that cannot be run.\n"
      "\n"
      "Examples:\n"
      "  syncopate launch -n 4 -- ./my_training --epochs 3\n"
      "  syncopate launch -H node1:4,node2:4 -- ./my_training\n"
      "  syncopate launch --hostfile hosts -n 6 --interface eth1 -x DATA -- ./my_training\n"
      "  syncopate launch -H a,b --agent \"ssh -p 2222 {host}\" -- hostname\n"
      "  syncopate launch -n 2 -x OMP_NUM_THREADS=1 -- ./my_training\n"
      "  syncopate launch -n 2 --timeout 10m --no-tag -- sh -c 'echo rank $SYNCOPATE_RANK'");
  launch->callback([launch, arguments, remote, &exit_code] {
    if (*remote) {
      exit_code = launch::LaunchRemote(MonotonicClock());
      return;
    }
    const absl::Status usage = CheckWordsLeft(*launch);
    arguments->command = launch->remaining();
    exit_code = usage.ok() ? RunLaunch(*arguments) : Complain(arguments->name, usage);
  });
}

}  // namespace syncopate::tools
