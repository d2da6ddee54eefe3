// How `syncopate plan` shows its result: tables for people, JSON for programs.
#ifndef SYNCOPATE_TOOLS_PLAN_REPORT_H_
#define SYNCOPATE_TOOLS_PLAN_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "model/program_validator.h"
#include "model/topology.h"
#include "model/topology_makers.h"
#include "plan/collective/select.h"
#include "syncopate/data_type.h"
#include "tools/plan_forest.h"

namespace syncopate::tools {

// What is assumed of the machine that all workers are on.
struct AssumedHost {
  HostCosts costs;
  std::string measured;  // the day on which `syncopate doctor` measured it; empty: it did not
  std::string note;      // what else is to be known of it; may be empty
};

struct PlanReport {
  plan::CollectiveRequest request;
  DataType type = DataType::kFloat32;
  Topology topology;
  plan::Selection selection;
  ProgramProof proof;  // of selection.program
  std::vector<int> placement;
  std::optional<ForestReport> forest;  // if the chosen plan is one
  std::optional<AssumedHost> host;  // where no topology was given: what is assumed of this machine

  // Whether the chosen plan has a program; one that is too large to be played has none.
  bool has_program() const { return selection.candidates[0].skipped.empty(); }
};

// What was asked for and what was chosen.
std::string FormatSummary(const PlanReport& report);
// All candidates, why one won, what was busy and the critical chain.
std::string FormatExplanation(const PlanReport& report);
// All of it as one object.
std::string PlanToJson(const PlanReport& report);
// The network, how busy its parts are and the trees of a forest plan, as SVG.
std::string PlanToSvg(const PlanReport& report);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_PLAN_REPORT_H_
