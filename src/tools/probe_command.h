// `syncopate probe`: measure the network, print its picture and save it as a topology.
#ifndef SYNCOPATE_TOOLS_PROBE_COMMAND_H_
#define SYNCOPATE_TOOLS_PROBE_COMMAND_H_

#include "CLI/CLI.hpp"

namespace syncopate::tools {

void AddProbeCommand(CLI::App& app, int& exit_code);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_PROBE_COMMAND_H_
