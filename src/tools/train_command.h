// `syncopate train`: trains a model with several workers.
#ifndef SYNCOPATE_TOOLS_TRAIN_COMMAND_H_
#define SYNCOPATE_TOOLS_TRAIN_COMMAND_H_

#include "CLI/CLI.hpp"

namespace syncopate::tools {

void AddTrainCommand(CLI::App& app, int& exit_code);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_TRAIN_COMMAND_H_
