// Memory of a worker for threads that must not be held up, such as its control thread: what
// Worker::Allocate() takes from the system is taken piece by piece before.
#ifndef SYNCOPATE_WORKER_MEMORY_PIECES_H_
#define SYNCOPATE_WORKER_MEMORY_PIECES_H_

#include <cstddef>

#include "syncopate/syncopate.h"

namespace syncopate::worker {

// Takes a piece, in less than a millisecond; true: that was the last one, so that Allocate(bytes) is quick, as
// long as nobody else allocates.
bool TakePiece(Worker& worker, size_t bytes);

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_MEMORY_PIECES_H_
