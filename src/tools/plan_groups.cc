#include "tools/plan_groups.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/status.h"
#include "base/units.h"
#include "plan/collective/select.h"
#include "plan/groups/ds_sync.h"
#include "plan/groups/gossip.h"
#include "plan/groups/round_times.h"

namespace syncopate::tools {
namespace {

constexpr double kSlowUnlessSaid = 0.5;
// Patterns that a search looks at; fewer for more workers, so that it takes seconds.
// Up to so many workers all candidates are played, so that people can compare.
constexpr int kCandidatesPlayedWorkersMax = 16;
constexpr int kTriesMin = 200, kTriesMax = 5000, kTriesOfWorkers = 60000;

// The uplink of the place, host or rank of that name.
absl::StatusOr<size_t> FindUplink(const GroupsReport& report, absl::string_view name) {
  const auto& uplinks = report.network.uplinks();
  std::string wanted(name);
  int rank = -1;
  if (absl::SimpleAtoi(name, &rank) && rank >= 0 && rank < report.network.workers()) {
    wanted =
        report.topology.nodes[static_cast<size_t>(report.placement[static_cast<size_t>(rank)])].id;
  }
  std::string known;
  for (size_t i = 0; i < uplinks.size(); ++i) {
    if (uplinks[i].name == wanted) return i;
    if (i < 12) absl::StrAppend(&known, known.empty() ? "" : ", ", uplinks[i].name);
  }
  for (const int node : report.placement) {  // a host that holds one worker
    const Topology::Node& device = report.topology.nodes[static_cast<size_t>(node)];
    if (device.host < 0 || report.topology.nodes[static_cast<size_t>(device.host)].id != wanted) {
      continue;
    }
    for (size_t i = 0; i < uplinks.size(); ++i) {
      if (uplinks[i].name == device.id) return i;
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("--slow: \"", name,
                                                 "\" is no rack, host or rank here; there are ",
                                                 known, uplinks.size() > 12 ? ", ..." : ""));
}

absl::Status MakeSlow(const std::vector<std::string>& slow, GroupsReport& report) {
  std::vector<std::pair<plan::GroupNetwork::Uplink, double>> uplinks;
  for (const std::string& each : slow) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(each, absl::MaxSplits('=', 1));
    double factor = kSlowUnlessSaid;
    if (!parts.second.empty()) {
      const absl::StatusOr<double> said = ParseDouble(parts.second, 1e-6, 1);
      if (!said.ok()) return At("--slow", said.status());
      factor = *said;
    }
    SYNCOPATE_ASSIGN_OR_RETURN(const size_t index, FindUplink(report, parts.first));
    const plan::GroupNetwork::Uplink& uplink = report.network.uplinks()[index];
    if (uplink.links.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--slow: \"", parts.first, "\" has no link that all of its traffic passes"));
    }
    uplinks.push_back({uplink, factor});
    report.slow.push_back(absl::StrCat(uplink.name, " at ", factor));
  }
  if (slow.empty()) return absl::OkStatus();
  report.topology = plan::WithSlowUplinks(std::move(report.topology), uplinks);
  SYNCOPATE_ASSIGN_OR_RETURN(report.network,
                             plan::GroupNetwork::Of(report.topology, report.placement));
  return absl::OkStatus();
}

absl::Status PlanGossip(GroupsReport& report) {
  SYNCOPATE_ASSIGN_OR_RETURN(Pattern pattern, plan::PlanGossipPairs(report.network.workers()));
  plan::GroupCandidate candidate;
  candidate.name = "worker i with i XOR 2^k";
  SYNCOPATE_ASSIGN_OR_RETURN(candidate.consensus, plan::ConsensusOf(pattern));
  for (const Pattern::Round& round : pattern.rounds) {
    const double seconds = report.network.RoundSeconds(round, static_cast<double>(report.bytes));
    candidate.seconds.push_back(seconds);
    candidate.mean_seconds += seconds / pattern.period();
    candidate.longest_seconds = std::max(candidate.longest_seconds, seconds);
  }
  candidate.pattern = std::move(pattern);
  report.choice.candidates = {std::move(candidate)};
  report.choice.why = "gossip does not look at the network";
  return absl::OkStatus();
}

// Fills in what rounds of the winner take.
absl::Status PlayRounds(plan::RoundPlayer* player, GroupsReport& report) {
  report.round_seconds.clear();
  report.uplink_bytes.clear();
  report.algorithms.clear();
  for (const Pattern::Round& round : report.pattern().rounds) {
    if (player == nullptr) {
      const double bytes = static_cast<double>(report.bytes);
      report.round_seconds.push_back(report.network.RoundSeconds(round, bytes));
      report.uplink_bytes.push_back(report.network.UplinkBytes(round, bytes));
      continue;
    }
    SYNCOPATE_ASSIGN_OR_RETURN(plan::PlayedRound played, player->Play(round));
    report.round_seconds.push_back(played.seconds);
    report.uplink_bytes.push_back(std::move(played.uplink_bytes));
    report.algorithms.push_back(std::move(played.algorithms));
  }
  return absl::OkStatus();
}

// By formula a search may find what is not quicker when it is played; then the rules' pattern stays.
absl::Status KeepWhatIsQuicker(plan::RoundPlayer* player, plan::GroupCandidate rules,
                               GroupsReport& report) {
  if (player == nullptr || rules.pattern == report.pattern()) return absl::OkStatus();
  const double found = report.mean_seconds();
  double sum = 0;
  for (const Pattern::Round& round : rules.pattern.rounds) {
    SYNCOPATE_ASSIGN_OR_RETURN(const plan::PlayedRound played, player->Play(round));
    sum += played.seconds;
  }
  if (found <= sum / rules.pattern.period()) return absl::OkStatus();
  std::vector<plan::GroupCandidate>& all = report.choice.candidates;
  all.front().against = "when its rounds are played, they are not quicker than the rules'";
  std::erase_if(all, [&](const plan::GroupCandidate& candidate) {
    return candidate.name == rules.name && candidate.pattern == rules.pattern;
  });
  rules.against.clear();
  all.insert(all.begin(), std::move(rules));
  report.choice.why = "the search found nothing quicker that mixes as well";
  return PlayRounds(player, report);
}

