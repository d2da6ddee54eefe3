// `syncopate simulate`: the strategies of `syncopate train` in virtual time, on any number of workers.
#ifndef SYNCOPATE_TOOLS_SIMULATE_COMMAND_H_
#define SYNCOPATE_TOOLS_SIMULATE_COMMAND_H_

#include <ostream>

#include "CLI/CLI.hpp"
#include "tools/simulate_run.h"

namespace syncopate::tools {

// The exit code.
int RunSimulate(const SimulateArguments& arguments, std::ostream& out);

void AddSimulateCommand(CLI::App& app, int& exit_code);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_SIMULATE_COMMAND_H_
