#include "tools/plan_report.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/figures.h"
#include "base/parse.h"
#include "base/units.h"
#include "model/program_checks.h"
#include "nlohmann/json.hpp"
#include "tools/plan_forest_report.h"
#include "tools/plan_picture.h"

namespace syncopate::tools {
namespace {

using Json = nlohmann::ordered_json;

std::string BytesText(double bytes) { return FormatBytes(static_cast<uint64_t>(bytes)); }

uint64_t DataBytes(const PlanReport& report) {
  return report.request.elements * SizeOf(report.type);
}

void AppendRow(absl::string_view name, absl::string_view value, std::string& text) {
  absl::StrAppend(&text, absl::StrFormat("%-10s  %s\n", name, value));
}

// "36 GB/s of memory, 100 GB/s within 24 MiB of cache, 6 us a meeting of 4 workers on 2 cores".
std::string CostsText(const HostCosts& costs, int workers) {
  std::string text = absl::StrCat(FormatRate(costs.memory_bandwidth), " of memory, ");
  if (costs.cache_bytes > 0) {
    absl::StrAppend(&text, FormatRate(costs.cached_bandwidth), " within ",
                    FormatBytes(costs.cache_bytes), " of cache, ");
  }
  absl::StrAppend(&text, FormatSeconds(HandoverSeconds(costs, workers)), " a meeting of ", workers,
                  workers == 1 ? " worker on " : " workers on ", costs.cores,
                  costs.cores == 1 ? " core" : " cores");
  return text;
}

std::string AssumptionText(const AssumedHost& host, int workers) {
  return absl::StrCat(CostsText(host.costs, workers), "; ",
                      host.measured.empty()
                          ? "assumed: run syncopate doctor to measure"
                          : absl::StrCat("measured by syncopate doctor on ", host.measured),
                      host.note.empty() ? "" : ", ", host.note);
}

std::string RequestText(const PlanReport& report) {
  const plan::CollectiveRequest& request = report.request;
  std::string text = absl::StrCat(Name(request.collective));
  if (request.collective != Collective::kBarrier) {
    absl::StrAppend(&text, " of ", FormatBytes(DataBytes(report)), " ", Name(report.type));
  }
  absl::StrAppend(&text, " among ", request.active.size(),
                  request.active.size() == 1 ? " worker" : " workers");
  if (request.active.size() != static_cast<size_t>(request.workers)) {
    absl::StrAppend(&text, " (", FormatRanks(request.active), " of ", request.workers, ")");
  }
  if (request.collective == Collective::kSendReceive) {
    absl::StrAppend(&text, ", from ", request.root, " to ", request.target);
  } else if (HasRoot(request.collective)) {
    absl::StrAppend(&text, ", root ", request.root);
  }
  return text;
}

void AppendCandidates(const std::vector<plan::Candidate>& candidates, std::string& text) {
  size_t width = 9;
  size_t left_out = 0;
  const auto is_shown = [](const plan::Candidate& candidate) {
    return candidate.best_pieces || !candidate.skipped.empty();
  };
  for (const plan::Candidate& candidate : candidates) {
    if (is_shown(candidate)) width = std::max(width, Describe(candidate).size());
  }
  absl::StrAppend(&text, absl::StrFormat("%-*s  %10s  %8s  %10s  %11s\n", width, "candidate",
                                         "predicted", "messages", "most sent", "sent in all"));
  for (const plan::Candidate& candidate : candidates) {
    if (!is_shown(candidate)) {
      ++left_out;
      continue;
    }
    const std::string name = Describe(candidate);
    if (!candidate.skipped.empty()) {
      absl::StrAppend(&text,
                      absl::StrFormat("%-*s  skipped: %s\n", width, name, candidate.skipped));
      continue;
    }
    absl::StrAppend(&text, absl::StrFormat("%-*s  %10s  %8d  %10s  %11s%s\n", width, name,
                                           FormatSeconds(candidate.seconds), candidate.messages,
                                           BytesText(candidate.bytes_sent_max),
                                           BytesText(candidate.bytes_sent_total),
                                           candidate.in_place ? "  run in place" : ""));
  }
  if (left_out > 0) {
    absl::StrAppend(&text, "(", left_out,
                    " that differ from these in the number of pieces only, and are no quicker, are "
                    "left out; --json has them)\n");
  }
}

struct Busy {
  double utilisation;
  double bytes;
  std::string name;
};

std::vector<Busy> BusiestParts(const PlanReport& report) {
  const cost::ProgramCost& cost = report.selection.cost;
  std::vector<Busy> parts;
  for (size_t i = 0; i < cost.capacities.size(); ++i) {
    parts.push_back({cost.capacities[i].utilisation, cost.capacities[i].bytes,
                     absl::StrCat("capacity ", report.topology.capacities[i].id)});
  }
  for (size_t i = 0; i < cost.links.size(); ++i) {
    parts.push_back({cost.links[i].utilisation, cost.links[i].bytes,
                     absl::StrCat("link ", report.topology.links[i].id)});
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Busy& a, const Busy& b) { return a.utilisation > b.utilisation; });
  constexpr size_t kPartsShown = 5;
  if (parts.size() > kPartsShown) parts.resize(kPartsShown);
  return parts;
}

// What the prediction consists of, for a program that runs as a whole in shared memory.
void AppendTimeInPlace(const plan::HostTime& time, std::string& text) {
  absl::StrAppend(&text, "what its time goes to, run in place in shared memory:\n");
  absl::StrAppend(&text,
                  absl::StrFormat("  %10s  %d meeting%s of all workers, %s each\n",
                                  FormatSeconds(time.waiting()), time.meetings,
                                  time.meetings == 1 ? "" : "s", FormatSeconds(time.meeting)));
  if (time.memory > 0) {
    absl::StrAppend(
        &text, absl::StrFormat("  %10s  %s read and written at %s\n", FormatSeconds(time.memory),
                               BytesText(time.traffic), FormatRate(time.traffic / time.memory)));
  }
  absl::StrAppend(&text, absl::StrFormat("  %10s  predicted\n", FormatSeconds(time.seconds())));
}

// From the end of the critical chain to the prediction; nothing where they are the same.
void AppendAroundChain(const plan::Candidate& winner, std::string& text) {
  const plan::HostTime& around = winner.on_host;
  const double experience = winner.steps_seconds * (winner.slower - 1);
  if (around.seconds() == 0 && experience == 0) return;
  absl::StrAppend(&text,
                  absl::StrFormat("  %10s  the steps\n", FormatSeconds(winner.steps_seconds)));
  if (experience > 0) {
    absl::StrAppend(&text, absl::StrFormat("  %10s  more by experience: such plans take %.2f times "
                                           "as long as the model says\n",
                                           FormatSeconds(experience), winner.slower));
  }
  if (around.meetings > 0) {
    absl::StrAppend(&text, absl::StrFormat("  %10s  %d meetings of all workers, before and after\n",
                                           FormatSeconds(around.waiting()), around.meetings));
  }
  if (around.memory > 0) {
    absl::StrAppend(&text,
                    absl::StrFormat("  %10s  copies of the data before and after, %s read "
                                    "and written\n",
                                    FormatSeconds(around.memory), BytesText(around.traffic)));
  }
  absl::StrAppend(&text, absl::StrFormat("  %10s  predicted\n", FormatSeconds(winner.seconds)));
}

void AppendChain(const PlanReport& report, std::string& text) {
  constexpr size_t kShownAtEachEnd = 12;
  const std::vector<cost::ProgramCost::ChainStep>& chain = report.selection.cost.critical_chain;
  absl::StrAppend(&text, "critical chain of its steps (each waited for the one before):\n");
  for (size_t i = 0; i < chain.size(); ++i) {
    if (i == kShownAtEachEnd && chain.size() > 2 * kShownAtEachEnd) {
      const size_t hidden = chain.size() - 2 * kShownAtEachEnd;
      absl::StrAppend(&text, "  ... ", hidden, " more ...\n");
      i += hidden;
    }
    const cost::ProgramCost::ChainStep& element = chain[i];
    const Step& step = report.selection.program.steps[element.worker][element.step];
    absl::StrAppend(&text, absl::StrFormat("  %10s to %10s  worker %d, step %d: %s\n",
                                           FormatSeconds(element.begin), FormatSeconds(element.end),
                                           element.worker, element.step, StepText(step)));
  }
  AppendAroundChain(report.selection.candidates[0], text);
}

Json CandidateToJson(const plan::Candidate& candidate) {
  Json json = {{"algorithm", candidate.algorithm},
               {"variant", candidate.variant},
               {"pieces", candidate.pieces}};
  if (!candidate.skipped.empty()) {
    json["skipped"] = candidate.skipped;
    return json;
  }
  json["predicted_us"] = candidate.seconds * 1e6;
  json["in_place"] = candidate.in_place;
  json["messages"] = candidate.messages;
  json["bytes_sent_max"] = candidate.bytes_sent_max;
  json["bytes_sent_total"] = candidate.bytes_sent_total;
  return json;
}

}  // namespace

