// `syncopate lab`: an emulated cluster on this machine.
#ifndef SYNCOPATE_TOOLS_LAB_COMMAND_H_
#define SYNCOPATE_TOOLS_LAB_COMMAND_H_

#include "CLI/CLI.hpp"

namespace syncopate::tools {

void AddLabCommand(CLI::App& app, int& exit_code);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_LAB_COMMAND_H_
