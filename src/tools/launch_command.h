// `syncopate launch`: runs a program as the ranks of a job on this machine.
#ifndef SYNCOPATE_TOOLS_LAUNCH_COMMAND_H_
#define SYNCOPATE_TOOLS_LAUNCH_COMMAND_H_

#include "CLI/CLI.hpp"

namespace syncopate::tools {

void AddLaunchCommand(CLI::App& app, int& exit_code);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_LAUNCH_COMMAND_H_
