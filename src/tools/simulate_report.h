// What `syncopate simulate` prints and draws of its runs.
#ifndef SYNCOPATE_TOOLS_SIMULATE_REPORT_H_
#define SYNCOPATE_TOOLS_SIMULATE_REPORT_H_

#include <string>
#include <vector>

#include "tools/simulate_run.h"

namespace syncopate::tools {

// One run in words; several as a table, a line each.
std::string FormatRuns(const SimulateArguments& arguments, const std::vector<SimulatedRun>& runs);
// One object for one run; several in an array.
std::string RunsToJson(const SimulateArguments& arguments, const std::vector<SimulatedRun>& runs);
// A lane for each worker (the first ones, if they are very many): when it computed and when it waited for
// others, and where its iterations began.
std::string RunToSvg(const SimulateArguments& arguments, const SimulatedRun& run);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_SIMULATE_REPORT_H_
