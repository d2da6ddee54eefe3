// Which workers are not in the job any more, in the order on which all workers agree.
#ifndef SYNCOPATE_WORKER_DEPARTURES_H_
#define SYNCOPATE_WORKER_DEPARTURES_H_

#include <string>
#include <vector>

#include "syncopate/syncopate.h"

namespace syncopate::worker {

struct Departure {
  int rank = -1;
  bool left = false;  // in good order; else it is lost
  std::string cause;  // "died (its process ended)", ...
};

// What another worker gets differs at its end only: it may know fewer or more. A worker that is out of
// the job itself is among them.
std::vector<Departure> DeparturesOf(const Worker& worker);

}  // namespace syncopate::worker

#endif  // SYNCOPATE_WORKER_DEPARTURES_H_
