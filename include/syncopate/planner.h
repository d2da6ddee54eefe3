// Algorithms from outside: planners that take part in the choice of an algorithm like those of the
// library.
//
//   absl::Status status = syncopate::RegisterPlanner(
//       {.name = "pairs",
//        .collective = syncopate::Collective::kAllReduce,
//        .summary = "neighbours exchange their sums",
//        .plan = [](const syncopate::PlanRequest& request) { return ProgramText(request); }});
//
// A planner gives a Program as text; docs/program.md has the language. To run one Program once, put
// its text into Call::program (syncopate/syncopate.h). docs/selection.md tells how an algorithm is
// chosen, how to see the choice and how to override it.
#ifndef SYNCOPATE_PLANNER_H_
#define SYNCOPATE_PLANNER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "syncopate/collective.h"

namespace syncopate {

// Describes the call for which a Program is wanted. Ranks are those of the group that makes it.
struct PlanRequest {
  Collective collective = Collective::kAllReduce;  // what is to be done
  int workers = 0;                                 // of the group
  std::vector<int> active;                         // sorted ranks whose data takes part
  int root = -1;                                   // where HasRoot(collective)
  int target = -1;                                 // send-receive only
  uint64_t elements = 0;                           // of a worker's data
  std::vector<uint64_t> block_elements;  // where HasBlocks(collective): one for each active worker
  uint64_t bytes_per_element = 0;        // of the data's type
};

// A planner from outside.
struct OwnPlanner {
  // The name consists of a-z, 0-9 and hyphens and is different from those of the collective's other
  // planners. Call::algorithm and SYNCOPATE_ALGORITHM know the planner by it.
  std::string name;
  Collective collective = Collective::kAllReduce;  // what its programs do
  std::string summary = {};                        // one line for people
  // The text of a Program for the request. It must be a pure function: all workers call it, and
  // they must come to the same Program, or the call fails on all of them. It may be called from
  // several threads at once. An error means that it has no Program for this request; where nobody
  // asked for this planner by name, another one is then taken.
  std::function<absl::StatusOr<std::string>(const PlanRequest&)> plan;
};

// From now on the planner is one among the others of this process. What it makes is validated
// before it runs. Call it before Worker::Start(), on all workers of a job: they compare the names
// of what they have registered when they meet. AlreadyExists if the name is taken, InvalidArgument
// if it is no name or there is no function. Thread-safe.
absl::Status RegisterPlanner(OwnPlanner planner);

}  // namespace syncopate

#endif  // SYNCOPATE_PLANNER_H_
