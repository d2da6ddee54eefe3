// `syncopate bench train`: a training job of ours and, beside it in one run, its twin on PyTorch's
// DistributedDataParallel.
#ifndef SYNCOPATE_TOOLS_BENCH_TRAIN_COMMAND_H_
#define SYNCOPATE_TOOLS_BENCH_TRAIN_COMMAND_H_

#include "CLI/CLI.hpp"

namespace syncopate::tools {

// Registers it below `bench`; see AddBenchCommand() for `exit_code`.
void AddBenchTrainCommand(CLI::App& bench, int& exit_code);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_BENCH_TRAIN_COMMAND_H_
