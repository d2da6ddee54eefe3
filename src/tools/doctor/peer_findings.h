// Which other systems `syncopate bench --against` can compare with here.
#ifndef SYNCOPATE_TOOLS_DOCTOR_PEER_FINDINGS_H_
#define SYNCOPATE_TOOLS_DOCTOR_PEER_FINDINGS_H_

#include <string>

#include "base/environment.h"
#include "tools/doctor/finding.h"

namespace syncopate::tools {

// Looks for launchers in the PATH of `environment`, and for our drivers where they are built or
// installed as seen from `program_folder`, the folder of the running program.
Findings PeerFindings(const Environment& environment, const std::string& program_folder);

// Of the running program; empty if unknown.
std::string ProgramFolder();

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_DOCTOR_PEER_FINDINGS_H_
