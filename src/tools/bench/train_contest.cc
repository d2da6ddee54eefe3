#include "tools/bench/train_contest.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/figures.h"
#include "nlohmann/json.hpp"
#include "tools/bench/statistics.h"

namespace syncopate::tools::bench {
namespace {

template <typename Value>
std::vector<double> OverRounds(const TrainContestant& contestant, const Value& value) {
  std::vector<double> values;
  for (const TrainRun& run : contestant.rounds) values.push_back(value(run.summary));
  return values;
}

double IterationMs(const observe::Summary& summary) { return *summary.iteration_ms_p50; }
double ComputeMs(const observe::Summary& summary) { return *summary.compute_ms_p50; }
double ExposedMs(const observe::Summary& summary) { return *summary.exposed_comm_ms_p50; }

// above / below of the same round; 0 / 0 is 1.
Middle Quotients(const std::vector<double>& above, const std::vector<double>& below) {
  std::vector<double> quotients;
  for (size_t i = 0; i < above.size() && i < below.size(); ++i) {
    quotients.push_back(above[i] == below[i] ? 1 : above[i] / below[i]);
  }
  return MiddleOf(std::move(quotients));
}

double LossDifference(const TrainRun& first, const TrainRun& other) {
  double largest = 0;
  for (const auto& [iteration, loss] : first.losses) {
    for (const auto& [other_iteration, other_loss] : other.losses) {
      if (iteration != other_iteration) continue;
      largest = std::max(largest, std::abs(other_loss - loss) / std::max(std::abs(loss), 1e-9));
    }
  }
  return largest;
}

std::string Text(const std::optional<Middle>& middle, double unit, int decimals) {
  if (!middle) return "";
  const auto one = [&](double value) {
    return std::isfinite(value) ? absl::StrFormat("%.*f", decimals, value * unit)
                                : std::string("inf");
  };
  return absl::StrCat(one(middle->p50), " (", one(middle->min), " to ", one(middle->max), ")");
}

}  // namespace

absl::StatusOr<TrainRun> MakeTrainRun(observe::Summary summary,
                                      const observe::MetricsContents& metrics) {
  if (!summary.iteration_ms_p50 || !summary.compute_ms_p50 || !summary.exposed_comm_ms_p50) {
    return absl::InvalidArgumentError("its summary has no times");
  }
  TrainRun run{.summary = std::move(summary), .losses = {}};
  for (const observe::Metric& metric : metrics.metrics) {
    const std::optional<double> loss = metric.Value("loss");
    if (metric.kind == "train" && loss) run.losses.emplace_back(metric.iteration, *loss);
  }
  return run;
}

Middle MiddleOf(std::vector<double> values) {
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  Middle middle{.p50 = 0, .min = *min, .max = *max};
  // Interpolation between infinite values gives no number.
  middle.p50 = std::isfinite(*max) ? Quantile(std::move(values), 0.5) : *max;
  return middle;
}

std::vector<TrainRow> TrainRows(const std::vector<TrainContestant>& contestants) {
  std::vector<TrainRow> rows;
  for (const TrainContestant& contestant : contestants) {
    const TrainContestant& first = contestants.front();
    TrainRow row{.contestant = contestant.name,
                 .workers = contestant.rounds.front().summary.workers,
                 .rounds = static_cast<int>(contestant.rounds.size()),
                 .iteration_ms = MiddleOf(OverRounds(contestant, IterationMs)).p50,
                 .compute_ms = MiddleOf(OverRounds(contestant, ComputeMs)).p50,
                 .exposed_ms = MiddleOf(OverRounds(contestant, ExposedMs)).p50,
                 .ratio = {},
                 .exposed_share = {}};
    if (!contestant.rounds.front().losses.empty()) {
      row.loss = contestant.rounds.front().losses.back().second;
    }
    if (&contestant != &first) {
      row.ratio = Quotients(OverRounds(contestant, IterationMs), OverRounds(first, IterationMs));
      row.exposed_share =
          Quotients(OverRounds(first, ExposedMs), OverRounds(contestant, ExposedMs));
      row.loss_difference = LossDifference(first.rounds.front(), contestant.rounds.front());
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string TrainTable(const std::vector<TrainRow>& rows) {
  std::string text = absl::StrFormat("%-22s %12s %11s %11s  %-21s %-21s %9s %10s\n", "# contestant",
                                     "iteration ms", "compute ms", "exposed ms", "ratio",
                                     "exposed, ours/its %", "loss", "loss diff");
  for (const TrainRow& row : rows) {
    absl::StrAppend(
        &text,
        absl::StrFormat("%-22s %12.1f %11.1f %11.1f  %-21s %-21s %9.4f %10s\n", row.contestant,
                        row.iteration_ms, row.compute_ms, row.exposed_ms, Text(row.ratio, 1, 2),
                        Text(row.exposed_share, 100, 0), row.loss,
                        row.ratio ? absl::StrCat(Fixed(row.loss_difference * 100, 3), " %") : ""));
  }
  return text;
}

std::string TrainJsonLine(const TrainRow& row) {
  nlohmann::ordered_json json = {
      {"contestant", row.contestant},
      {"workers", row.workers},
      {"rounds", row.rounds},
      {"iteration_ms_p50", row.iteration_ms},
      {"compute_ms_p50", row.compute_ms},
      {"exposed_comm_ms_p50", row.exposed_ms},
      {"loss", row.loss},
  };
  const auto add = [&](const std::string& name, const std::optional<Middle>& middle) {
    if (!middle) return;
    json[name] = middle->p50;
    json[name + "_min"] = middle->min;
    json[name + "_max"] = middle->max;
  };
  add("ratio", row.ratio);
  add("exposed_share", row.exposed_share);
  if (row.ratio) json["loss_difference"] = row.loss_difference;
  return absl::StrCat(json.dump(), "\n");
}

}  // namespace syncopate::tools::bench
