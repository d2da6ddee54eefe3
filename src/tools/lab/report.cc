// What a lab is like: its picture, and whether it holds its rates.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/figures.h"
#include "base/parse.h"
#include "base/progress.h"
#include "base/status.h"
#include "lab/check.h"
#include "lab/child_process.h"
#include "lab/lab.h"
#include "lab/load.h"
#include "lab/picture.h"
#include "lab/requirements.h"
#include "nlohmann/json.hpp"
#include "tools/command_line.h"
#include "tools/interrupt.h"
#include "tools/lab/actions.h"

namespace syncopate::tools::labtool {
namespace {

using Json = nlohmann::ordered_json;
using Load = std::vector<std::array<double, 2>>;

// What each measurement of a check takes besides its own time.
constexpr double kTrialStartSeconds = 0.3;

Json DirectionJson(const lab::Setting& setting, double load) {
  return {{"bits_per_second", setting.rate > 0 ? Json(setting.rate) : Json(nullptr)},
          {"cut", setting.cut},
          {"bits_per_second_now", load}};
}

bool Alive(const lab::Change& change) {
  return std::all_of(change.processes.begin(), change.processes.end(), lab::IsAlive);
}

Json StatusJson(const lab::Plan& plan, const std::vector<lab::Change>& changes, const Load& load) {
  const lab::Spec& spec = plan.spec;
  const lab::Settings settings = lab::Effective(spec, changes);
  Json hosts = Json::array();
  Json switches = Json::array();
  for (size_t i = 0; i < spec.nodes.size(); ++i) {
    if (!spec.nodes[i].is_host) {
      switches.push_back(spec.nodes[i].name);
      continue;
    }
    hosts.push_back({{"name", spec.nodes[i].name},
                     {"address", plan.address[i]},
                     {"namespace", plan.netns[i]},
                     {"bystander", spec.nodes[i].bystander}});
  }
  Json links = Json::array();
  for (size_t i = 0; i < spec.links.size(); ++i) {
    links.push_back({{"a", spec.nodes[spec.links[i].a].name},
                     {"b", spec.nodes[spec.links[i].b].name},
                     {"a_to_b", DirectionJson(settings.links[i][0], load[i][0])},
                     {"b_to_a", DirectionJson(settings.links[i][1], load[i][1])}});
  }
  Json rows = Json::array();
  for (const lab::Change& change : changes) {
    rows.push_back(
        {{"name", change.name}, {"do", ToWords(spec, change)}, {"alive", Alive(change)}});
  }
  return {{"lab", spec.name},
          {"hosts", hosts},
          {"switches", switches},
          {"links", links},
          {"changes", rows}};
}

void PrintStatus(const lab::Plan& plan, const std::vector<lab::Change>& changes, const Load& load) {
  const lab::Spec& spec = plan.spec;
  const size_t hosts = lab::Hosts(spec).size();
  std::cout << absl::StrCat("lab ", spec.name, ": ", CountOf(hosts, "host"), ", ",
                            CountOf(spec.nodes.size() - hosts, "switch", "switches"), ", ",
                            CountOf(spec.links.size(), "link"), "\n\n",
                            lab::Picture(plan, lab::Effective(spec, changes), load));
  if (!changes.empty()) std::cout << "\nchanges\n";
  for (const lab::Change& change : changes) {
    std::cout << absl::StrCat("  ", change.name, "  ", ToWords(spec, change),
                              Alive(change) ? "" : "  (has ended)", "\n");
  }
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const std::string warning = lab::CpuLimitWarning(spec, cores);
  if (!warning.empty()) std::cout << absl::StrCat("\nnote: ", warning, "\n");
}

absl::StatusOr<double> Seconds(const std::string& text, double fallback) {
  if (text.empty()) return fallback;
  absl::StatusOr<double> seconds = ParseDouble(text, 0.01, 3600);
  if (!seconds.ok()) return At("--seconds", seconds.status());
  return seconds;
}

absl::Status ShowStatus(const Arguments& arguments) {
  SYNCOPATE_ASSIGN_OR_RETURN(const double seconds, Seconds(arguments.seconds, 0.3));
  SYNCOPATE_ASSIGN_OR_RETURN(const lab::Lab chosen,
                             lab::Lab::Open(arguments.lab, MonotonicClock()));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<lab::Change> changes, chosen.Changes());
  SYNCOPATE_ASSIGN_OR_RETURN(const Load load,
                             lab::MeasureLoad(chosen.plan(), seconds, MonotonicClock()));
  if (arguments.json) {
    std::cout << StatusJson(chosen.plan(), changes, load).dump(1) << "\n";
  } else {
    PrintStatus(chosen.plan(), changes, load);
  }
  return absl::OkStatus();
}

const char* KindName(lab::Trial::Kind kind) {
  switch (kind) {
    case lab::Trial::Kind::kSingle:
      return "single";
    case lab::Trial::Kind::kShared:
      return "shared";
    case lab::Trial::Kind::kAll:
      return "all";
  }
  return "";
}

absl::StatusOr<std::vector<lab::Trial>> ChosenTrials(const Arguments& arguments,
                                                     const lab::Plan& plan,
                                                     const lab::Settings& settings) {
  std::vector<lab::Trial> trials = lab::PlanTrials(plan, settings);
  if (arguments.only.empty()) return trials;
  if (arguments.only != "single" && arguments.only != "shared" && arguments.only != "all") {
    return absl::InvalidArgumentError(
        absl::StrCat("--only: \"", arguments.only, "\" is not single, shared or all"));
  }
  trials.erase(std::remove_if(
                   trials.begin(), trials.end(),
                   [&](const lab::Trial& trial) { return arguments.only != KindName(trial.kind); }),
               trials.end());
  return trials;
}

void PrintCheck(const std::vector<lab::TrialResult>& results) {
  std::cout << absl::StrFormat("%-8s%14s%14s%9s%9s  %s\n", "", "asked", "got", "share", "fair",
                               "flows");
  for (const lab::TrialResult& result : results) {
    const double asked = lab::Asked(result);
    const std::string share =
        asked > 0 ? absl::StrFormat("%.1f %%", 100 * lab::Got(result) / asked) : "";
    const std::string fair =
        result.got.size() > 1 && asked > 0 ? absl::StrFormat("%.2f", lab::Fairness(result)) : "";
    std::cout << absl::StrFormat("%-8s%14s%14s%9s%9s  %s%s\n", KindName(result.trial.kind),
                                 asked > 0 ? lab::ReadableRate(asked) : "no limit",
                                 lab::ReadableRate(lab::Got(result)), share, fair,
                                 result.trial.what, lab::Holds(result) ? "" : "  <-- not held");
  }
  std::cout << "\n" << lab::Verdict(results) << "\n";
}

Json CheckJson(const std::vector<lab::TrialResult>& results, bool hold) {
  Json rows = Json::array();
  for (const lab::TrialResult& result : results) {
    rows.push_back({{"kind", KindName(result.trial.kind)},
                    {"what", result.trial.what},
                    {"asked_bits_per_second", result.trial.fair},
                    {"got_bits_per_second", result.got},
                    {"fairness", lab::Fairness(result)},
                    {"holds", lab::Holds(result)}});
  }
  return {{"trials", rows}, {"hold", hold}, {"verdict", lab::Verdict(results)}};
}

absl::StatusOr<bool> RunCheck(const Arguments& arguments) {
  SYNCOPATE_ASSIGN_OR_RETURN(const double seconds, Seconds(arguments.seconds, 2));
  SYNCOPATE_RETURN_IF_ERROR(lab::CheckIperf());
  SYNCOPATE_ASSIGN_OR_RETURN(const lab::Lab chosen,
                             lab::Lab::Open(arguments.lab, MonotonicClock()));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<lab::Change> changes, chosen.Changes());
  SYNCOPATE_ASSIGN_OR_RETURN(
      const std::vector<lab::Trial> trials,
      ChosenTrials(arguments, chosen.plan(), lab::Effective(chosen.plan().spec, changes)));
  if (std::any_of(changes.begin(), changes.end(), [](const lab::Change& change) {
        return change.kind == lab::ChangeKind::kFlow && Alive(change);
      })) {
    std::cerr << "syncopate lab check: note: flows in the background take their part of what is "
                 "measured; undo them to see the rates alone\n";
  }
  SYNCOPATE_ASSIGN_OR_RETURN(ProgressOptions style, ProgressOfThisProcess());
  style.thread = false;  // iperf3 is forked into the hosts
  const InterruptScope interrupt;
  Progress progress("syncopate lab check", style, MonotonicClock(), std::cerr);
  const double count = static_cast<double>(trials.size());
  progress.Announce(count * (seconds + kTrialStartSeconds),
                    absl::StrFormat("%d measurements of %g s", trials.size(), seconds));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<lab::TrialResult> results,
                             lab::RunTrials(
                                 chosen.plan(), trials, seconds, MonotonicClock(),
                                 [&](const lab::Trial& trial, size_t index) {
                                   progress.Show(trial.what, static_cast<double>(index) / count);
                                 },
                                 interrupt.fd()));
  progress.Clear();
  const bool hold = std::all_of(results.begin(), results.end(), lab::Holds);
  if (arguments.json) {
    std::cout << CheckJson(results, hold).dump(1) << "\n";
  } else {
    PrintCheck(results);
  }
  return hold;
}

}  // namespace

int Status(const Arguments& arguments) {
  const absl::Status shown = ShowStatus(arguments);
  return shown.ok() ? kDone : Complain("lab status", shown);
}

int Check(const Arguments& arguments) {
  const absl::StatusOr<bool> hold = RunCheck(arguments);
  if (!hold.ok()) return Complain("lab check", hold.status());
  return *hold ? kDone : kFailed;
}

}  // namespace syncopate::tools::labtool
