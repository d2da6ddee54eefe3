#include "tools/bench/report.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/parse.h"
#include "nlohmann/json.hpp"

namespace syncopate::tools::bench {
namespace {

constexpr const char* kHeadFormat =
    "#%11s %10s %8s %5s %10s %8s %8s %7s %10s %10s  %-12s%s %7s  %s\n";

// Four digits that say something, whatever the size of the number.
std::string Digits(double value) {
  if (value >= 999.5) return absl::StrFormat("%.0f", value);
  if (value >= 99.95) return absl::StrFormat("%.1f", value);
  if (value >= 9.995) return absl::StrFormat("%.2f", value);
  return absl::StrFormat("%.3f", value);
}

std::string Counted(int count, const char* what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

// The column that there is only in a lab.
std::string Bound(const BenchOptions& options, const std::string& text) {
  return options.in_lab() ? absl::StrFormat(" %7s", text) : "";
}

// The column that there is only with --active.
std::string Active(const BenchOptions& options, const std::string& text) {
  return options.active.empty() ? "" : absl::StrFormat(" %10s", text);
}

std::string Percent(const std::optional<double>& value) {
  return value ? absl::StrFormat("%.1f", *value) : "N/A";
}

// To three decimals, and of small values to four digits.
double Rounded(double value) {
  const double magnitude = value == 0 ? 0 : std::floor(std::log10(std::abs(value)));
  const double scale = std::pow(10, std::max(3.0, 3 - magnitude));
  return std::round(value * scale) / scale;
}

}  // namespace

std::string TableHead(const BenchOptions& options) {
  std::string head =
      absl::StrCat("# ", Name(options.collective), ", ", Counted(options.workers, "worker"), ", ",
                   options.memory, " memory, ", Counted(options.rounds, "round"), "\n",
                   "# times in us (time: mean; algbw, busbw: GB/s at p50); ratio: p50 / ours, with "
                   "its spread over rounds\n");
  if (options.in_lab()) {
    absl::StrAppend(&head,
                    "# %bound: how near p50 comes to what the lab's network allows; %cert: to what "
                    "the forest planner proves no trees can beat\n");
  }
  std::string columns = absl::StrFormat(
      kHeadFormat, "size", "count", "type", "redop", "time", "algbw", "busbw", "#wrong", "p50",
      "p99", "contestant",
      Active(options, "active") + Bound(options, "%bound") + Bound(options, "%cert"), "ratio",
      "spread");
  return absl::StrCat(head, columns);
}

std::string TableLine(const BenchOptions& options, const Row& row) {
  const std::string op(Reduces(options.collective) ? Name(options.op) : "none");
  std::string line =
      absl::StrFormat("%12d %10d %8s %5s %10s %8s %8s %7s %10s %10s  %-12s", row.bytes, row.count,
                      Name(options.type), op, Digits(row.mean_us), Digits(row.algbw_gbps),
                      Digits(row.busbw_gbps), row.wrong ? absl::StrCat(*row.wrong) : "N/A",
                      Digits(row.p50_us), Digits(row.p99_us), row.contestant);
  absl::StrAppend(&line, Active(options, FormatRanks(options.active)),
                  Bound(options, Percent(row.percent_of_bound)),
                  Bound(options, Percent(row.percent_of_certificate)));
  if (row.ratio) {
    absl::StrAppend(&line, absl::StrFormat(" %7s  %s..%s", Digits(row.ratio->p50),
                                           Digits(row.ratio->min), Digits(row.ratio->max)));
  }
  line.erase(line.find_last_not_of(' ') + 1);
  line.push_back('\n');
  return line;
}

std::string JsonLine(const BenchOptions& options, const Row& row) {
  nlohmann::ordered_json object;
  object["workers"] = row.workers;
  if (!options.active.empty()) object["active"] = options.active;
  object["bytes"] = row.bytes;
  object["contestant"] = row.contestant;
  object["p50_us"] = Rounded(row.p50_us);
  object["p99_us"] = Rounded(row.p99_us);
  object["algbw_GBps"] = Rounded(row.algbw_gbps);
  object["busbw_GBps"] = Rounded(row.busbw_gbps);
  if (row.wrong) {
    object["wrong"] = *row.wrong;
  } else {
    object["wrong"] = nullptr;
  }
  if (row.ratio) {
    object["ratio"] = Rounded(row.ratio->p50);
    object["ratio_min"] = Rounded(row.ratio->min);
    object["ratio_max"] = Rounded(row.ratio->max);
  }
  object["rounds"] = row.rounds;
  if (options.in_lab()) {
    object["percent_of_bound"] = nullptr;
    if (row.percent_of_bound) object["percent_of_bound"] = Rounded(*row.percent_of_bound);
    object["percent_of_certificate"] = nullptr;
    if (row.percent_of_certificate) {
      object["percent_of_certificate"] = Rounded(*row.percent_of_certificate);
    }
  }
  return absl::StrCat(object.dump(), "\n");
}

}  // namespace syncopate::tools::bench
