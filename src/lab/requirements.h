// Whether this machine can carry labs at all, asked before anything is made.
#ifndef SYNCOPATE_LAB_REQUIREMENTS_H_
#define SYNCOPATE_LAB_REQUIREMENTS_H_

#include <string>

#include "absl/status/status.h"
#include "lab/spec.h"

namespace syncopate::lab {

// FailedPrecondition with one message that says what is missing: root, a program, a part of the
// kernel. Tries the kernel's parts in a namespace of its own, which is gone afterwards.
absl::Status CheckRequirements(const Spec& spec);
// Only what every lab needs: root and iproute2.
absl::Status CheckBasics();
absl::Status CheckIperf();

// Bits per second that the hosts can send in all if each uses all that its links carry. Links that
// are not shaped do not count.
double TrafficBitsMax(const Spec& spec);
// A sentence if that is more than `cores` cores are known to carry; else empty.
std::string CpuLimitWarning(const Spec& spec, int cores);

}  // namespace syncopate::lab

#endif  // SYNCOPATE_LAB_REQUIREMENTS_H_
