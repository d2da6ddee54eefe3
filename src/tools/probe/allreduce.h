// `syncopate probe --allreduce`: what an all-reduce costs the workers of this job.
#ifndef SYNCOPATE_TOOLS_PROBE_ALLREDUCE_H_
#define SYNCOPATE_TOOLS_PROBE_ALLREDUCE_H_

#include <string>

#include "absl/status/status.h"
#include "sync/cost_probe.h"

namespace syncopate::tools {

struct AllReduceProbe {
  double budget_seconds = 0;  // 0: a few
  bool json = false;
  std::string out;  // file for the costs, as `plan --costs` reads it; empty: none
};

// Every rank of the job comes here; rank 0 prints.
absl::Status ProbeAllReduce(const AllReduceProbe& options);

// A row a point, then a, b and gamma.
std::string ToTable(const sync::CostMeasurement& measured, int workers);
std::string ToJson(const sync::CostMeasurement& measured, int workers);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_PROBE_ALLREDUCE_H_
