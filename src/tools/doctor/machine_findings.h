// What the machine is: kernel, cores, layout, memory and how fast that is.
#ifndef SYNCOPATE_TOOLS_DOCTOR_MACHINE_FINDINGS_H_
#define SYNCOPATE_TOOLS_DOCTOR_MACHINE_FINDINGS_H_

#include "base/clock.h"
#include "tools/doctor/finding.h"

namespace syncopate::tools {

// Measures memory for less than a second.
Findings MachineFindings(const Clock& clock);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_DOCTOR_MACHINE_FINDINGS_H_
