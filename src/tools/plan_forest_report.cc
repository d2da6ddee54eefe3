#include "tools/plan_forest_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/figures.h"
#include "base/parse.h"
#include "base/units.h"
#include "nlohmann/json.hpp"

namespace syncopate::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kRowsShown = 20;
constexpr size_t kTreeTextShown = 160;
constexpr int kBarWidth = 20;

std::string RoundedBytes(double bytes) { return FormatBytes(static_cast<uint64_t>(bytes + 0.5)); }

absl::string_view KindOf(plan::NetworkPart part) { return part.is_link ? "link" : "capacity"; }

// The empty number where there is none: one worker alone needs no time.
Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

std::string RateText(double rate) {
  return std::isfinite(rate) ? FormatRate(rate) : "any: nothing crosses the network";
}

std::string ForestPercent(double part) { return absl::StrCat(Fixed(100 * part, 2), " %"); }

// How much slower it became for the sake of fewer or shallower trees.
double LossOf(const plan::ForestPlan& plan) {
  if (plan.packed_seconds <= 0) return 0;
  return std::max(0.0, plan.seconds_per_byte / plan.packed_seconds - 1);
}

int DepthOf(const plan::TreePair& pair) {
  return std::max(plan::DepthOf(pair.reduce), plan::DepthOf(pair.broadcast));
}

void AppendForestRow(absl::string_view name, absl::string_view value, std::string& text) {
  absl::StrAppend(&text, absl::StrFormat("%-11s %s\n", name, value));
}

void AppendCertificate(const ForestReport& report, double bytes, std::string& text) {
  const plan::ForestPlan& plan = report.plan;
  AppendForestRow("rate",
                  absl::StrCat(RateText(report.rate()), " of a worker's data, ",
                               FormatSeconds(plan.seconds_per_byte * bytes), " for these bytes"),
                  text);
  AppendForestRow("bound",
                  absl::StrCat(RateText(report.bound()), ": no packing of trees is quicker"), text);
  AppendForestRow("gap", ForestPercent(plan.certificate.gap()), text);
  AppendForestRow(
      "checked",
      report.checked
          ? "yes: by code that has the topology, the trees and the prices, not the planner"
          : absl::StrCat("no: --stages ", Name(report.options.stages),
                         " is for comparison; only one stage has a certificate"),
      text);
  std::string trees = absl::StrCat(plan.pairs.size(), plan.pairs.size() == 1 ? " pair" : " pairs",
                                   " of a reduce and a broadcast tree");
  if (plan.packed_pairs > 0) {
    absl::StrAppend(&trees, " (", plan.packed_pairs, " in the best packing), at a loss of ",
                    ForestPercent(LossOf(plan)));
  }
  AppendForestRow("trees", trees, text);
  AppendForestRow("depth", absl::StrCat(plan.depth), text);
  if (report.chunk_bytes > 0) AppendForestRow("sub-chunks", RoundedBytes(report.chunk_bytes), text);
  if (report.equal_chunks > 0) {
    AppendForestRow(
        "equal",
        absl::StrCat(report.equal_chunks, " chunks of one size for MSCCL, at a loss of ",
                     ForestPercent(report.equal_chunks_loss)),
        text);
  }
  AppendForestRow("planning",
                  absl::StrCat(FormatSeconds(report.plan_seconds), ", ", plan.rounds,
                               plan.rounds == 1 ? " round" : " rounds", " of column generation"),
                  text);
  AppendForestRow("stages",
                  plan.stage_seconds[1] > 0
                      ? absl::StrCat(FormatSeconds(plan.stage_seconds[0] * bytes), " and ",
                                     FormatSeconds(plan.stage_seconds[1] * bytes))
                      : absl::StrCat(FormatSeconds(plan.stage_seconds[0] * bytes),
                                     ", reduce and broadcast overlap from the beginning"),
                  text);
  const auto compared = [&](double seconds) {
    return absl::StrFormat("%s, %.3f times this plan's", FormatSeconds(seconds * bytes),
                           seconds / plan.seconds_per_byte);
  };
  if (report.separate_seconds) {
    AppendForestRow(
        "LP (4)",
        absl::StrCat(compared(*report.separate_seconds), " (published: reduce, then broadcast)"),
        text);
  }
  if (report.overlapped_seconds) {
    AppendForestRow("LP (8)",
                    absl::StrCat(compared(*report.overlapped_seconds),
                                 " (published: two stages of one length)"),
                    text);
  }
}

