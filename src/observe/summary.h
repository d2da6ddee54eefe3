// The end of a run in one object: what `--json` prints, what summary.json holds, and a table.
#ifndef SYNCOPATE_OBSERVE_SUMMARY_H_
#define SYNCOPATE_OBSERVE_SUMMARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "observe/breakdown.h"
#include "observe/metrics.h"

namespace syncopate::observe {

// Where the wall time of a run went, in seconds, as rank 0 spent it. All parts add up to the run's
// time.
struct WallTime {
  double start = 0;  // from the start of rank 0's process to the first iteration
  double iterations = 0;
  double measuring = 0;
  double evaluation = 0;
  double checkpoints = 0;
  double end = 0;      // from the last iteration to the summary: gathering and writing timelines
  double earlier = 0;  // of a run that was resumed: before that

  friend bool operator==(const WallTime&, const WallTime&) = default;
};

// The parts of an iteration in milliseconds: means over all iterations of all workers, which add up
// to the mean iteration. Network and waiting together are the exposed communication.
struct IterationParts {
  double compute = 0;
  double pack = 0;
  double network = 0;
  double waiting = 0;
  double other = 0;

  double Sum() const { return compute + pack + network + waiting + other; }
  friend bool operator==(const IterationParts&, const IterationParts&) = default;
};
IterationParts PartsOf(const Breakdown& breakdown);
IterationParts PartsOf(const WorkerCost& worker);

// The mean iteration and its parts in the order above, rounded such that they add up as printed.
std::vector<std::string> FiguresOf(const IterationParts& parts);

// The decimals of seconds of wall time, and of milliseconds.
inline constexpr int kTimeDigits = 2;

// A part's name and its size.
using NamedParts = std::vector<std::pair<std::string, double>>;
NamedParts Named(const IterationParts& parts);

struct Summary {
  std::string strategy;
  std::string schedule;
  int workers = 0;
  int64_t iterations = 0;
  double seconds = 0;  // the wall time of the whole run, all of its parts together
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
  // How busy the cores of rank 0's host were in the iterations, by whatever ran there, from 0 to 1.
  std::optional<double> cores_busy = {};
  // Of jobs whose samples a service deals out: how many were handed out twice, because a worker was lost
  // that held them.
  std::optional<uint64_t> samples_repeated = {};
  std::optional<IterationParts> mean_ms;
  std::optional<WallTime> wall;

  friend bool operator==(const Summary&, const Summary&) = default;
};

// The parts of its wall time that are not nothing; none if they are not known.
NamedParts NamedWall(const Summary& summary);

// Sets what the events of a run that was resumed tell: after which iterations it went on and, if
// `seconds` is set, how long the last part took.
void SetParts(const std::vector<Metric>& metrics, Summary* summary);
// Sets what a breakdown tells: the four medians, the means and the bytes.
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

// Tables with a row for each run, to compare them; `names` has as many entries as `summaries`.
struct RunTable {
  std::vector<std::string> titles;
  std::vector<std::vector<std::string>> rows;
};
// What the runs were and how they ended.
RunTable RunsTable(const std::vector<std::string>& names, const std::vector<Summary>& summaries);
// Where their wall time went; no rows if no run knows.
RunTable WallTable(const std::vector<std::string>& names, const std::vector<Summary>& summaries);
// Where the time of their iterations went.
RunTable PartsTable(const std::vector<std::string>& names, const std::vector<Summary>& summaries);
// All of them as text.
std::string ToComparison(const std::vector<std::string>& names,
                         const std::vector<Summary>& summaries);

}  // namespace syncopate::observe

#endif  // SYNCOPATE_OBSERVE_SUMMARY_H_