std::string FormatSummary(const PlanReport& report) {
  const plan::Selection& selection = report.selection;
  const plan::Candidate& winner = selection.candidates[0];
  std::string text;
  AppendRow("request", RequestText(report), text);
  AppendRow(
      "topology",
      absl::StrCat(report.topology.source.empty() ? "" : report.topology.source + ", ", "version ",
                   report.topology.version, ", digest ", DigestOf(report.topology).ToString()),
      text);
  AppendRow("algorithm", Describe(winner), text);
  if (!report.has_program()) {
    AppendRow("program", absl::StrCat("none: ", winner.skipped), text);
    return text;
  }
  AppendRow("rounds", absl::StrCat(report.proof.rounds), text);
  AppendRow("messages", absl::StrCat(winner.messages), text);
  AppendRow("bytes sent",
            absl::StrCat(BytesText(winner.bytes_sent_max), " by the worker that sends most, ",
                         BytesText(winner.bytes_sent_total), " in all"),
            text);
  if (report.request.collective == Collective::kAllReduce) {
    AppendRow("same bits",
              report.proof.same_bits_everywhere ? "yes: all workers add in the same order"
                                                : "no: workers may differ in the last bits",
              text);
  }
  AppendRow("predicted",
            absl::StrCat(FormatSeconds(winner.seconds),
                         winner.in_place ? ", run in place in shared memory" : ""),
            text);
  if (report.host) {
    AppendRow("assumes", AssumptionText(*report.host, report.request.workers), text);
  }
  AppendRow("digest", DigestOf(selection.program).ToString(), text);
  return text;
}

