// The end of a run in one object: what `--json` prints, what summary.json holds, and a table.
#ifndef SYNCOPATE_OBSERVE_SUMMARY_H_
#define SYNCOPATE_OBSERVE_SUMMARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "observe/breakdown.h"
#include "observe/metrics.h"

namespace syncopate::observe {

struct Summary {
  std::string strategy;
  std::string schedule;
  int workers = 0;
  int64_t iterations = 0;
  double seconds = 0;  // of the whole run, all of its parts together
  // Of a run that was resumed: after which iterations it went on, and how long the last part took.
  std::vector<int64_t> resumed_at = {};
  double part_seconds = 0;
  std::optional<bool> reached;             // the target accuracy or loss; nothing: there was none
  std::optional<double> accuracy;          // of the last evaluation, from 0 to 1
  std::optional<double> loss;              // of the last evaluation
  std::optional<double> iteration_ms_p50;  // nothing: not measured
  std::optional<double> compute_ms_p50;
  std::optional<double> exposed_comm_ms_p50;
  std::optional<double> waiting_ms_p50;  // part of exposed
  uint64_t bytes_sent = 0;               // by all workers

  friend bool operator==(const Summary&, const Summary&) = default;
};

// Sets what the events of a run that was resumed tell: after which iterations it went on and, if
// `seconds` is set, how long the last part took.
void SetParts(const std::vector<Metric>& metrics, Summary* summary);
// Sets what a breakdown tells: the four medians and the bytes.
void SetCosts(const Breakdown& breakdown, Summary* summary);

// One line of JSON without an end of line. What is not known is null; so are numbers that are not
// finite.
std::string ToJson(const Summary& summary);
// The same, ended by the path of the run's folder: what `train --json` prints.
std::string ToJson(const Summary& summary, const std::string& run_path);
// Reads it back. Keys that are missing or null stay unset, unknown ones are ignored: a summary of
// another version can be compared with.
absl::StatusOr<Summary> ParseSummary(absl::string_view json);

// For people: a line a field.
std::string ToTable(const Summary& summary);
// One row a run, to compare them; `names` has as many entries.
std::string ToComparison(const std::vector<std::string>& names,
                         const std::vector<Summary>& summaries);

}  // namespace syncopate::observe

#endif  // SYNCOPATE_OBSERVE_SUMMARY_H_
