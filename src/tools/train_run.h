// A training run's folder as the command sees it: what the run remembers, whether anything is left to
// do, and what to tell when the job has ended.
//
// The folder must be the same for this machine and for that of the rank that writes the run, as on a
// shared file system.
#ifndef SYNCOPATE_TOOLS_TRAIN_RUN_H_
#define SYNCOPATE_TOOLS_TRAIN_RUN_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "observe/summary.h"
#include "train/options/train_options.h"

namespace syncopate::tools {

struct TrainRun {
  std::string name;    // as the user may write it after --run
  std::string folder;  // its absolute path
};

// The options that the run began with. NotFound if there is no run.
absl::StatusOr<train::TrainOptions> ReadRunOptions(const TrainRun& run);

// As its summary.json has it; nothing: it has not ended.
std::optional<observe::Summary> ReadRunSummary(const TrainRun& run);

// Why a run that has ended with that summary has nothing left to do under the options `now`, in a
// line for people; empty if it has. `before` are those of its last part.
std::string WhyNothingIsLeft(const observe::Summary& summary, const train::TrainOptions& before,
                             const train::TrainOptions& now);

// Says how the job ended that had this exit code, and returns the command's: where the run is and
// what to do next, that a target was missed, or how to go on after a failure, in one line that comes
// last.
int TellEnd(const TrainRun& run, const train::TrainOptions& options, bool json, int code);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_TRAIN_RUN_H_
