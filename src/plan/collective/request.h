// What a collective planner is asked for.
#ifndef SYNCOPATE_PLAN_COLLECTIVE_REQUEST_H_
#define SYNCOPATE_PLAN_COLLECTIVE_REQUEST_H_

#include <cstdint>
#include <vector>

#include "model/program.h"

namespace syncopate {

struct CollectiveRequest {
  Collective collective = Collective::kAllReduce;
  int workers = 0;
  std::vector<int> active;  // sorted, not empty
  int root = -1;            // where HasRoot(collective); must be active
  int target = -1;          // send-receive only; must be active
  uint64_t elements = 0;    // of data; where HasBlocks(collective) the sum of block_elements
  std::vector<uint64_t>
      block_elements;  // where HasBlocks(collective): one entry per active worker, 0 allowed
};

}  // namespace syncopate

#endif  // SYNCOPATE_PLAN_COLLECTIVE_REQUEST_H_
