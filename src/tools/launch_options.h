// The options of `syncopate launch`, which `syncopate lab run` takes as well.
#ifndef SYNCOPATE_TOOLS_LAUNCH_OPTIONS_H_
#define SYNCOPATE_TOOLS_LAUNCH_OPTIONS_H_

#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"

namespace syncopate::tools {

// As on the command line.
struct LaunchArguments {
  std::string ranks;
  std::string hosts;
  std::string host_file;
  std::string agent;
  std::string interfaces;
  std::string remote_program;
  std::string start_timeout = "2m";
  std::string host_timeout = "60s";
  std::string on_failure = "end";
  std::vector<std::string> variables;
  std::string timeout;
  std::string grace = "2s";
  bool tag = false;
  bool no_tag = false;
  std::string name;  // of the command in whose name is spoken: "launch"
  std::vector<std::string> command;
};

// Adds the options to a command that leaves the words after them to the program. `arguments` must
// outlive the parsing.
void AddLaunchOptions(CLI::App& command, LaunchArguments& arguments);

// Whether hosts are named; otherwise the ranks run on this machine.
bool NamesHosts(const LaunchArguments& arguments);

// What can be told before it is known where the ranks run.
absl::Status CheckLaunch(const LaunchArguments& arguments);

// Runs the job and returns the exit code, after it has said what went wrong. The calling process
// must have one thread only.
int RunLaunch(const LaunchArguments& arguments);

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_LAUNCH_OPTIONS_H_
