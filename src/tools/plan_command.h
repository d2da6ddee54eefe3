// `syncopate plan`: which program a collective would run, how long the cost model says it takes,
// and why it was chosen; or which transfers a schedule would make of a model's gradients;
// or which workers would average with which.
#ifndef SYNCOPATE_TOOLS_PLAN_COMMAND_H_
#define SYNCOPATE_TOOLS_PLAN_COMMAND_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

#include "CLI/CLI.hpp"
#include "tools/doctor/measured_host.h"
#include "tools/plan_forest.h"
#include "tools/plan_groups.h"
#include "tools/plan_schedule.h"

namespace syncopate::tools {

// As on the command line; what is not given is at its default here.
struct PlanArguments {
  std::string collective = "all-reduce";
  int workers = 0;  // 0: one for each device of the topology
  std::string bytes = "1M";
  std::string type = "float32";
  std::string topology;                  // a file; empty: this host, with `cores`
  int cores = 2;                         // of the host where there is no file
  std::optional<MeasuredHost> measured;  // what is known of this machine, from the cache
  std::optional<std::string> active;     // ranks; none: all
  int root = -1;                         // -1: the first active one
  int target = -1;                       // send-receive; -1: the last active one
  std::string algorithm;                 // empty or "auto": all
  ForestArguments forest;
  int pieces = 0;
  uint64_t steps_max = 1 << 16;
  bool explain = false;
  bool json = false;
  std::string export_form;  // "text", "msccl"; empty: none, or text if there is an `output`
  std::string output;       // a file for the export; empty: `out`
  std::string svg;          // a file for a picture
  ScheduleArguments schedule;
  GroupArguments groups;
};

// Does what the arguments say and returns the exit code: 0 done, 1 failed, 2 bad input. Errors are
// one line on `err`.
int RunPlan(const PlanArguments& arguments, std::ostream& out, std::ostream& err);

// Adds the sub-command to `app`; when it is called it sets `exit_code`. Both must outlive the
// parsing.
void AddPlanCommand(CLI::App& app, int& exit_code);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_PLAN_COMMAND_H_
