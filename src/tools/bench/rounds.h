// The order of measurement: at every size each contestant runs once to find how long it takes, then
// all run in rounds, one after the other, a different one first in every round.
#ifndef SYNCOPATE_TOOLS_BENCH_ROUNDS_H_
#define SYNCOPATE_TOOLS_BENCH_ROUNDS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/bench/estimate.h"
#include "tools/bench/options.h"
#include "tools/bench/protocol.h"
#include "tools/bench/statistics.h"

namespace syncopate::tools::bench {

// One contestant, all its ranks together.
class Entrant {
 public:
  virtual ~Entrant() = default;
  virtual const std::string& name() const = 0;
  // Unimplemented: it cannot do this, but lives. Cancelled: the user wants to stop. Any other
  // error: it is of no use any more.
  virtual absl::StatusOr<std::vector<RankResult>> Run(const RunRequest& request) = 0;
};

struct RoundsObserver {
  // All contestants have done all rounds of a size.
  std::function<void(const std::vector<Row>& rows)> on_rows;
  // A contestant leaves: its row is missing from this size on.
  std::function<void(const std::string& name, const absl::Status& why)> on_drop;
  // Before each run. `part` of the work is done (0 to 1, estimated).
  std::function<void(uint64_t bytes, int round, const std::string& name, double part)> on_progress;
};

// `guess` is for the estimate of what is done. Fails if our contestant leaves, if none is left, or if the user wants to stop.
absl::Status RunRounds(const BenchOptions& options, std::vector<std::unique_ptr<Entrant>> entrants,
                       const CallGuess& guess, const RoundsObserver& observer);

}  // namespace syncopate::tools::bench

#endif  // SYNCOPATE_TOOLS_BENCH_ROUNDS_H_
