// Reads a run directory back, also that of a run which crashed: what is missing or cut off becomes
// a note, not an error.
#ifndef SYNCOPATE_OBSERVE_RUN_READER_H_
#define SYNCOPATE_OBSERVE_RUN_READER_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/trace.h"
#include "observe/breakdown.h"
#include "observe/metrics.h"
#include "observe/summary.h"

namespace syncopate::observe {

struct RunRecord {
  std::string name;    // the last part of its path
  std::string config;  // JSON text; empty: none
  std::vector<Metric> metrics;
  std::vector<WorkerTrace> traces;  // by rank; of a run that was resumed, of all parts together
  Breakdown breakdown;              // of the traces
  // As summary.json has it; of a run that did not end, what metrics and traces tell.
  Summary summary;
  bool ended = false;              // there was a summary.json
  std::vector<std::string> notes;  // for people, with the file's name
};

// NotFound if `path` is no folder, InvalidArgument if it holds nothing of a run.
absl::StatusOr<RunRecord> ReadRun(const std::string& path);

// The traces of the parts of a run that came before the present one, in their order.
std::vector<std::vector<WorkerTrace>> ReadEarlierParts(const std::string& path);

}  // namespace syncopate::observe

#endif  // SYNCOPATE_OBSERVE_RUN_READER_H_
