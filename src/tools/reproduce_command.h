// `syncopate reproduce`: published figures, found again with our planners.
#ifndef SYNCOPATE_TOOLS_REPRODUCE_COMMAND_H_
#define SYNCOPATE_TOOLS_REPRODUCE_COMMAND_H_

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/progress.h"
#include "tools/reproduce/forest_figures.h"

namespace syncopate::tools {

// As on the command line.
struct ReproduceForestArguments {
  std::vector<int> figures;  // empty: all
  std::string network = "gpu-pairs";
  std::string inside = "pairs";
  bool json = false;
  std::string svg;  // a file; empty: none
};

// Does what the arguments say and returns the exit code: 0 done, 1 failed, 2 bad input. Errors are
// one line on `err`.
int RunReproduceForest(const ReproduceForestArguments& arguments,
                       const reproduce::ForestTimer& timer, Progress& progress, std::ostream& out,
                       std::ostream& err);

// As on the command line.
struct ReproduceAscWfbpArguments {
  bool json = false;
};
int RunReproduceAscWfbp(const ReproduceAscWfbpArguments& arguments, std::ostream& out,
                        std::ostream& err);

// Adds the sub-command to `app`; when it is called it sets `exit_code`. Both must outlive the
// parsing.
void AddReproduceCommand(CLI::App& app, int& exit_code);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_REPRODUCE_COMMAND_H_
