// Runs one job of a live campaign on the hosts of a lab: starts its workers, lets the blows of its
// cases fall, waits until the survivors have gone on, and judges.
#ifndef SYNCOPATE_TESTS_LIVE_JOB_H_
#define SYNCOPATE_TESTS_LIVE_JOB_H_

#include <string>
#include <vector>

#include "lab/lab.h"
#include "live/outcome.h"
#include "live/plan.h"

namespace syncopate::live {

// The network of every job: two racks of four hosts.
inline constexpr char kNetworkRate[] = "200mbit";

struct JobOptions {
  int cases = kCasesMax;  // the first ones of the job
  std::string log;        // where the workers' standard error goes; empty: nowhere
};

// One outcome for each case that was begun. The job ends with the first that has a failure. The
// calling process must have one thread: the workers are forked from it.
std::vector<Outcome> RunJob(lab::Lab& lab, const JobPlan& plan, const JobOptions& options);

}  // namespace syncopate::live

#endif  // SYNCOPATE_TESTS_LIVE_JOB_H_
