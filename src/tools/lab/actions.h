// What the sub-commands of `syncopate lab` do; lab_command.cc has their options. Each returns the
// command's exit code and says on standard error what went wrong.
#ifndef SYNCOPATE_TOOLS_LAB_ACTIONS_H_
#define SYNCOPATE_TOOLS_LAB_ACTIONS_H_

#include <string>
#include <vector>

#include "tools/launch_options.h"

namespace syncopate::tools::labtool {

struct Arguments {
  std::string file;     // up, topology, scenario
  std::string lab;      // empty: the only one
  std::string name;     // up --name; undo: the change
  std::string as;       // a name for a change
  std::string only;     // check
  std::string seconds;  // check, status
  std::string slots;    // run
  bool all = false;     // down
  bool json = false;
  bool keep = false;               // scenario
  std::vector<std::string> words;  // of a change, exec
  LaunchArguments launch;          // run
};

int Up(const Arguments& arguments);
int Down(const Arguments& arguments);
int List(const Arguments& arguments);
int Status(const Arguments& arguments);
int PrintTopology(const Arguments& arguments);
int Check(const Arguments& arguments);

// Becomes the program and returns only if it cannot.
int Exec(const Arguments& arguments);
int RunJob(const Arguments& arguments);

// link, cut, flow, slow: `words` begins with the verb.
int MakeChange(const Arguments& arguments);
int Undo(const Arguments& arguments);
int PlayScenario(const Arguments& arguments);

}  // namespace syncopate::tools::labtool

#endif  // SYNCOPATE_TOOLS_LAB_ACTIONS_H_
