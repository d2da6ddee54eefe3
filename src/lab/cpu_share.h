// What a host has of the machine's cores. Slows hosts down: a quota of CPU time for all processes
// of a host, by control groups (version 1 or 2); they go on running in small slices, so heartbeats
// are late, not silent. And keeps hosts to a core, so that those that compute do so side by side.
#ifndef SYNCOPATE_LAB_CPU_SHARE_H_
#define SYNCOPATE_LAB_CPU_SHARE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace syncopate::lab {

// What a host has at full speed: a core, or its fair part of the machine if that is less.
double FairCores(int machine_cores, int hosts);

// A quota in microseconds for each period.
struct CpuQuota {
  int quota_us = 0;
  int period_us = 0;
};
// The kernel gives no less than 1 ms at a time, so small shares come in longer periods.
CpuQuota QuotaFor(double cores);

// FailedPrecondition if the machine has no control groups for CPU time.
absl::Status CanLimitCpu();
// All processes in the host's namespace, and those that `lab exec` starts there later, get that
// many cores in all; 0 takes the limit away.
absl::Status LimitCpu(absl::string_view lab, absl::string_view host, double cores);
// For `lab exec`: puts the calling process under the host's limit, if there is one.
absl::Status JoinCpuLimit(absl::string_view lab, absl::string_view host);
// The core of a host, as Spec::fixed_cores wants it: hosts take turns.
int CoreOf(int host, int machine_cores);
// For `lab exec`: keeps the calling process, and what it becomes, to that core.
absl::Status KeepToCore(int core);
// Removes all groups of a lab. Their processes must have ended.
void RemoveCpuLimits(absl::string_view lab);

}  // namespace syncopate::lab

#endif  // SYNCOPATE_LAB_CPU_SHARE_H_
