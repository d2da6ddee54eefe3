// `syncopate doctor`: what this machine has, what is missing, and what to do about it.
#ifndef SYNCOPATE_TOOLS_DOCTOR_COMMAND_H_
#define SYNCOPATE_TOOLS_DOCTOR_COMMAND_H_

#include <string>

#include "CLI/CLI.hpp"
#include "tools/doctor/finding.h"

namespace syncopate::tools {

void AddDoctorCommand(CLI::App& app, int& exit_code);

// Whether nothing is broken.
bool Usable(const Findings& findings);
// An aligned table that ends with a verdict.
std::string FormatFindings(const Findings& findings);
// {"usable":…,"findings":[{"name":…,"level":"ok"|"poor"|"missing"|"broken","value":…,"advice":…}]}
std::string FindingsToJson(const Findings& findings);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_DOCTOR_COMMAND_H_