std::string FormatExplanation(const PlanReport& report) {
  const plan::Selection& selection = report.selection;
  std::string text;
  if (report.forest) {
    absl::StrAppend(&text, FormatForest(*report.forest, report.topology, DataBytes(report)), "\n");
  }
  AppendCandidates(selection.candidates, text);
  if (!report.has_program()) return text;
  absl::StrAppend(&text, "\nwhy: ", selection.why, "\n");
  if (selection.cost.critical_chain.empty()) return text;
  if (selection.candidates[0].in_place) {
    absl::StrAppend(&text, "\n");
    AppendTimeInPlace(selection.candidates[0].on_host, text);
    return text;
  }
  absl::StrAppend(&text, "\nbusiest parts of the topology while its steps run:\n");
  for (const Busy& part : BusiestParts(report)) {
    absl::StrAppend(&text, absl::StrFormat("  %3.0f %%  %10s  %s\n", 100 * part.utilisation,
                                           BytesText(part.bytes), part.name));
  }
  absl::StrAppend(&text, "\n");
  AppendChain(report, text);
  return text;
}

std::string PlanToJson(const PlanReport& report) {
  const plan::CollectiveRequest& request = report.request;
  const plan::Selection& selection = report.selection;
  const plan::Candidate& winner = selection.candidates[0];
  Json json = {{"collective", std::string(Name(request.collective))},
               {"type", std::string(Name(report.type))},
               {"bytes", DataBytes(report)},
               {"workers", request.workers},
               {"active", request.active},
               {"topology_digest", DigestOf(report.topology).ToString()},
               {"algorithm", winner.algorithm},
               {"variant", winner.variant},
               {"pieces", winner.pieces}};
  if (HasRoot(request.collective)) json["root"] = request.root;
  if (report.forest) AddForestToJson(*report.forest, report.topology, DataBytes(report), json);
  json["candidates"] = Json::array();
  for (const plan::Candidate& candidate : selection.candidates) {
    json["candidates"].push_back(CandidateToJson(candidate));
  }
  if (!report.has_program()) {
    json["predicted_seconds"] = Json();
    return json.dump(2) + "\n";
  }
  json.update({{"rounds", report.proof.rounds},
               {"messages", winner.messages},
               {"bytes_sent_max", winner.bytes_sent_max},
               {"bytes_sent_total", winner.bytes_sent_total},
               {"same_bits", report.proof.same_bits_everywhere},
               {"predicted_us", winner.seconds * 1e6},
               {"predicted_seconds", winner.seconds},
               {"in_place", winner.in_place},
               {"digest", DigestOf(selection.program).ToString()},
               {"why", selection.why},
               {"parts",
                {{"steps_us", winner.steps_seconds * winner.slower * 1e6},
                 {"waiting_us", winner.on_host.waiting() * 1e6},
                 {"memory_us", winner.on_host.memory * 1e6}}},
               {"critical_chain", Json::array()}});
  if (report.host) {
    const AssumedHost& host = *report.host;
    json["assumes"] = {{"cores", host.costs.cores},
                       {"memory_bytes_per_second", host.costs.memory_bandwidth},
                       {"cached_bytes_per_second", host.costs.cached_bandwidth},
                       {"cache_bytes", host.costs.cache_bytes},
                       {"meeting_us", HandoverSeconds(host.costs, request.workers) * 1e6},
                       {"measured", host.measured.empty() ? Json() : Json(host.measured)}};
  }
  if (winner.in_place) return json.dump(2) + "\n";  // its steps are not run one by one
  for (const cost::ProgramCost::ChainStep& element : selection.cost.critical_chain) {
    json["critical_chain"].push_back({{"worker", element.worker},
                                      {"step", element.step},
                                      {"begin_us", element.begin * 1e6},
                                      {"end_us", element.end * 1e6}});
  }
  return json.dump(2) + "\n";
}

