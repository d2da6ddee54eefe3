// The job's verdicts on lost workers, in shared memory, the same for all survivors.
#ifndef SYNCOPATE_TRANSPORT_SHM_BOARD_H_
#define SYNCOPATE_TRANSPORT_SHM_BOARD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "transport/shm/control.h"
#include "transport/transport.h"

namespace syncopate::transport::shm {

enum class Cause : uint8_t {
  kLeft = 1,  // it ended its part in the job in good order
  kDied = 2,  // its process ended
  // Its heart stopped beating; its process was ended, so that it cannot wake up and write.
  kStuck = 3,
  kLate = 4,  // it did not finish what it had begun; its process was ended
  // As kStuck, while a debugger or a freezer held it.
  kStuckInDebugger = 5,
  kStuckFrozen = 6,
};

std::string Describe(Cause cause);
// Of all but kLeft and kDied: what was seen of it.
std::string WhyEnded(Cause cause);

// Gives the verdict that `rank` is lost. The first verdict on a rank stays. True if it was this
// one.
bool Pronounce(Board& board, int rank, Cause cause, int by);

// Whether there is a verdict on `rank`.
bool IsLost(const Board& board, int rank);

// How many verdicts there are.
uint64_t CountVerdicts(const Board& board);

// All verdicts, in order. What two workers read at different times differs at its end only.
std::vector<Loss> ReadVerdicts(const Board& board, int size);

}  // namespace syncopate::transport::shm

#endif  // SYNCOPATE_TRANSPORT_SHM_BOARD_H_
