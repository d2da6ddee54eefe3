// The order of memory accesses in a program: whether every two conflicting accesses to a chunk of
// one worker are ordered by a path of `after` edges.
#ifndef SYNCOPATE_MODEL_PROGRAM_ORDER_H_
#define SYNCOPATE_MODEL_PROGRAM_ORDER_H_

#include "absl/status/status.h"
#include "model/program.h"

namespace syncopate {

// FailedPrecondition with the first unordered pair. The program must be valid.
absl::Status CheckAccessOrder(const Program& program);

}  // namespace syncopate

#endif  // SYNCOPATE_MODEL_PROGRAM_ORDER_H_