std::string PlanToSvg(const PlanReport& report) {
  PlanPicture picture;
  picture.placement = report.placement;
  picture.active = report.request.active;
  picture.links.resize(report.topology.links.size(), 0);
  picture.capacities.resize(report.topology.capacities.size(), 0);
  if (report.forest) {
    const plan::ForestPlan& plan = report.forest->plan;
    picture.pairs = plan.pairs;
    for (const plan::ForestLoad& load : plan.loads) {
      (load.part.is_link ? picture.links : picture.capacities)[load.part.index] = load.utilisation;
    }
    picture.title =
        plan.seconds_per_byte > 0
            ? absl::StrFormat("forest: %s of a worker's data, at most %s are possible, gap %s %%",
                              FormatRate(report.forest->rate()), FormatRate(report.forest->bound()),
                              Fixed(100 * plan.certificate.gap(), 2))
            : "forest: nothing crosses the network";
  } else {
    const cost::ProgramCost& cost = report.selection.cost;
    for (size_t i = 0; i < cost.links.size(); ++i) picture.links[i] = cost.links[i].utilisation;
    for (size_t i = 0; i < cost.capacities.size(); ++i) {
      picture.capacities[i] = cost.capacities[i].utilisation;
    }
    picture.title =
        absl::StrCat(Describe(report.selection.candidates[0]), ": ", RequestText(report),
                     ", predicted ", FormatSeconds(report.selection.candidates[0].seconds));
  }
  return DrawPlan(report.topology, picture);
}

}  // namespace syncopate::tools
