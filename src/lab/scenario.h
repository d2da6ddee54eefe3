// A scenario: changes to a lab at given times, from a TOML file.
//
//   [[event]]
//   at = "10s"
//   do = "link rack0 rack1 rate 50mbit"
//   name = "squeeze"     # optional: for a later do = "undo squeeze"
//   for = "20s"          # optional: undone by itself after that long
#ifndef SYNCOPATE_LAB_SCENARIO_H_
#define SYNCOPATE_LAB_SCENARIO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lab/change.h"
#include "lab/spec.h"

namespace syncopate::lab {

inline constexpr int kEventsMax = 1000;

struct Event {
  int64_t at_ns = 0;
  std::string text;  // for people
  bool undo = false;
  Change change;     // unless it undoes one
  std::string name;  // of the change that it makes (may be empty) or undoes
};

// In the order of time; "for" has become an event of its own. Everything is checked: a scenario
// that reads well does not stop in the middle because of a misspelt host.
absl::StatusOr<std::vector<Event>> ParseScenario(const Spec& spec, absl::string_view text,
                                                 absl::string_view place);

}  // namespace syncopate::lab

#endif  // SYNCOPATE_LAB_SCENARIO_H_