std::string PairText(const plan::TreePair& pair) {
  if (pair.reduce == pair.broadcast) return absl::StrCat("both ", TreeText(pair.reduce));
  return absl::StrCat("reduce ", TreeText(pair.reduce), "  broadcast ", TreeText(pair.broadcast));
}

void AppendLeftOut(size_t all, std::string& text) {
  if (all > kRowsShown) {
    absl::StrAppend(&text, "(", all - kRowsShown, " more; --json has them)\n");
  }
}

void AppendTrees(const plan::ForestPlan& plan, double bytes, std::string& text) {
  absl::StrAppend(&text, "trees: 4(0,5-7 2(3)) has the root 4, on which 0, 5, 6, 7 and 2 hang, ",
                  "and 3 hangs on 2\n");
  absl::StrAppend(&text, absl::StrFormat("%8s  %10s  %5s  %5s  %s\n", "share", "bytes", "root",
                                         "depth", "trees"));
  for (size_t i = 0; i < std::min(kRowsShown, plan.pairs.size()); ++i) {
    const plan::TreePair& pair = plan.pairs[i];
    std::string trees = PairText(pair);
    if (trees.size() > kTreeTextShown) {
      trees.resize(kTreeTextShown);
      trees += "...";
    }
    absl::StrAppend(&text, absl::StrFormat("%6.2f %%  %10s  %5d  %5d  %s\n", 100 * pair.share,
                                           RoundedBytes(pair.share * bytes), pair.reduce.root,
                                           DepthOf(pair), trees));
  }
  AppendLeftOut(plan.pairs.size(), text);
}

std::string Bar(double part) {
  const int full = static_cast<int>(std::lround(std::clamp(part, 0.0, 1.0) * kBarWidth));
  return absl::StrCat(std::string(full, '#'), std::string(kBarWidth - full, '.'));
}

void AppendLoads(const plan::ForestPlan& plan, const Topology& topology, std::string& text) {
  const std::vector<ForestPart> parts = BusiestFirst(plan);
  const size_t shown = std::min(kRowsShown, parts.size());
  size_t width = 4;
  for (size_t i = 0; i < shown; ++i) {
    width = std::max(width, plan::NameOf(topology, parts[i].part).size());
  }
  absl::StrAppend(&text,
                  "loads: bytes that cross a part of the network for each byte of data, the part ",
                  "of the time that it is busy, and how much of the bound rests on it\n");
  absl::StrAppend(&text, absl::StrFormat("%-8s  %-*s  %12s  %10s  %-*s  %6s\n", "kind", width, "id",
                                         "carries", "bytes/byte", kBarWidth + 7, "busy", "price"));
  for (size_t i = 0; i < shown; ++i) {
    const ForestPart& part = parts[i];
    const double rate = plan::RateOf(topology, part.part);
    absl::StrAppend(
        &text,
        absl::StrFormat("%-8s  %-*s  %12s  %10.3f  %s %4.0f %%  %4.1f %%\n", KindOf(part.part),
                        width, plan::NameOf(topology, part.part), FormatRate(rate), part.bytes,
                        Bar(part.utilisation), 100 * part.utilisation, 100 * part.price * rate));
  }
  AppendLeftOut(parts.size(), text);
}

}  // namespace

