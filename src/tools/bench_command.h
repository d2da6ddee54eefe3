// The sub-command `syncopate bench`: our collectives and, beside them in one run, those of others.
#ifndef SYNCOPATE_TOOLS_BENCH_COMMAND_H_
#define SYNCOPATE_TOOLS_BENCH_COMMAND_H_

#include "CLI/CLI.hpp"

namespace syncopate::tools {

// Registers the sub-command. When the user has chosen it, parsing runs it and sets `exit_code`,
// which must live as long as `app`: 0 done, 1 the work failed, 2 bad usage.
void AddBenchCommand(CLI::App& app, int& exit_code);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_BENCH_COMMAND_H_
