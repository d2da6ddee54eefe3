// `syncopate plan --strategy ds-sync`: which workers would average with which, round by round, how
// long a round takes, how well it mixes, and what an all-reduce of all takes on the same network.
#ifndef SYNCOPATE_TOOLS_PLAN_GROUPS_H_
#define SYNCOPATE_TOOLS_PLAN_GROUPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/pattern.h"
#include "model/topology.h"
#include "plan/groups/choose.h"
#include "plan/groups/group_network.h"
#include "syncopate/data_type.h"

namespace syncopate::tools {

// As on the command line, besides what all plans have.
struct GroupArguments {
  std::vector<std::string> slow;  // "rack1", "h4=0.25": a place, a host or a rank, and its factor
  bool optimize = false;

  friend bool operator==(const GroupArguments&, const GroupArguments&) = default;
};

struct GroupRequest {
  std::string strategy;  // "ds-sync", "gossip"
  Topology topology;
  int workers = 0;  // 0: one for each device
  uint64_t bytes = 0;
  DataType type = DataType::kFloat32;
  GroupArguments options;
};

struct GroupsReport {
  struct AllReduce {
    std::string name;
    double seconds = 0;
    std::string skipped;  // why there is no time; empty if there is
  };

  std::string strategy;
  Topology topology;  // with what is slow
  std::vector<int> placement;
  uint64_t bytes = 0;
  plan::GroupNetwork network;
  std::vector<std::string> slow;  // what was said to be, as "rack1 at 0.5"
  plan::GroupChoice choice;
  // Whether the times and bytes below are those of programs, or of formulas, as for many workers.
  bool played = false;
  std::vector<double> round_seconds;
  std::vector<std::vector<double>> uplink_bytes;     // by round, then uplink; the busier direction
  std::vector<std::vector<std::string>> algorithms;  // by round, then group; none if not played
  // By candidate, the mean time of a round when it is played; none if there are many workers.
  std::vector<double> candidate_seconds;
  std::vector<AllReduce> all_reduces;  // of all workers; the quickest first

  const Pattern& pattern() const { return choice.winner().pattern; }
  double mean_seconds() const;
};

// Whether `plan --strategy NAME` is about groups.
bool IsGroupStrategy(absl::string_view name);

absl::StatusOr<GroupsReport> MakeGroupsReport(const GroupRequest& request);

std::string FormatGroupsSummary(const GroupsReport& report);
std::string FormatGroupsExplanation(const GroupsReport& report);
std::string GroupsReportToJson(const GroupsReport& report);
// Workers by rounds; those of a group have a colour in common.
std::string GroupsToSvg(const GroupsReport& report);

// Adds the options to `plan`; `arguments` must outlive the parsing.
void AddGroupOptions(CLI::App& plan, GroupArguments& arguments);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_PLAN_GROUPS_H_
