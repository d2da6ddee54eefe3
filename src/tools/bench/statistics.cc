#include "tools/bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace syncopate::tools::bench {
namespace {

std::vector<double> AllSamples(const Measurement& measurement) {
  std::vector<double> all;
  for (const std::vector<double>& round : measurement.rounds_us) {
    all.insert(all.end(), round.begin(), round.end());
  }
  return all;
}

// The ratio is that of the medians over all rounds; its spread is that of the rounds, whose samples
// were taken close together and met the same disturbances.
Ratio RatioOf(const Measurement& peer, const Measurement& ours) {
  Ratio ratio;
  ratio.p50 = Quantile(AllSamples(peer), 0.5) / Quantile(AllSamples(ours), 0.5);
  const size_t rounds = std::min(peer.rounds_us.size(), ours.rounds_us.size());
  for (size_t r = 0; r < rounds; ++r) {
    const double one = Quantile(peer.rounds_us[r], 0.5) / Quantile(ours.rounds_us[r], 0.5);
    ratio.min = r == 0 ? one : std::min(ratio.min, one);
    ratio.max = r == 0 ? one : std::max(ratio.max, one);
  }
  return ratio;
}

}  // namespace

// Linear between the two nearest samples.
double Quantile(std::vector<double> samples, double q) {
  std::sort(samples.begin(), samples.end());
  const double at = q * static_cast<double>(samples.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, samples.size() - 1);
  return std::lerp(samples[below], samples[above], at - static_cast<double>(below));
}

double BusFactor(Collective collective, int workers) {
  const double n = workers;
  switch (collective) {
    case Collective::kAllReduce:
      return 2 * (n - 1) / n;
    case Collective::kAllGather:
    case Collective::kReduceScatter:
    case Collective::kGather:
    case Collective::kScatter:
    case Collective::kAllToAll:
      return (n - 1) / n;
    case Collective::kReduce:
    case Collective::kBroadcast:
    case Collective::kSendReceive:
      return 1;
    case Collective::kBarrier:
      return 0;
  }
  return 0;
}

absl::StatusOr<std::vector<double>> OverRanks(Collective collective,
                                              const std::vector<RankResult>& ranks) {
  std::vector<double> sum;
  std::vector<double> max;
  // Ranks that take no part in the call have no samples and do not count in the mean.
  double parts = 0;
  for (const RankResult& rank : ranks) {
    if (rank.samples_ns.empty()) continue;
    if (sum.empty()) {
      sum.resize(rank.samples_ns.size());
      max.resize(rank.samples_ns.size());
    }
    if (sum.size() != rank.samples_ns.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("ranks timed ", sum.size(), " and ", rank.samples_ns.size(), " iterations"));
    }
    for (size_t i = 0; i < sum.size(); ++i) {
      // At least a nanosecond, so that bandwidths and ratios are finite.
      const double us = static_cast<double>(std::max<int64_t>(1, rank.samples_ns[i])) * 1e-3;
      sum[i] += us;
      max[i] = std::max(max[i], us);
    }
    ++parts;
  }
  if (sum.empty()) return absl::InvalidArgumentError("no rank timed anything");
  for (double& us : sum) us /= parts;
  // Where calls are timed apart, from a barrier to each rank's own end, the call lasts as long as
  // its slowest rank. Otherwise calls follow one another, and all ranks take equally long on
  // average.
  return TimedApart(collective) ? max : sum;
}

std::vector<Row> RowsOf(const BenchOptions& options, uint64_t bytes,
                        const std::vector<Measurement>& measurements) {
  const auto ours = std::find_if(measurements.begin(), measurements.end(),
                                 [](const Measurement& m) { return m.contestant == kOurs; });
  std::vector<Row> rows;
  for (const Measurement& measurement : measurements) {
    const std::vector<double> samples = AllSamples(measurement);
    if (samples.empty()) continue;
    Row row;
    row.workers = options.workers;
    row.bytes = bytes;
    row.count = bytes / SizeOf(options.type);
    if (HasBlocks(options.collective)) row.count /= static_cast<uint64_t>(options.workers);
    row.contestant = measurement.contestant;
    row.mean_us =
        std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
    row.p50_us = Quantile(samples, 0.5);
    row.p99_us = Quantile(samples, 0.99);
    // Bandwidths follow from the median, which a few disturbed iterations do not move.
    row.algbw_gbps = static_cast<double>(bytes) / row.p50_us * 1e-3;
    row.busbw_gbps = row.algbw_gbps * BusFactor(options.collective, options.active_workers());
    if (options.check > 0) row.wrong = measurement.wrong;
    if (ours != measurements.end() && measurement.contestant != kOurs &&
        !AllSamples(*ours).empty()) {
      row.ratio = RatioOf(measurement, *ours);
    }
    row.rounds = static_cast<int>(measurement.rounds_us.size());
    rows.push_back(std::move(row));
  }
  return rows;
}

int64_t IterationsFor(double iteration_us) {
  return std::clamp(static_cast<int64_t>(kRoundTargetUs / iteration_us), kRoundIterationsMin,
                    kRoundIterationsMax);
}

}  // namespace syncopate::tools::bench
