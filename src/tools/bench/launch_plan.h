// How each contestant is started, with the settings that are fair to it (docs/bench.md).
#ifndef SYNCOPATE_TOOLS_BENCH_LAUNCH_PLAN_H_
#define SYNCOPATE_TOOLS_BENCH_LAUNCH_PLAN_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/environment.h"
#include "tools/bench/lab_plan.h"
#include "tools/bench/options.h"

namespace syncopate::tools::bench {

struct LaunchPlan {
  std::vector<std::string> arguments;              // the program's path first
  std::map<std::string, std::string> environment;  // beside what this process has
};

// What a plan depends on beside the options.
struct LaunchPlace {
  std::string drivers;    // folder of the driver programs
  std::string directory;  // private to this contestant
  Environment environment;
  bool root = false;            // this process runs as root
  int cores = 1;                // that the ranks share
  std::optional<LabPlace> lab;  // where the ranks run; nothing: on this machine as it is
};

// NotFound if the driver or the peer's launcher is missing; the message says what to install.
absl::StatusOr<LaunchPlan> PlanLaunch(const std::string& contestant, const BenchOptions& options,
                                      const LaunchPlace& place);

// The folder of the drivers: `named` if not empty, else where a build (`<bin>/../peers`) or an
// installation (`<prefix>/libexec/syncopate`) puts them, seen from the command in folder `bin`.
absl::StatusOr<std::string> FindDrivers(const std::string& named, const std::string& bin);

}  // namespace syncopate::tools::bench

#endif  // SYNCOPATE_TOOLS_BENCH_LAUNCH_PLAN_H_
