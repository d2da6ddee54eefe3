// Chooses the algorithm for a collective: every planner that can answer makes its programs, the
// cost model plays them, and the quickest wins. It is a pure function, so workers with the same
// topology choose the same program; docs/selection.md shows a run of it.
#ifndef SYNCOPATE_PLAN_COLLECTIVE_SELECT_H_
#define SYNCOPATE_PLAN_COLLECTIVE_SELECT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cost/program_cost.h"
#include "model/topology.h"
#include "plan/collective/request.h"
#include "plan/collective/shared_memory.h"

namespace syncopate::plan {

struct SelectOptions {
  std::string algorithm;  // only this planner; empty: all
  int pieces = 0;         // only this count; 0: several
  // Programs of more steps are not played: it would take long. They are listed with that reason.
  uint64_t steps_max = 1 << 16;
  // Planners that cut data by size: only sub-chunks of about this size; 0: several.
  uint64_t chunk_bytes = 0;
  // Settings that only one planner understands; null: none.
  std::shared_ptr<const PlannerData> data = {};
  // Asked before each program that is made: true gives up, with Cancelled. Empty: never.
  std::function<bool()> stop = {};
};

struct Candidate {
  std::string algorithm;
  std::string variant;  // what else the planner was told, for people: "by place", "4 servers"
  int pieces = 1;
  std::string skipped;       // why there are no numbers below; empty if there are
  double seconds = 0;        // predicted
  uint64_t chunk_bytes = 0;  // the size of sub-chunks, if the planner cuts data by size
  double slower = 1;         // the cost model's time was multiplied by this, from experience
  // The workers share memory, and the engine runs this program as a whole there, not by its steps
  // (plan/collective/shared_memory.h); `seconds` is what that takes.
  bool in_place = false;
  // What `seconds` consists of: its steps, as the cost model plays them, times `slower` (0 in
  // place); and on a host whose memory all share the meetings and the memory traffic of a program
  // in place, or those around the steps.
  double steps_seconds = 0;
  HostTime on_host;
  bool best_pieces = false;  // no other number of pieces makes this algorithm and variant quicker
  uint64_t messages = 0;
  double bytes_sent_max = 0;
  double bytes_sent_total = 0;
  // What else the planner was told, for computers; null if it was not asked. Pieces are above.
  std::shared_ptr<const PlannerOptions> options;
};
// The algorithm, the pieces if there are several, and the variant, with commas between them.
std::string Describe(const Candidate& candidate);

struct Selection {
  std::vector<Candidate> candidates;  // the winner, then by time, then the skipped ones
  Program program;                    // the program of the winner
  cost::ProgramCost cost;             // what its steps cost, if it runs by them
  std::string why;                    // why it won, in one sentence
};

// `topology` must be valid; `placement` as CostOf() wants it. InvalidArgument for a request that no
// planner can answer, NotFound for an unknown algorithm, ResourceExhausted if all programs are too
// large to be played.
absl::StatusOr<Selection> SelectProgram(const CollectiveRequest& request, size_t bytes_per_element,
                                        const Topology& topology, absl::Span<const int> placement,
                                        const SelectOptions& options);

// The program that `like` chose, for a request that differs from its own in the number of elements
// only: nothing is compared or played, so it takes a small part of the time. `chunk_bytes`: instead
// of the size of sub-chunks that was chosen, if the planner cuts data by size; 0: that one.
// ResourceExhausted if it has more steps than SelectOptions allows.
absl::StatusOr<Program> PlanAlike(const Selection& like, const CollectiveRequest& request,
                                  uint64_t chunk_bytes = 0);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_COLLECTIVE_SELECT_H_
