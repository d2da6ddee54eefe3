// `syncopate program`: works with transfer programs in their text form. `check` proves one or says
// what is wrong with it and where; `run` proves it and then runs it in this process.
#ifndef SYNCOPATE_TOOLS_PROGRAM_COMMAND_H_
#define SYNCOPATE_TOOLS_PROGRAM_COMMAND_H_

#include <cstdint>
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

struct ProgramRunArguments {
  std::string file = "";
  std::string type = "float32";
  std::string op = "";  // empty: sum, where the collective reduces
  uint64_t seed = 1;
  bool json = false;
};

// Like RunProgramCheck(); a program that is refused there is refused here too. kFailed if it does
// not run or an element of the result is wrong.
int RunProgramRun(const ProgramRunArguments& arguments, std::ostream& out);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_PROGRAM_COMMAND_H_
