// `syncopate report RUN`: where the time of a run went, who is late, and a page with plots.
#ifndef SYNCOPATE_TOOLS_REPORT_COMMAND_H_
#define SYNCOPATE_TOOLS_REPORT_COMMAND_H_

#include <ostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace syncopate::tools {

void AddReportCommand(CLI::App& app, int& exit_code);

struct ReportArguments {
  std::vector<std::string> runs;
  bool json = false;
  std::string html;
};

// Returns the exit code; errors go to standard error.
int RunReport(const ReportArguments& arguments, std::ostream& out);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_REPORT_COMMAND_H_
