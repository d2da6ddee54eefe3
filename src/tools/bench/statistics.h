// Makes the numbers of a row from samples. Pure functions.
#ifndef SYNCOPATE_TOOLS_BENCH_STATISTICS_H_
#define SYNCOPATE_TOOLS_BENCH_STATISTICS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/bench/options.h"
#include "tools/bench/protocol.h"

namespace syncopate::tools::bench {

// The value below which the part `q` (0 to 1) of the samples lies, interpolated. `samples` not
// empty.
double Quantile(std::vector<double> samples, double q);

// What algbw is multiplied with to compare it with the hardware, as nccl-tests defines it for each
// collective; 0 for a barrier.
double BusFactor(Collective collective, int workers);

// One time per iteration, in microseconds, from the ranks that took part: their mean, or where
// calls are TimedApart() their maximum. Invalid if they did not all time the same number of
// iterations.
absl::StatusOr<std::vector<double>> OverRanks(Collective collective,
                                              const std::vector<RankResult>& ranks);

// What one contestant did at one size.
struct Measurement {
  std::string contestant;
  std::vector<std::vector<double>> rounds_us;  // one list of iteration times a round
  uint64_t wrong = 0;                          // elements, over all checked calls and ranks
};

struct Ratio {
  double p50 = 0;  // the contestant's p50 / ours: above 1, ours is quicker
  double min = 0;  // over rounds, of the same with each round's p50
  double max = 0;
};

struct Row {
  int workers = 0;
  uint64_t bytes = 0;
  uint64_t count = 0;  // elements; where the collective has blocks, of one block
  std::string contestant;
  double mean_us = 0;
  double p50_us = 0;  // over all iterations of all rounds
  double p99_us = 0;
  double algbw_gbps = 0;  // bytes / p50, in 1e9 bytes a second
  double busbw_gbps = 0;
  std::optional<uint64_t> wrong;  // nothing: not checked
  std::optional<Ratio> ratio;     // nothing: this is ours, or ours did not run
  int rounds = 0;
  // The network's bound / p50, in percent; nothing where no bound is known.
  std::optional<double> percent_of_bound;
  // The bound that the forest planner proves for the topology that ours knows / p50, in percent;
  // nothing where none is proved.
  std::optional<double> percent_of_certificate;
};

// Rows of one size, in the measurements' order. Ratios are against the one named kOurs, if there.
std::vector<Row> RowsOf(const BenchOptions& options, uint64_t bytes,
                        const std::vector<Measurement>& measurements);

// How many iterations make one round of about kRoundTargetUs, given the time of one.
int64_t IterationsFor(double iteration_us);
inline constexpr double kRoundTargetUs = 100'000;
inline constexpr int64_t kRoundIterationsMin = 5;
inline constexpr int64_t kRoundIterationsMax = 5000;

}  // namespace syncopate::tools::bench

#endif  // SYNCOPATE_TOOLS_BENCH_STATISTICS_H_
