// `syncopate simulate`: the strategies of `syncopate train` in virtual time, by the times of a tensor
// table and what transfers cost.
#ifndef SYNCOPATE_TOOLS_SIMULATE_COMMAND_H_
#define SYNCOPATE_TOOLS_SIMULATE_COMMAND_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "CLI/CLI.hpp"
#include "tools/plan_schedule.h"

namespace syncopate::tools {

// As on the command line.
struct SimulateArguments {
  std::string strategy = "bsp";
  ScheduleArguments model;  // the model, its costs and its schedule
  std::string topology;     // a file: costs are those of the best all-reduce on it
  int workers = 0;          // 0: as many as the topology has
  int iterations = 10;
  int64_t samples = 32;  // of a worker's batch
  std::string jitter = "0";
  int64_t seed = 0;
  std::string log;  // a file for all decisions; empty: none
  bool json = false;
};

// The exit code.
int RunSimulate(const SimulateArguments& arguments, std::ostream& out);

void AddSimulateCommand(CLI::App& app, int& exit_code);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_SIMULATE_COMMAND_H_
