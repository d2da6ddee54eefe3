// How `syncopate plan --strategy ds-sync` shows its result (plan_groups.h).
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/figures.h"
#include "base/parse.h"
#include "base/units.h"
#include "nlohmann/json.hpp"
#include "picture/svg.h"
#include "tools/plan_groups.h"

namespace syncopate::tools {
namespace {

using Json = nlohmann::ordered_json;

// What people are shown of long patterns; --json has all.
constexpr size_t kRoundsShown = 16;
constexpr size_t kRoundTextMax = 88;
constexpr size_t kUplinksShown = 16;
// An all-reduce that takes no longer than this many times a round needs no groups.
constexpr double kAsQuick = 1.05;

void AppendLine(absl::string_view name, absl::string_view value, std::string& text) {
  absl::StrAppend(&text, absl::StrFormat("%-10s  %s\n", name, value));
}

// "0,4 | 1-3 | 5-7".
std::string RoundText(const Pattern::Round& round) {
  std::string text;
  for (size_t g = 0; g < round.size(); ++g) {
    const std::string next = FormatRanks(round[g]);
    if (text.size() + next.size() > kRoundTextMax) {
      return absl::StrCat(text, text.empty() ? "" : " | ", "... (", round.size(), " groups)");
    }
    absl::StrAppend(&text, text.empty() ? "" : " | ", next);
  }
  return text;
}

std::string PlacesText(const GroupsReport& report) {
  if (!report.network.has_racks()) {
    return absl::StrCat("none: this is a network without racks, so ", report.network.workers(),
                        " workers are one group unless some are slow");
  }
  std::vector<std::string> names;
  for (const plan::Place& place : report.network.places().children) {
    names.push_back(absl::StrCat(place.name, " (", plan::WorkersIn(place), ")"));
    if (names.size() == kUplinksShown) {
      names.push_back("...");
      break;
    }
  }
  return absl::StrJoin(names, ", ");
}

std::string AllReduceText(const GroupsReport::AllReduce& one) {
  return one.skipped.empty() ? absl::StrCat(one.name, " ", FormatSeconds(one.seconds))
                             : absl::StrCat(one.name, " ", one.skipped);
}

std::string VerdictText(const GroupsReport& report) {
  const GroupsReport::AllReduce& best = report.all_reduces.front();
  if (!best.skipped.empty()) return "no all-reduce was played to compare with";
  const double ratio = best.seconds / report.mean_seconds();
  if (!(ratio > kAsQuick)) {
    return absl::StrCat(best.name, " of all is as quick by the model (", Fixed(ratio, 2),
                        " times a round) and leaves no differences: prefer it");
  }
  return absl::StrCat(best.name, " of all takes ", Fixed(ratio, 2), " times as long as a round");
}

Json ConsensusToJson(const plan::Consensus& consensus) {
  return {
      {"lambda", consensus.lambda}, {"sigma2", consensus.sigma2}, {"variance", consensus.variance}};
}

}  // namespace

std::string FormatGroupsSummary(const GroupsReport& report) {
  const plan::GroupCandidate& winner = report.choice.winner();
  std::string text;
  AppendLine("strategy",
             absl::StrCat(report.strategy, ", averages of ", FormatBytes(report.bytes),
                          " a worker among ", report.network.workers(), " workers"),
             text);
  AppendLine(
      "topology",
      absl::StrCat(report.topology.source.empty() ? "" : report.topology.source + ", ", "version ",
                   report.topology.version, ", digest ", DigestOf(report.topology).ToString()),
      text);
  AppendLine("racks", PlacesText(report), text);
  if (!report.slow.empty()) AppendLine("slow", absl::StrJoin(report.slow, ", "), text);
  AppendLine("pattern", absl::StrCat(winner.name, ": ", report.choice.why), text);
  AppendLine("period", CountOf(static_cast<uint64_t>(report.pattern().period()), "round"), text);
  const std::vector<Pattern::Round>& rounds = report.pattern().rounds;
  for (size_t t = 0; t < rounds.size() && t < kRoundsShown; ++t) {
    absl::StrAppend(&text,
                    absl::StrFormat("  %3d  %10s  %s\n", t, FormatSeconds(report.round_seconds[t]),
                                    RoundText(rounds[t])));
  }
  if (rounds.size() > kRoundsShown) {
    absl::StrAppend(&text, "  ... and ", rounds.size() - kRoundsShown,
                    " more; --export text and --json have all\n");
  }
  AppendLine("a round",
             absl::StrCat(FormatSeconds(report.mean_seconds()), " on average, ",
                          FormatSeconds(*std::max_element(report.round_seconds.begin(),
                                                          report.round_seconds.end())),
                          " at most, ",
                          report.played ? "played with each group's best collective"
                                        : "by formula, since there are many workers"),
             text);
  AppendLine(
      "mixing",
      absl::StrFormat("sigma2 %.4f a period, lambda %.4f a round, V %.3f", winner.consensus.sigma2,
                      winner.consensus.lambda, winner.consensus.variance),
      text);
  AppendLine("all-reduce",
             absl::StrJoin(report.all_reduces, ", ",
                           [](std::string* out, const GroupsReport::AllReduce& one) {
                             absl::StrAppend(out, AllReduceText(one));
                           }),
             text);
  AppendLine("worth it", VerdictText(report), text);
  AppendLine("digest", DigestOf(report.pattern()).ToString(), text);
  return text;
}

std::string FormatGroupsExplanation(const GroupsReport& report) {
  std::string text;
  size_t width = 9;
  for (const plan::GroupCandidate& candidate : report.choice.candidates) {
    width = std::max(width, candidate.name.size());
  }
  absl::StrAppend(
      &text, absl::StrFormat("%-*s  %4s  %10s  %10s  %10s  %7s  %7s  %7s\n", width, "candidate",
                             "B", "mean", "longest", "played", "sigma2", "lambda", "V"));
  for (size_t i = 0; i < report.choice.candidates.size(); ++i) {
    const plan::GroupCandidate& candidate = report.choice.candidates[i];
    const std::string played =
        report.candidate_seconds.empty() ? "-" : FormatSeconds(report.candidate_seconds[i]);
    absl::StrAppend(&text, absl::StrFormat("%-*s  %4d  %10s  %10s  %10s  %7.4f  %7.4f  %7.3f\n",
                                           width, candidate.name, candidate.pattern.period(),
                                           FormatSeconds(candidate.mean_seconds),
                                           FormatSeconds(candidate.longest_seconds), played,
                                           candidate.consensus.sigma2, candidate.consensus.lambda,
                                           candidate.consensus.variance));
    if (!candidate.against.empty()) {
      absl::StrAppend(&text, "  not taken: ", candidate.against, "\n");
    }
  }
  absl::StrAppend(&text,
                  "(they are compared by mean and longest, by formula; \"played\" is the mean "
                  "with each group's best collective)\n\nwhy: ",
                  report.choice.why, "\n");
  absl::StrAppend(&text, "\nbytes on each uplink in a round, each way:\n");
  const auto& uplinks = report.network.uplinks();
  size_t shown = 0;
  for (size_t u = 0; u < uplinks.size(); ++u) {
    if (uplinks[u].of_worker && report.network.has_racks()) continue;
    if (++shown > kUplinksShown) {
      absl::StrAppend(&text, "  ... --json has all\n");
      break;
    }
    double least = report.uplink_bytes[0][u], most = least;
    for (const std::vector<double>& round : report.uplink_bytes) {
      least = std::min(least, round[u]);
      most = std::max(most, round[u]);
    }
    absl::StrAppend(&text,
                    absl::StrFormat("  %10s at most, %10s at least  %s, %s\n",
                                    FormatBytes(static_cast<uint64_t>(most)),
                                    FormatBytes(static_cast<uint64_t>(least)), uplinks[u].name,
                                    FormatRate(1 / uplinks[u].seconds_per_byte)));
  }
  if (report.played) {
    absl::StrAppend(&text, "\ncollectives of the groups:\n");
    for (size_t t = 0; t < report.algorithms.size() && t < kRoundsShown; ++t) {
      std::vector<std::string> words;
      for (size_t g = 0; g < report.algorithms[t].size() && words.size() < 8; ++g) {
        if (report.algorithms[t][g].empty()) continue;
        words.push_back(absl::StrCat(FormatRanks(report.pattern().rounds[t][g]), ": ",
                                     report.algorithms[t][g]));
      }
      absl::StrAppend(&text, absl::StrFormat("  %3d  %s\n", t, absl::StrJoin(words, "; ")));
    }
  }
  return text;
}

std::string GroupsReportToJson(const GroupsReport& report) {
  const plan::GroupCandidate& winner = report.choice.winner();
  Json json = {{"strategy", report.strategy},
               {"workers", report.network.workers()},
               {"bytes", report.bytes},
               {"topology_digest", DigestOf(report.topology).ToString()},
               {"has_racks", report.network.has_racks()},
               {"slow", report.slow},
               {"pattern", winner.name},
               {"period", report.pattern().period()}};
  json.update(ConsensusToJson(winner.consensus));
  json["played"] = report.played;
  json["mean_round_seconds"] = report.mean_seconds();
  json["round_seconds"] = report.round_seconds;
  json["rounds"] = report.pattern().rounds;
  json["algorithms"] = report.algorithms;
  json["uplink_bytes"] = Json::object();
  for (size_t u = 0; u < report.network.uplinks().size(); ++u) {
    if (report.network.uplinks()[u].of_worker && report.network.has_racks()) continue;
    Json& bytes = json["uplink_bytes"][report.network.uplinks()[u].name] = Json::array();
    for (const std::vector<double>& round : report.uplink_bytes) bytes.push_back(round[u]);
  }
  json["all_reduce"] = Json::array();
  for (const GroupsReport::AllReduce& one : report.all_reduces) {
    Json entry = {{"name", one.name}};
    if (one.skipped.empty()) {
      entry["seconds"] = one.seconds;
    } else {
      entry["skipped"] = one.skipped;
    }
    json["all_reduce"].push_back(std::move(entry));
  }
  json["why"] = report.choice.why;
  json["candidates"] = Json::array();
  for (size_t i = 0; i < report.choice.candidates.size(); ++i) {
    const plan::GroupCandidate& candidate = report.choice.candidates[i];
    Json entry = {{"name", candidate.name},
                  {"period", candidate.pattern.period()},
                  {"mean_seconds", candidate.mean_seconds},
                  {"longest_seconds", candidate.longest_seconds},
                  {"against", candidate.against}};
    entry.update(ConsensusToJson(candidate.consensus));
    if (!report.candidate_seconds.empty()) entry["played_seconds"] = report.candidate_seconds[i];
    json["candidates"].push_back(std::move(entry));
  }
  json["digest"] = DigestOf(report.pattern()).ToString();
  return json.dump(2) + "\n";
}

std::string GroupsToSvg(const GroupsReport& report) {
  constexpr double kLeft = 90, kTop = 74, kColumn = 46, kRow = 16, kRadius = 5;
  constexpr const char* kColours[] = {"#1b6ca8", "#e07b39", "#2a9d5c", "#8e5bb5", "#c81e2d",
                                      "#7a7a2b", "#2aa5a5", "#b0578d", "#5b6b7d", "#a8741b"};
  const Pattern& pattern = report.pattern();
  const double width = kLeft + kColumn * pattern.period() + 200;
  const double height = kTop + kRow * pattern.workers + 30;
  picture::SvgPicture svg;
  svg.Words(12, 24,
            absl::StrCat(report.strategy, ": ", report.choice.winner().name, ", ",
                         FormatSeconds(report.mean_seconds()), " a round"),
            {.size = 15, .bold = true});
  svg.Words(12, 42,
            "a column is a round; workers of one colour average together, grey ones are alone",
            {.size = 11, .fill = "#667"});
  for (int t = 0; t < pattern.period(); ++t) {
    const double x = kLeft + kColumn * (t + 0.5);
    svg.Words(x, kTop - 10, FormatSeconds(report.round_seconds[static_cast<size_t>(t)]),
              {.size = 9, .anchor = "middle"});
    size_t colour = 0;
    for (const Pattern::Group& group : pattern.rounds[static_cast<size_t>(t)]) {
      const auto y = [&](int rank) { return kTop + kRow * (rank + 0.5); };
      const char* const ink =
          group.size() == 1 ? "#c9ccd3" : kColours[colour++ % std::size(kColours)];
      if (group.size() > 1) svg.Line(x, y(group.front()), x, y(group.back()), ink, 1);
      for (const int rank : group) {
        svg.Circle(x, y(rank), kRadius, ink, {},
                   absl::StrCat("round ", t, ": ", FormatRanks(group)));
      }
    }
  }
  for (int rank = 0; rank < pattern.workers; ++rank) {
    const Topology::Node& node =
        report.topology.nodes[static_cast<size_t>(report.placement[static_cast<size_t>(rank)])];
    svg.Words(kLeft - 8, kTop + kRow * (rank + 0.5) + 4, absl::StrCat(rank, "  ", node.id),
              {.size = 10, .anchor = "end"});
  }
  return svg.Finish(width, height);
}

}  // namespace syncopate::tools
