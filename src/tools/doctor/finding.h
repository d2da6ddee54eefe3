// One thing that `syncopate doctor` looked at.
#ifndef SYNCOPATE_TOOLS_DOCTOR_FINDING_H_
#define SYNCOPATE_TOOLS_DOCTOR_FINDING_H_

#include <string>
#include <vector>

namespace syncopate::tools {

struct Finding {
  enum class Level {
    kOk,
    kPoor,     // works, but could be better
    kMissing,  // not there, and not needed to run
    kBroken,   // Syncopate cannot run without it
  };

  std::string name;
  Level level = Level::kOk;
  std::string value;   // what was found
  std::string advice;  // what to do about it; empty if all is well
};

using Findings = std::vector<Finding>;

}  // namespace syncopate::tools

#endif  // SYNCOPATE_TOOLS_DOCTOR_FINDING_H_
