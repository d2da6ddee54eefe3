// A contest of training jobs: from what each of them measured in each round to the rows of a table.
// Pure.
#ifndef SYNCOPATE_TOOLS_BENCH_TRAIN_CONTEST_H_
#define SYNCOPATE_TOOLS_BENCH_TRAIN_CONTEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "observe/metrics.h"
#include "observe/summary.h"

namespace syncopate::tools::bench {

// One run of one contestant.
struct TrainRun {
  observe::Summary summary;
  // Iterations done, and the mean loss of all workers then.
  std::vector<std::pair<int64_t, double>> losses;
};

// What a run's folder says. InvalidArgument if the summary lacks a time.
absl::StatusOr<TrainRun> MakeTrainRun(observe::Summary summary,
                                      const observe::MetricsContents& metrics);

struct TrainContestant {
  std::string name;
  std::vector<TrainRun> rounds;
};

// The middle and the spread of a number over rounds.
struct Middle {
  double p50 = 0;
  double min = 0;
  double max = 0;
};
Middle MiddleOf(std::vector<double> values);  // not empty

struct TrainRow {
  std::string contestant;
  int workers = 0;
  int rounds = 0;
  // The medians of each round's medians.
  double iteration_ms = 0;
  double compute_ms = 0;
  double exposed_ms = 0;
  // Against the first contestant, round by round; nothing in its own row.
  std::optional<Middle> ratio;          // this one's iteration time / the first one's
  std::optional<Middle> exposed_share;  // the first one's exposed time / this one's
  double loss = 0;                      // the last one that was reported
  // The largest difference to the first one's losses at the same iteration, as a part of them.
  double loss_difference = 0;
};

// In the order of the contestants, which have the same number of rounds, at least one.
std::vector<TrainRow> TrainRows(const std::vector<TrainContestant>& contestants);

std::string TrainTable(const std::vector<TrainRow>& rows);
std::string TrainJsonLine(const TrainRow& row);  // with the end of the line

}  // namespace syncopate::tools::bench

#endif  // SYNCOPATE_TOOLS_BENCH_TRAIN_CONTEST_H_
