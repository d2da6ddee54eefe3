#include "tools/simulate_report.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/parse.h"
#include "cost/communication_costs.h"
#include "nlohmann/json.hpp"
#include "picture/chart_parts.h"
#include "picture/svg.h"
#include "tools/bench/statistics.h"

namespace syncopate::tools {
namespace {

constexpr size_t kLinksNamed = 5;
constexpr size_t kWorkersNamed = 5;

struct Figures {
  double p50 = 0, p99 = 0;  // seconds of an iteration
  double samples_per_second = 0;
  int64_t iterations_min = 0, iterations_max = 0;
  double iterations_mean = 0;
};

Figures FiguresOf(const SimulateArguments& arguments, const SimulatedRun& run) {
  Figures figures;
  const std::vector<double> seconds = run.iteration_seconds();
  figures.p50 = bench::Quantile(seconds, 0.5);
  figures.p99 = bench::Quantile(seconds, 0.99);
  const std::vector<int> servers = run.servers();
  std::vector<int64_t> all;
  for (int rank = 0; rank < run.workers; ++rank) {
    if (std::binary_search(servers.begin(), servers.end(), rank)) continue;
    all.push_back(run.result.iterations[static_cast<size_t>(rank)]);
  }
  const int64_t sum = std::accumulate(all.begin(), all.end(), int64_t{0});
  figures.iterations_min = *std::min_element(all.begin(), all.end());
  figures.iterations_max = *std::max_element(all.begin(), all.end());
  figures.iterations_mean = static_cast<double>(sum) / static_cast<double>(all.size());
  figures.samples_per_second =
      static_cast<double>(sum) * static_cast<double>(arguments.samples) / run.result.seconds;
  return figures;
}

// The links that carried most for what they can, the busiest first: how much of the time each was full.
std::string BusiestLinks(const SimulatedRun& run) {
  std::vector<std::pair<double, size_t>> links;
  for (size_t i = 0; i < run.result.link_bytes.size(); ++i) {
    const double share =
        run.result.link_bytes[i] / (run.topology->links[i].bandwidth * run.result.seconds);
    if (share > 0) links.emplace_back(-share, i);
  }
  std::sort(links.begin(), links.end());
  if (links.size() > kLinksNamed) links.resize(kLinksNamed);
  std::string text;
  for (const auto& [share, index] : links) {
    absl::StrAppendFormat(
        &text, "    %-20s %10s, %3.0f %% of what it could carry\n", run.topology->links[index].id,
        FormatBytes(static_cast<uint64_t>(run.result.link_bytes[index])), -share * 100);
  }
  return text;
}

// Who died or failed, in the order in which it happened.
std::vector<int> EndedEarly(const SimulatedRun& run) {
  std::vector<int> ranks = run.ended_early();
  std::stable_sort(ranks.begin(), ranks.end(), [&](int one, int two) {
    return run.result.ended[static_cast<size_t>(one)] < run.result.ended[static_cast<size_t>(two)];
  });
  return ranks;
}

std::string FormatEndedEarly(const SimulatedRun& run) {
  const std::vector<int> ranks = EndedEarly(run);
  std::string text;
  for (size_t i = 0; i < std::min(ranks.size(), kWorkersNamed); ++i) {
    const size_t rank = static_cast<size_t>(ranks[i]);
    absl::StrAppendFormat(&text, "  %-14s worker %d at %.3f s: %s\n", i == 0 ? "ended early" : "",
                          ranks[i], run.result.ended[rank], run.result.status[rank].message());
  }
  if (ranks.size() > kWorkersNamed) {
    absl::StrAppendFormat(&text, "  %-14s and %d more\n", "", ranks.size() - kWorkersNamed);
  }
  return text;
}

std::string FormatOne(const SimulateArguments& arguments, const SimulatedRun& run) {
  const Figures figures = FiguresOf(arguments, run);
  std::string text =
      absl::StrFormat("%s of %s on %d workers, %d iterations in virtual time\n", arguments.strategy,
                      run.report.table.model, run.workers, arguments.iterations);
  absl::StrAppendFormat(&text, "  an iteration   %.3f ms (p50), %.3f ms (p99)\n", figures.p50 * 1e3,
                        figures.p99 * 1e3);
  absl::StrAppendFormat(&text, "  computing      %.3f ms of it\n", run.computing_seconds() * 1e3);
  absl::StrAppendFormat(&text, "  waiting        %.1f %% of the workers' time\n",
                        run.waiting_share() * 100);
  absl::StrAppendFormat(&text, "  all            %.3f s, %.0f samples/s\n", run.result.seconds,
                        figures.samples_per_second);
  if (const std::vector<int> servers = run.servers(); !servers.empty()) {
    absl::StrAppend(&text, "  serving only   worker ", absl::StrJoin(servers, ", "), "\n");
  }
  absl::StrAppend(&text, FormatEndedEarly(run));
  if (run.topology != nullptr) {
    absl::StrAppend(&text, "  busiest links\n", BusiestLinks(run));
  }
  absl::StrAppend(&text, "  digest         ", run.result.digest.ToString(), "\n");
  return text;
}

nlohmann::json ToJson(const SimulateArguments& arguments, const SimulatedRun& run) {
  const Figures figures = FiguresOf(arguments, run);
  nlohmann::json links = nlohmann::json::object();
  for (size_t i = 0; i < run.result.link_bytes.size(); ++i) {
    links[run.topology->links[i].id] = run.result.link_bytes[i];
  }
  nlohmann::json early = nlohmann::json::array();
  for (const int rank : EndedEarly(run)) {
    early.push_back({{"rank", rank},
                     {"seconds", run.result.ended[static_cast<size_t>(rank)]},
                     {"why", run.result.status[static_cast<size_t>(rank)].message()}});
  }
  return {{"strategy", arguments.strategy},
          {"model", run.report.table.model},
          {"workers", run.workers},
          {"iterations", arguments.iterations},
          {"costs", nlohmann::json::parse(cost::ToJson(run.report.costs))},
          {"schedule", ToText(run.report.schedules.front().schedule)},
          {"seconds", run.result.seconds},
          {"iterations_min", figures.iterations_min},
          {"iterations_mean", figures.iterations_mean},
          {"iterations_max", figures.iterations_max},
          {"iteration_seconds", {{"p50", figures.p50}, {"p99", figures.p99}}},
          {"compute_seconds", run.computing_seconds()},
          {"samples_per_second", figures.samples_per_second},
          {"waiting_share", run.waiting_share()},
          {"servers", run.servers()},
          {"ended_early", std::move(early)},
          {"bytes_by_link", std::move(links)},
          {"digest", run.result.digest.ToString()}};
}

}  // namespace

std::string FormatRuns(const SimulateArguments& arguments, const std::vector<SimulatedRun>& runs) {
  if (runs.size() == 1) return FormatOne(arguments, runs.front());
  std::string text =
      absl::StrFormat("%s of %s, %d iterations in virtual time\n", arguments.strategy,
                      runs.front().report.table.model, arguments.iterations);
  absl::StrAppendFormat(&text, "%8s %14s %14s %10s %14s   %s\n", "workers", "iteration p50", "p99",
                        "waiting", "samples/s", "digest");
  for (const SimulatedRun& run : runs) {
    const Figures figures = FiguresOf(arguments, run);
    absl::StrAppendFormat(&text, "%8d %11.3f ms %11.3f ms %8.1f %% %14.0f   %s\n", run.workers,
                          figures.p50 * 1e3, figures.p99 * 1e3, run.waiting_share() * 100,
                          figures.samples_per_second, run.result.digest.ToString());
  }
  return text;
}

std::string RunsToJson(const SimulateArguments& arguments, const std::vector<SimulatedRun>& runs) {
  if (runs.size() == 1) return ToJson(arguments, runs.front()).dump() + "\n";
  nlohmann::json all = nlohmann::json::array();
  for (const SimulatedRun& run : runs) all.push_back(ToJson(arguments, run));
  return all.dump() + "\n";
}

std::string RunToSvg(const SimulateArguments& arguments, const SimulatedRun& run) {
  constexpr double kLeft = 80, kWidth = 1060, kTop = 64, kLane = 14, kGap = 3;
  constexpr int kLanesMax = 64;
  constexpr const char* kComputes = "#4f7cac";
  constexpr const char* kWaits = "#f3cdb8";
  constexpr const char* kBegins = "#223";
  picture::SvgPicture svg;
  const double all = std::max(run.result.seconds, 1e-9);
  const auto x = [&](double seconds) { return kLeft + kWidth * seconds / all; };
  const int lanes = std::min(run.workers, kLanesMax);
  svg.Words(kLeft, 24,
            absl::StrFormat("%s of %s on %d workers%s: %.3f s, waiting %.1f %%", arguments.strategy,
                            run.report.table.model, run.workers,
                            lanes < run.workers ? absl::StrCat(" (the first ", lanes, ")") : "",
                            run.result.seconds, run.waiting_share() * 100),
            {.size = 16, .bold = true});
  picture::Draw({{"computing", kComputes}, {"waiting", kWaits}, {"an iteration begins", kBegins}},
                kLeft, 36, {.edge = "#999"}, svg);
  const double bottom = kTop + lanes * (kLane + kGap);
  for (const double tick : picture::Ticks(0, all, 8)) {
    if (tick > all * (1 + 1e-9)) break;
    svg.Line(x(tick), kTop, x(tick), bottom, "#ddd");
    svg.Words(x(tick), bottom + 12, absl::StrFormat("%g s", tick),
              {.size = 9, .anchor = "middle", .fill = "#777"});
  }
  for (int rank = 0; rank < lanes; ++rank) {
    const size_t r = static_cast<size_t>(rank);
    const double y = kTop + rank * (kLane + kGap);
    svg.Words(kLeft - 8, y + 11, absl::StrCat("worker ", rank), {.size = 10, .anchor = "end"});
    svg.Box(kLeft, y, x(run.result.ended[r]) - kLeft, kLane, kComputes);
    for (const auto& [begin, end] : run.result.waits[r]) {
      svg.Box(x(begin), y, x(end) - x(begin), kLane, kWaits, "", 0,
              absl::StrFormat("waits for %.3f ms", (end - begin) * 1e3));
    }
    for (const double begin : run.result.begun[r]) {
      svg.Line(x(begin), y, x(begin), y + kLane, kBegins);
    }
  }
  return svg.Finish(kLeft + kWidth + 30, bottom + 24);
}

}  // namespace syncopate::tools
