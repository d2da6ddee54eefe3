#include "tools/probe/allreduce.h"

#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/figures.h"
#include "base/parse.h"
#include "base/progress.h"
#include "base/status.h"
#include "base/units.h"
#include "nlohmann/json.hpp"
#include "syncopate/syncopate.h"
#include "tools/command_line.h"

namespace syncopate::tools {
namespace {

constexpr double kBudgetSeconds = 5;

}  // namespace

std::string ToTable(const sync::CostMeasurement& measured, int workers) {
  const cost::CostFit& fit = measured.fit;
  std::string text =
      absl::StrFormat("all-reduce among %s, measured in %.1f s\n\n",
                      CountOf(static_cast<uint64_t>(workers), "worker"), measured.seconds);
  absl::StrAppendFormat(&text, "%10s  %7s  %11s  %11s  %8s\n", "size", "at once", "measured",
                        "fitted", "residual");
  for (size_t i = 0; i < fit.points.size(); ++i) {
    const cost::CostPoint& point = fit.points[i];
    absl::StrAppendFormat(&text, "%10s  %7d  %11s  %11s  %6s %%\n", FormatBytes(point.bytes),
                          point.at_once, FormatSeconds(point.seconds), FormatSeconds(fit.fitted[i]),
                          FixedSigned(100 * fit.Residual(i), 1));
  }
  absl::StrAppendFormat(&text, "\na      %s to start up\n", FormatSeconds(fit.costs.a));
  absl::StrAppendFormat(&text, "b      %.4g ns a byte (%s)\n", 1e9 * fit.costs.b,
                        fit.costs.b > 0 ? FormatRate(1 / fit.costs.b) : "no limit");
  absl::StrAppendFormat(&text, "gamma  %s for 1 to %d at once\n",
                        absl::StrJoin(fit.costs.gamma, ", ",
                                      [](std::string* out, double gamma) {
                                        absl::StrAppendFormat(out, "%.2f", gamma);
                                      }),
                        fit.costs.gamma.size());
  return text;
}

std::string ToJson(const sync::CostMeasurement& measured, int workers) {
  const cost::CostFit& fit = measured.fit;
  nlohmann::ordered_json json;
  json["workers"] = workers;
  json["seconds"] = measured.seconds;
  json["costs"] = nlohmann::ordered_json::parse(ToJson(fit.costs));
  json["residual_max"] = fit.ResidualMax();
  json["points"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < fit.points.size(); ++i) {
    json["points"].push_back({{"bytes", fit.points[i].bytes},
                              {"at_once", fit.points[i].at_once},
                              {"seconds", fit.points[i].seconds},
                              {"fitted", fit.fitted[i]},
                              {"residual", fit.Residual(i)}});
  }
  return json.dump(2) + "\n";
}

absl::Status ProbeAllReduce(const AllReduceProbe& options) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<Worker> worker, Worker::Start());
  if (worker->size() == 1) {
    return absl::InvalidArgumentError(
        "one worker has nobody to reduce with: -n 4, say, or name hosts with -H");
  }
  sync::CostProbeOptions probe;
  probe.budget_seconds = options.budget_seconds > 0 ? options.budget_seconds : kBudgetSeconds;
  SYNCOPATE_ASSIGN_OR_RETURN(ProgressOptions style, ProgressOfThisProcess());
  if (worker->rank() != 0) style.style = ProgressOptions::Style::kSilent;
  sync::CostMeasurement measured;
  {
    Progress progress("syncopate probe", style, MonotonicClock(), std::cerr);
    progress.Announce(probe.budget_seconds,
                      absl::StrCat("all-reduces among ", worker->size(), " workers"));
    progress.ShowTimed("measuring all-reduces", probe.budget_seconds);
    SYNCOPATE_ASSIGN_OR_RETURN(measured, sync::MeasureCosts(*worker, probe));
  }
  if (worker->rank() != 0) return absl::OkStatus();
  if (!options.out.empty()) {
    SYNCOPATE_RETURN_IF_ERROR(WriteFile(options.out, ToJson(measured.fit.costs)));
  }
  std::cout << (options.json ? ToJson(measured, worker->size())
                             : ToTable(measured, worker->size()));
  if (!options.json && !options.out.empty()) std::cout << "saved as " << options.out << "\n";
  std::cout.flush();
  return absl::OkStatus();
}

}  // namespace syncopate::tools
