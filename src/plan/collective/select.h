// Which algorithm for a collective: every planner that can answer makes its programs, the cost
// model plays them, the quickest wins. A pure function; docs/selection.md shows a run of it.
#ifndef SYNCOPATE_PLAN_COLLECTIVE_SELECT_H_
#define SYNCOPATE_PLAN_COLLECTIVE_SELECT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cost/program_cost.h"
#include "model/topology.h"
#include "plan/collective/request.h"
#include "plan/forest/forest.h"

namespace syncopate::plan {

struct SelectOptions {
  std::string algorithm;  // only this planner; empty: all
  int pieces = 0;         // only this count; 0: several
  // Programs of more steps are not played: it would take long. They are listed with that reason.
  uint64_t steps_max = 1 << 16;
  // Of the forest planner, which is asked besides those of AllPlanners() (plan/forest/forest.h).
  ForestOptions forest = {};
  uint64_t chunk_bytes = 0;  // forest: only sub-chunks of about this size; 0: several
};
// What SelectOptions::algorithm calls the forest planner.
inline constexpr absl::string_view kForest = "forest";

struct Candidate {
  std::string algorithm;
  std::string variant;  // what else the planner was told, for people: "by place", "4 servers"
  int pieces = 1;
  std::string skipped;       // why there are no numbers below; empty if there are
  double seconds = 0;        // predicted
  uint64_t chunk_bytes = 0;  // forest: of the sub-chunks
  double slower = 1;         // the cost model's time was multiplied by this, from experience
  // The workers share memory, and the engine runs this program as a whole there, not by its steps
  // (plan/collective/quick_select.h); `seconds` is what that takes.
  bool in_place = false;
  bool best_pieces = false;  // no other number of pieces makes this algorithm and variant quicker
  uint64_t messages = 0;
  double bytes_sent_max = 0;
  double bytes_sent_total = 0;
};
std::string Describe(const Candidate& candidate);  // "ring, 4 pieces, by place"

struct Selection {
  std::vector<Candidate> candidates;  // the winner, then by time, then the skipped ones
  Program program;                    // the winner's
  cost::ProgramCost cost;             // of its steps
  std::string why;                    // one sentence
  std::optional<ForestPlan> forest;   // if the forest planner was asked and could answer
};

// `topology` must be valid; `placement` as CostOf() wants it. InvalidArgument for a request that no
// planner can answer, NotFound for an unknown algorithm, ResourceExhausted if all programs are too
// large to be played.
absl::StatusOr<Selection> SelectProgram(const CollectiveRequest& request, size_t bytes_per_element,
                                        const Topology& topology, absl::Span<const int> placement,
                                        const SelectOptions& options);

// The program that `like` chose, for a request that differs from its own in the number of elements
// only: nothing is compared or played, so it takes a small part of the time. `chunk_bytes`: of a
// forest, instead of the sub-chunks that were chosen; 0: those. ResourceExhausted if it has more
// steps than SelectOptions allows.
absl::StatusOr<Program> PlanAlike(const Selection& like, const CollectiveRequest& request,
                                  size_t bytes_per_element, const Topology& topology,
                                  absl::Span<const int> placement, uint64_t chunk_bytes = 0);

}  // namespace syncopate::plan

#endif  // SYNCOPATE_PLAN_COLLECTIVE_SELECT_H_
