// The main program of the `syncopate` command.
#include "CLI/CLI.hpp"
#include "tools/bench_command.h"
#include "tools/command_line.h"
#include "tools/doctor_command.h"
#include "tools/lab_command.h"
#include "tools/launch_command.h"
#include "tools/plan_command.h"
#include "tools/probe_command.h"
#include "tools/program_command.h"
#include "tools/report_command.h"
#include "tools/reproduce_command.h"
#include "tools/simulate_command.h"
#include "tools/train_command.h"
#include "tools/train_replay.h"

int main(int argc, char** argv) {
  CLI::App app("Syncopate: data-parallel training on imperfect networks", "syncopate");
  app.set_version_flag("--version", "syncopate " SYNCOPATE_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  syncopate doctor\n"
      "  syncopate train --model cnn --data mnist -n 4 --run first\n"
      "  syncopate launch -n 4 -- ./my_training\n"
      "  syncopate plan -n 8 --bytes 1M --explain\n"
      "  syncopate bench allreduce -n 4 --against openmpi,gloo\n"
      "  syncopate lab up labs/two-racks.toml\n"
      "  syncopate probe --lab two-racks --topology-out net.json\n"
      "  syncopate plan --schedule all --model resnet-152\n"
      "  syncopate program check mine.txt\n"
      "  syncopate reproduce forest --figure 4\n"
      "  syncopate replay --model resnet-152 -n 4 --bytes-scale 0.05 --time-scale 0.1\n"
      "  syncopate simulate --model resnet-152 -n 64 --costs 1.4ms,1.7ns\n"
      "  syncopate report runs/first --html first.html\n"
      "syncopate COMMAND --help tells more about a command.");

  int exit_code = syncopate::tools::kDone;
  syncopate::tools::AddLaunchCommand(app, exit_code);
  syncopate::tools::AddBenchCommand(app, exit_code);
  syncopate::tools::AddPlanCommand(app, exit_code);
  syncopate::tools::AddDoctorCommand(app, exit_code);
  syncopate::tools::AddLabCommand(app, exit_code);
  syncopate::tools::AddProbeCommand(app, exit_code);
  syncopate::tools::AddProgramCommand(app, exit_code);
  syncopate::tools::AddReproduceCommand(app, exit_code);
  syncopate::tools::AddReportCommand(app, exit_code);
  syncopate::tools::AddTrainCommand(app, exit_code);
  syncopate::tools::AddReplayCommand(app, exit_code);
  syncopate::tools::AddSimulateCommand(app, exit_code);
  return syncopate::tools::RunCommandLine(app, argc, argv, exit_code);
}
