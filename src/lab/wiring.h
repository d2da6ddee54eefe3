// The scripts for ip, tc and bridge that make a lab or change it. Pure: text from values.
#ifndef SYNCOPATE_LAB_WIRING_H_
#define SYNCOPATE_LAB_WIRING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "lab/change.h"
#include "lab/plan.h"

namespace syncopate::lab {

// Lines for `TOOL -n NETNS -batch -`; without a namespace, `TOOL -batch -`.
struct Script {
  std::string tool;
  std::string netns;
  std::string text;
};

// In the order in which they must run: makes the namespaces,
Script NamespaceScript(const Plan& plan);
// then everything in them, shaped as `settings` say.
std::vector<Script> WiringScripts(const Plan& plan, const Settings& settings);
// What leads from one state of the links to another. Empty if they are equal.
std::vector<Script> ChangeScripts(const Plan& plan, const Settings& before, const Settings& after);

// The token bucket of a rate. Large packets (64 KiB, which keep the load on the CPU low) pass
// only if the bucket holds two of them; a queue of about 10 ms keeps the round trip short without
// starving flows.
int64_t BurstBytes(int64_t rate_bits);
int64_t QueueBytes(int64_t rate_bits);

}  // namespace syncopate::lab

#endif  // SYNCOPATE_LAB_WIRING_H_
