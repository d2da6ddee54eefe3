// Export of a program to MSCCL's XML, so that the runtimes of that family (MSCCL, RCCL) can run it
// on GPUs.
//
// In MSCCL a rank runs thread blocks side by side. A thread block has at most one peer that it
// sends to and one that it receives from, and runs its steps strictly one after the other. The
// export gives every (worker, peer, direction) a thread block of its own, and one more to a
// worker's copies and reductions. `after` edges inside a thread block need no words; an edge from
// another one becomes depid/deps, and `nop` steps carry the second and further ones.
//
// What cannot be said in that form is refused:
//   - collectives other than all-reduce, all-gather and reduce-scatter: the file names no root,
//     all-to-all is never in place there, and the others have no counterpart;
//   - inactive workers: every rank's data takes part;
//   - chunks of unequal size: all chunks of MSCCL have one size, in scratch too. An even cut, whose
//     sizes differ by one element at most, passes, and MSCCL will run it with equal chunks;
//   - blocks with different numbers of chunks;
//   - programs in which two messages from p to q, or two local steps, must go in another order than
//     that of the lists: a thread block would wait for itself through its peers;
//   - programs past MSCCL's limits: 256 steps a thread block, 32 thread blocks that send or receive
//     a channel, 32 channels.
// The program that MSCCL would run, with equal chunks and the order of its thread blocks, is proved
// (ProveProgram) before it is written, so what is exported is correct.
#ifndef SYNCOPATE_MODEL_PROGRAM_MSCCL_H_
#define SYNCOPATE_MODEL_PROGRAM_MSCCL_H_

#include <string>

#include "absl/status/statusor.h"
#include "model/program.h"

namespace syncopate {

// InvalidArgument if the program is not valid, FailedPrecondition if MSCCL cannot express it, with
// the reason.
absl::StatusOr<std::string> ToMscclXml(const Program& program);

}  // namespace syncopate

#endif  // SYNCOPATE_MODEL_PROGRAM_MSCCL_H_
