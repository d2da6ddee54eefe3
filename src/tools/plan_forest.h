// What `syncopate plan` does for forest plans besides choosing their program: reads their options,
// checks the certificate, and compares with the published linear programs.
#ifndef SYNCOPATE_TOOLS_PLAN_FOREST_H_
#define SYNCOPATE_TOOLS_PLAN_FOREST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "model/topology.h"
#include "plan/collective/select.h"
#include "plan/forest/forest.h"

namespace syncopate::tools {

// As on the command line.
struct ForestArguments {
  bool no_relays = false;
  int trees = 0;       // 0: any number
  int depth = 0;       // 0: any depth
  std::string loss;    // "1%" or "0.01"; empty: the default
  std::string stages;  // "one", "two", "separate", "paper"; empty: one

  friend bool operator==(const ForestArguments&, const ForestArguments&) = default;
};
// InvalidArgument with the option that is wrong.
absl::StatusOr<plan::ForestOptions> ParseForestOptions(const ForestArguments& arguments);
absl::string_view Name(plan::Stages stages);  // as on the command line

struct ForestReport {
  plan::ForestOptions options;
  plan::ForestPlan plan;
  double plan_seconds = 0;   // that planning took
  uint64_t chunk_bytes = 0;  // the largest sub-chunk of the program
  bool checked = false;      // CheckCertificate() was satisfied
  // If the program was cut for runtimes with equal chunks: how many, and how much longer the
  // busiest part of the network is busy than with the plan's own shares.
  uint32_t equal_chunks = 0;
  double equal_chunks_loss = 0;
  // Seconds a byte by the published linear programs (4) and (8), where they were asked for.
  std::optional<double> separate_seconds;
  std::optional<double> overlapped_seconds;

  // Bytes/s of a worker's data; infinite if nothing has to cross the network.
  double rate() const { return 1 / plan.seconds_per_byte; }
  double bound() const { return 1 / plan.certificate.bound; }
};

// Plans and notes how long that took.
absl::Status PlanTimed(const Topology& topology, absl::Span<const int> placement,
                       absl::Span<const int> active, const Clock& clock, ForestReport& report);

// The steps that the plan's program has at least, whatever its sub-chunks.
uint64_t LeastStepsOf(const plan::ForestPlan& plan);

// In elements.
uint64_t LargestChunk(const Program& program);

// Puts in place of the winner's program the quickest one of equal chunks that MSCCL can express.
// FailedPrecondition if there is none.
absl::Status CutEvenlyForMscclExport(const plan::CollectiveRequest& request,
                                     size_t bytes_per_element, const Topology& topology,
                                     absl::Span<const int> placement, plan::Selection& selection,
                                     ForestReport& report);

// Checks what the plan claims. FailedPrecondition if the certificate does not hold. Plans of more
// than one stage have none: they stay unchecked.
absl::Status CheckForest(const Topology& topology, absl::Span<const int> placement,
                         ForestReport& report);

// Solves the published programs for the same network.
absl::Status CompareWithPublished(const Topology& topology, absl::Span<const int> placement,
                                  ForestReport& report);

// In one line: "4(0,5-7 2(3))" has the root 4, on which 0, 5, 6, 7 and 2 hang, and 3 hangs on 2.
std::string TreeText(const plan::WorkerTree& tree);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_PLAN_FOREST_H_
