// Which algorithms a job's calls may run, as far as it is not the library's own affair: the rules
// that override the choice, and what all workers must have in common about both.
#ifndef SYNCOPATE_WORKER_ALGORITHM_TERMS_H_
#define SYNCOPATE_WORKER_ALGORITHM_TERMS_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/environment.h"
#include "plan/collective/algorithm_rules.h"
#include "syncopate/syncopate.h"

namespace syncopate::worker {

// Options::algorithms, or else SYNCOPATE_ALGORITHM. InvalidArgument names the one that is wrong.
absl::StatusOr<plan::AlgorithmRules> ResolveAlgorithmRules(const Options& options,
                                                           const Environment& environment);

// The rules and the planners that this process has registered itself, for people and to be compared
// with those of other workers (transport/terms.h), and what else must be the same. Empty if there is
// none of it. At most kTermsBytesMax; of a longer one the beginning and a digest.
std::string AlgorithmTerms(const plan::AlgorithmRules& rules, const std::string& others = "");

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_ALGORITHM_TERMS_H_
