// What the machine is: kernel, cores, layout, memory and how fast that is.
#ifndef SYNCOPATE_TOOLS_DOCTOR_MACHINE_FINDINGS_H_
#define SYNCOPATE_TOOLS_DOCTOR_MACHINE_FINDINGS_H_

#include <optional>

#include "base/clock.h"
#include "tools/doctor/finding.h"
#include "tools/doctor/host_measurement.h"

namespace syncopate::tools {

// Measures memory and meetings of threads for less than a second. `measured` is for predictions; nothing
// if there was too little memory.
Findings MachineFindings(const Clock& clock, std::optional<HostMeasurement>* measured);

// The cores that this process may use, as predictions count them.
int AllowedCpus();

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_DOCTOR_MACHINE_FINDINGS_H_