std::vector<ForestPart> BusiestFirst(const plan::ForestPlan& plan) {
  std::map<std::pair<bool, int>, ForestPart> parts;
  const auto find = [&](plan::NetworkPart part) -> ForestPart& {
    ForestPart& found = parts[{part.is_link, part.index}];
    found.part = part;
    return found;
  };
  for (const plan::ForestLoad& load : plan.loads) {
    find(load.part).bytes += load.bytes;
    find(load.part).utilisation += load.utilisation;
  }
  for (const plan::PartPrice& price : plan.certificate.prices)
    find(price.part).price += price.price;
  std::vector<ForestPart> sorted;
  for (const auto& [key, part] : parts) sorted.push_back(part);
  // What differs by rounding alone is sorted by its price: of a link and its only capacity the one
  // that counts.
  const auto rounded = [](double value) { return std::llround(value * 1e6); };
  std::stable_sort(sorted.begin(), sorted.end(), [&](const ForestPart& a, const ForestPart& b) {
    return std::make_pair(rounded(a.utilisation), a.price) >
           std::make_pair(rounded(b.utilisation), b.price);
  });
  return sorted;
}

std::string FormatForest(const ForestReport& report, const Topology& topology, uint64_t bytes) {
  std::string text;
  AppendCertificate(report, static_cast<double>(bytes), text);
  text += '\n';
  AppendTrees(report.plan, static_cast<double>(bytes), text);
  if (report.plan.loads.empty()) return text;
  text += '\n';
  AppendLoads(report.plan, topology, text);
  return text;
}

void AddForestToJson(const ForestReport& report, const Topology& topology, uint64_t bytes,
                     Json& json) {
  const plan::ForestPlan& plan = report.plan;
  const double size = static_cast<double>(bytes);
  json["rate"] = Number(report.rate());
  json["bound"] = Number(report.bound());
  json["gap"] = plan.certificate.gap();
  json["checked"] = report.checked;
  json["trees"] = plan.pairs.size();
  json["trees_packed"] = plan.packed_pairs;
  json["loss"] = LossOf(plan);
  json["depth"] = plan.depth;
  json["packing_rounds"] = plan.rounds;
  json["plan_seconds"] = report.plan_seconds;
  json["stages"] = std::string(Name(report.options.stages));
  json["stage_seconds"] = {plan.stage_seconds[0] * size, plan.stage_seconds[1] * size};
  if (report.separate_seconds) json["lp4_seconds"] = *report.separate_seconds * size;
  if (report.overlapped_seconds) json["lp8_seconds"] = *report.overlapped_seconds * size;
  json["relays"] = report.options.relays;
  json["chunk_bytes"] = report.chunk_bytes;
  if (report.equal_chunks > 0) {
    json["equal_chunks"] = report.equal_chunks;
    json["equal_chunks_loss"] = report.equal_chunks_loss;
  }
  json["loads"] = Json::array();
  Json prices = Json::array();
  for (const ForestPart& part : BusiestFirst(plan)) {
    const std::string& id = plan::NameOf(topology, part.part);
    const std::string kind(KindOf(part.part));
    if (part.bytes > 0) {
      json["loads"].push_back({{"id", id},
                               {"kind", kind},
                               {"rate", plan::RateOf(topology, part.part)},
                               {"bytes", part.bytes * size},
                               {"bytes_per_byte", part.bytes},
                               {"utilisation", part.utilisation}});
    }
    if (part.price > 0) prices.push_back({{"id", id}, {"kind", kind}, {"price", part.price}});
  }
  json["certificate"] = {{"seconds_per_byte", plan.certificate.seconds_per_byte},
                         {"bound_seconds_per_byte", plan.certificate.bound},
                         {"prices", std::move(prices)}};
  json["pairs"] = Json::array();
  for (const plan::TreePair& pair : plan.pairs) {
    json["pairs"].push_back({{"share", pair.share},
                             {"bytes", pair.share * size},
                             {"root", pair.reduce.root},
                             {"depth", DepthOf(pair)},
                             {"reduce_parents", pair.reduce.parent},
                             {"broadcast_parents", pair.broadcast.parent}});
  }
}

}  // namespace syncopate::tools
