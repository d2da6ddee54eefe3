// Whether workers can talk to each other here: what shared memory needs, by trying it.
#ifndef SYNCOPATE_TOOLS_DOCTOR_TRANSPORT_FINDINGS_H_
#define SYNCOPATE_TOOLS_DOCTOR_TRANSPORT_FINDINGS_H_

#include "tools/doctor/finding.h"

namespace syncopate::tools {

// The last one says which transports work; it is kBroken if none does.
Findings TransportFindings();
// For jobs on several hosts, real ones or emulated ones; nothing in it is needed on one host.
Findings NetworkFindings();

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_DOCTOR_TRANSPORT_FINDINGS_H_