absl::Status PlayCandidates(plan::RoundPlayer& player, GroupsReport& report) {
  for (const plan::GroupCandidate& candidate : report.choice.candidates) {
    double& mean = report.candidate_seconds.emplace_back();
    for (const Pattern::Round& round : candidate.pattern.rounds) {
      SYNCOPATE_ASSIGN_OR_RETURN(const plan::PlayedRound played, player.Play(round));
      mean += played.seconds / candidate.pattern.period();
    }
  }
  return absl::OkStatus();
}

absl::Status CompareWithAllReduce(size_t bytes_per_element, GroupsReport& report) {
  const int workers = report.network.workers();
  Pattern::Group all(static_cast<size_t>(workers));
  std::iota(all.begin(), all.end(), 0);
  if (!report.played) {
    report.all_reduces.push_back(
        {"ring by place", report.network.RoundSeconds({all}, static_cast<double>(report.bytes)),
         ""});
    report.all_reduces.push_back({"forest", 0,
                                  absl::StrCat("not played for more than ", plan::kPlayedWorkersMax,
                                               " workers; see syncopate plan --strategy forest")});
    return absl::OkStatus();
  }
  plan::CollectiveRequest request;
  request.workers = workers;
  request.active = all;
  request.elements = report.bytes / bytes_per_element;
  SYNCOPATE_ASSIGN_OR_RETURN(
      const plan::Selection selection,
      plan::SelectProgram(request, bytes_per_element, report.topology, report.placement, {}));
  const auto add = [&](absl::string_view algorithm) {
    for (const plan::Candidate& candidate : selection.candidates) {  // the quickest first
      if (!algorithm.empty() && candidate.algorithm != algorithm) continue;
      report.all_reduces.push_back({Describe(candidate), candidate.seconds, candidate.skipped});
      return;
    }
  };
  add("");
  for (const absl::string_view algorithm : {"forest", "ring"}) {
    if (selection.candidates[0].algorithm != algorithm) add(algorithm);
  }
  return absl::OkStatus();
}

}  // namespace

double GroupsReport::mean_seconds() const {
  return std::accumulate(round_seconds.begin(), round_seconds.end(), 0.0) /
         static_cast<double>(round_seconds.size());
}

bool IsGroupStrategy(absl::string_view name) {
  return name == plan::kDsSync || name == plan::kGossip;
}

absl::StatusOr<GroupsReport> MakeGroupsReport(const GroupRequest& request) {
  GroupsReport report;
  report.strategy = request.strategy;
  report.topology = request.topology;
  report.bytes = request.bytes;
  const int devices = static_cast<int>(Devices(report.topology).size());
  const int workers =
      request.workers > 0 ? request.workers : std::min(devices, limits::kWorkersMax);
  SYNCOPATE_ASSIGN_OR_RETURN(report.placement, PlaceInOrder(report.topology, workers));
  SYNCOPATE_ASSIGN_OR_RETURN(report.network,
                             plan::GroupNetwork::Of(report.topology, report.placement));
  SYNCOPATE_RETURN_IF_ERROR(MakeSlow(request.options.slow, report));
  const double bytes = static_cast<double>(request.bytes);
  std::optional<plan::GroupCandidate> rules;
  if (request.strategy == plan::kGossip) {
    SYNCOPATE_RETURN_IF_ERROR(PlanGossip(report));
  } else {
    SYNCOPATE_ASSIGN_OR_RETURN(report.choice, plan::ChooseDsSync(report.network, bytes));
    if (request.options.optimize) {
      rules = report.choice.winner();
      const int tries = std::clamp(kTriesOfWorkers / workers, kTriesMin, kTriesMax);
      SYNCOPATE_RETURN_IF_ERROR(OptimizeGroups(report.network, bytes, tries, report.choice));
    }
  }
  report.played = workers <= plan::kPlayedWorkersMax;
  std::optional<plan::RoundPlayer> player;
  if (report.played) {
    player.emplace(report.topology, report.placement, report.network,
                   request.bytes / SizeOf(request.type), SizeOf(request.type));
  }
  plan::RoundPlayer* const playing = player ? &*player : nullptr;
  SYNCOPATE_RETURN_IF_ERROR(PlayRounds(playing, report));
  if (rules) SYNCOPATE_RETURN_IF_ERROR(KeepWhatIsQuicker(playing, *std::move(rules), report));
  if (playing != nullptr && workers <= kCandidatesPlayedWorkersMax) {
    SYNCOPATE_RETURN_IF_ERROR(PlayCandidates(*playing, report));
  }
  SYNCOPATE_RETURN_IF_ERROR(CompareWithAllReduce(SizeOf(request.type), report));
  return report;
}

void AddGroupOptions(CLI::App& plan, GroupArguments& arguments) {
  plan.add_option("--slow", arguments.slow,
                  "ds-sync, gossip: a rack, host or rank whose uplink others use now, and the part "
                  "of its rate that is left: rack1 or h4=0.25 (0.5); may be given several times")
      ->take_all();
  plan.add_flag("--optimize", arguments.optimize,
                "ds-sync: also search for a pattern of quicker rounds that mixes no worse");
}

}  // namespace syncopate::tools
