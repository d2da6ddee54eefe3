// What a strategy was made from, as JSON: with it and a log of decisions anybody can make the same
// strategy again and ask it what it decides.
#ifndef SYNCOPATE_STRATEGY_OPTIONS_JSON_H_
#define SYNCOPATE_STRATEGY_OPTIONS_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "strategy/registry.h"

namespace syncopate::strategy {

// One line. ParseStrategyOptions() reads it back and passes over keys that it does not know;
// InvalidArgument names what is missing or wrong.
std::string ToJson(const StrategyOptions& options);
absl::StatusOr<StrategyOptions> ParseStrategyOptions(absl::string_view json);

}  // namespace syncopate::strategy

#endif  // SYNCOPATE_STRATEGY_OPTIONS_JSON_H_
