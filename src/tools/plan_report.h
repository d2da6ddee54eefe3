// How `syncopate plan` shows its result: tables for people, JSON for programs.
#ifndef SYNCOPATE_TOOLS_PLAN_REPORT_H_
#define SYNCOPATE_TOOLS_PLAN_REPORT_H_

#include <string>

#include "model/program_validator.h"
#include "model/topology.h"
#include "plan/collective/select.h"
#include "syncopate/data_type.h"

namespace syncopate {

struct PlanReport {
  CollectiveRequest request;
  DataType type = DataType::kFloat32;
  Topology topology;
  Selection selection;
  ProgramProof proof;  // of selection.program
};

// What was asked for and what was chosen.
std::string FormatSummary(const PlanReport& report);
// All candidates, why one won, what was busy and the critical chain.
std::string FormatExplanation(const PlanReport& report);
// All of it as one object.
std::string PlanToJson(const PlanReport& report);

}  // namespace syncopate

#endif  // SYNCOPATE_TOOLS_PLAN_REPORT_H_
