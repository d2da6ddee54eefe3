// The proof of a program: symbolic execution over chunk contributions.
//
// ProveProgram() accepts a program if and only if, at every possible message delay,
//   - it ends (no deadlock, no receive without a send and no send without a receive, equal sizes at
//     both ends);
//   - two conflicting accesses to a chunk of one worker are ordered by `after` edges;
//   - nothing undefined is read (scratch before it was written);
//   - every worker ends with what the collective promises, each active contribution exactly once;
//   - data of inactive workers is neither mixed in nor changed: no step of an inactive worker
//     touches its data, which may not be there at all.
// It assumes the strictest transport: a send is done only when its receive is. A program that
// passes is safe on any transport that buffers more.
#ifndef SYNCOPATE_MODEL_PROGRAM_VALIDATOR_H_
#define SYNCOPATE_MODEL_PROGRAM_VALIDATOR_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "model/program.h"

namespace syncopate {

struct ProgramProof {
  // Every active worker adds each chunk's contributions in the same order, so all workers end with
  // the same bits. Reducing collectives with one result per chunk only (all-reduce); true for the
  // others.
  bool same_bits_everywhere = false;
  // The longest chain of messages each of which can be sent only after the one before has arrived.
  int rounds = 0;
  // Elements sent by the worker that sends most, and by all together.
  uint64_t sent_elements_max = 0;
  uint64_t sent_elements_total = 0;
};

// The proof, or FailedPrecondition with the first fault: what, which workers, steps and chunk.
// InvalidArgument if the program is not well-formed (Validate), ResourceExhausted if it is too
// large to be proved (base/limits.h).
absl::StatusOr<ProgramProof> ProveProgram(const Program& program);

}  // namespace syncopate

#endif  // SYNCOPATE_MODEL_PROGRAM_VALIDATOR_H_
