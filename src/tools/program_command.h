// `syncopate program check FILE`: reads a transfer program in its text form and proves it, or says
// what is wrong with it and where.
#ifndef SYNCOPATE_TOOLS_PROGRAM_COMMAND_H_
#define SYNCOPATE_TOOLS_PROGRAM_COMMAND_H_

#include <ostream>
#include <string>

#include "CLI/CLI.hpp"

namespace syncopate::tools {

void AddProgramCommand(CLI::App& app, int& exit_code);

struct ProgramCheckArguments {
  std::string file;
  bool json = false;
};

// Returns the exit code; errors go to standard error. A program that is well-formed but does not
// compute its collective is as bad an input as one that cannot be read.
int RunProgramCheck(const ProgramCheckArguments& arguments, std::ostream& out);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_PROGRAM_COMMAND_H_
