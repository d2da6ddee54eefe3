// Events and commands as text for people and as JSON for programs: what a log of decisions is made
// of, and what it is read back from.
#ifndef SYNCOPATE_STRATEGY_RECORD_H_
#define SYNCOPATE_STRATEGY_RECORD_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "strategy/strategy.h"

namespace syncopate::strategy {

// For logs and tests: "gradient-ready tensor 3". Fields at their usual value are left out where a
// reader would not miss them.
std::string ToText(const Event& event);
std::string ToText(const Command& command);
// {"kind":"proceed","tensor":3}, on one line.
std::string ToJson(const Command& command);
// {"code":"UNAVAILABLE","message":"...","lost":"group","suspect":3}
std::string ToJson(const absl::Status& status);

// One step of a strategy: what it was told, when, and what it answered.
struct Decision {
  double now = 0;
  Event event = {};
  std::vector<Command> commands = {};
};

// {"time":12.5,"event":{"kind":"gradient-ready","tensor":3},"commands":[{"kind":"proceed",...}]}
// on one line. ParseDecision() reads it back and passes over keys that it does not know;
// InvalidArgument names what is missing or wrong.
std::string ToJson(const Decision& decision);
absl::StatusOr<Decision> ParseDecision(absl::string_view json);

}  // namespace syncopate::strategy

#endif  // SYNCOPATE_STRATEGY_RECORD_H_
